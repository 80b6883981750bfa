#ifndef ANNULUS_SIMULATOR_OPS_WGMMA_PRODUCT_H_
#define ANNULUS_SIMULATOR_OPS_WGMMA_PRODUCT_H_

// 16 rows of the product of wgmma, in the widest vectors that the processor has. ops/wgmma_kernel.h
// has the layout of the operands.

namespace annulus::simulator {

using WgmmaProduct = void (*)(const float* a, const float* b, int k_count, int column_blocks,
                              float* const* d, bool accumulate);

void wgmma_product_256(const float* a, const float* b, int k_count, int column_blocks,
                       float* const* d, bool accumulate);  // AVX2 and FMA
void wgmma_product_512(const float* a, const float* b, int k_count, int column_blocks,
                       float* const* d, bool accumulate);  // AVX-512F

WgmmaProduct best_wgmma_product();

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_OPS_WGMMA_PRODUCT_H_
