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

// The columns of a B of 8-bit floats, in slabs of a number of columns that the vectors determine.
struct Float8Columns {
  // [slab][k][sign][column]: the elements > 0, others 0; then the sizes of the elements < 0
  alignas(64) float parts[2 * 32 * 256];
  alignas(64) signed char exponents[32 * 256];  // [slab][k][column]
};

// A product of 8-bit floats whose sums are cut as on an H200 (ops/float8_kernel.h). `least_a` and
// `least_b` are the exponents of the smallest normal numbers.
struct Float8Product {
  void (*split)(const float* b, int least_b, int column_blocks, Float8Columns& to);
  // Requires: all operands are finite, and the processor rounds toward zero.
  void (*multiply)(const float* a, int least_a, const Float8Columns& b, int column_blocks,
                   float* const* d, bool accumulate);
};
extern const Float8Product kFloat8Product256;  // AVX2 and FMA
extern const Float8Product kFloat8Product512;  // AVX-512F and AVX-512BW

Float8Product best_float8_product();

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_OPS_WGMMA_PRODUCT_H_
