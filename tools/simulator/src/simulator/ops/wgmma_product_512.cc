#include "simulator/ops/wgmma_product.h"

#define ANNULUS_VECTOR 16
#define ANNULUS_VECTOR_NAMESPACE wgmma_of_512_bits
#include "simulator/ops/wgmma_kernel.h"
// after the vectors that it uses
#include "simulator/ops/float8_kernel.h"

namespace annulus::simulator {

void wgmma_product_512(const float* a, const float* b, int k_count, int column_blocks,
                       float* const* d, bool accumulate) {
  wgmma_of_512_bits::multiply_rows(a, b, k_count, column_blocks, d, accumulate);
}

const Float8Product kFloat8Product512 = {wgmma_of_512_bits::split_columns,
                                         wgmma_of_512_bits::multiply_float8};

}  // namespace annulus::simulator
