#include "simulator/ops/mma_product.h"

#define ANNULUS_VECTOR 16
#define ANNULUS_VECTOR_NAMESPACE vectors_of_512_bits
#include "simulator/ops/mma_kernel.h"

namespace annulus::simulator {

void mma_product_512(const MmaOperands& operands, bool wide) {
  using namespace vectors_of_512_bits;
  if (wide) {
    multiply<4>(operands.a, operands.b, operands.c, operands.d);
  } else {
    multiply<2>(operands.a, operands.b, operands.c, operands.d);
  }
}

}  // namespace annulus::simulator
