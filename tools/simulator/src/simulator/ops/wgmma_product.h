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

// The exponents of the elements of B of a product of 8-bit floats, and bytes for counting.
struct Float8Columns {
  alignas(64) signed char bytes[2 * 32 * 256];
};

// A product of 8-bit floats whose sums are cut as on an H200 (ops/float8_kernel.h). `least_a` and
// `least_b` are the exponents of the smallest normal numbers.
struct Float8Product {
  // Returns false if an element is infinite or NaN.
  bool (*split)(const float* b, int least_b, int column_blocks, Float8Columns& to);
  // Returns false, and does nothing, if an element of A or an accumulator is infinite or NaN.
  // Requires: all elements of B are finite, and the processor rounds downward.
  bool (*multiply)(const float* a, int least_a, const float* b, const Float8Columns& columns,
                   int column_blocks, float* const* d, bool accumulate);
};
extern const Float8Product kFloat8Product256;  // AVX2 and FMA
extern const Float8Product kFloat8Product512;  // AVX-512F and AVX-512BW

Float8Product best_float8_product();

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_OPS_WGMMA_PRODUCT_H_
