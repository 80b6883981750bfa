#include "simulator/ops/mma_product.h"

#define ANNULUS_VECTOR 8
#define ANNULUS_VECTOR_NAMESPACE vectors_of_256_bits
#include "simulator/ops/mma_kernel.h"

namespace annulus::simulator {

void mma_product_256(const MmaOperands& operands, bool wide) {
  using namespace vectors_of_256_bits;
  if (wide) {
    multiply<4>(operands.a, operands.b, operands.c, operands.d);
  } else {
    multiply<2>(operands.a, operands.b, operands.c, operands.d);
  }
}

MmaProduct best_mma_product() {
  static const MmaProduct kBest =
      __builtin_cpu_supports("avx512f") ? mma_product_512 : mma_product_256;
  return kBest;
}

}  // namespace annulus::simulator
