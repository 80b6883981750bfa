#ifndef ANNULUS_SIMULATOR_OPS_MMA_PRODUCT_H_
#define ANNULUS_SIMULATOR_OPS_MMA_PRODUCT_H_

// The product of mma.sync, in the widest vectors that the processor has.

namespace annulus::simulator {

// The operands, in the layout of ops/mma_kernel.h.
struct MmaOperands {
  alignas(64) float a[4][2][32];
  alignas(64) float b[2][2][2][4][4];
  const float* c[4];
  float* d[4];
};

// d = a b + c for k = 16 (wide) or k = 8.
using MmaProduct = void (*)(const MmaOperands& operands, bool wide);

void mma_product_256(const MmaOperands& operands, bool wide);  // AVX2 and FMA
void mma_product_512(const MmaOperands& operands, bool wide);  // AVX-512F

MmaProduct best_mma_product();

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_OPS_MMA_PRODUCT_H_
