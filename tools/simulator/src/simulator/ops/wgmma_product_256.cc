#include "simulator/ops/wgmma_product.h"

#define ANNULUS_VECTOR 8
#define ANNULUS_VECTOR_NAMESPACE wgmma_of_256_bits
#include "simulator/ops/wgmma_kernel.h"
// after the vectors that it uses
#include "simulator/ops/float8_kernel.h"

namespace annulus::simulator {

void wgmma_product_256(const float* a, const float* b, int k_count, int column_blocks,
                       float* const* d, bool accumulate) {
  wgmma_of_256_bits::multiply_rows(a, b, k_count, column_blocks, d, accumulate);
}

WgmmaProduct best_wgmma_product() {
  static const WgmmaProduct kBest =
      __builtin_cpu_supports("avx512f") ? wgmma_product_512 : wgmma_product_256;
  return kBest;
}

const Float8Product kFloat8Product256 = {wgmma_of_256_bits::split_columns,
                                         wgmma_of_256_bits::multiply_float8};

Float8Product best_float8_product() {
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
  return wide ? kFloat8Product512 : kFloat8Product256;
}

}  // namespace annulus::simulator
