// 16 rows of a matrix product, for any vector width. This file is included by a file that defines
// ANNULUS_VECTOR (floats in a vector) and ANNULUS_VECTOR_NAMESPACE, and is compiled for that
// instruction set. The lanes of a warp are the lanes of the vectors. Every width adds in the same
// order, so the bits of a result do not depend on the processor.
//
// Accumulators (PTX ISA 9.0, section 9.7.15.5.1.1), lane = 4 g + t, for columns 8 j to 8 j + 7:
//   registers 4 j and 4 j + 1: row g, columns 2t and 2t + 1; 4 j + 2 and 4 j + 3: row g + 8

#include <immintrin.h>

#include <cstdint>

namespace annulus::simulator::ANNULUS_VECTOR_NAMESPACE {

#if ANNULUS_VECTOR == 16
using Vector = __m512;
constexpr int kBlocks = 2;  // number of blocks of 8 columns whose sums fit into registers
inline Vector load(const float* from) { return _mm512_loadu_ps(from); }
inline void store(float* to, Vector value) { _mm512_storeu_ps(to, value); }
inline Vector zero() { return _mm512_setzero_ps(); }
inline Vector repeat_four(const float* from) { return _mm512_broadcast_f32x4(_mm_load_ps(from)); }
inline Vector multiply_add(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
#else
using Vector = __m256;
constexpr int kBlocks = 1;
inline Vector load(const float* from) { return _mm256_loadu_ps(from); }
inline void store(float* to, Vector value) { _mm256_storeu_ps(to, value); }
inline Vector zero() { return _mm256_setzero_ps(); }
inline Vector repeat_four(const float* from) {
  return _mm256_broadcast_ps(reinterpret_cast<const __m128*>(from));
}
inline Vector multiply_add(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
#endif

// Multiplies for kCount blocks of 8 columns and the lanes of two vectors.
template <int kCount>
inline void blocks(const float* a, const float* b, int k_count, float* const* d, bool accumulate) {
  Vector sum[kCount][4][2];
  for (int j = 0; j < kCount; ++j) {
    for (int i = 0; i < 4; ++i) {
      for (int v = 0; v < 2; ++v) {
        sum[j][i][v] = accumulate ? load(d[4 * j + i] + v * ANNULUS_VECTOR) : zero();
      }
    }
  }
  for (int k = 0; k < k_count; ++k) {
    const float* rows = a + k * 64;
    for (int j = 0; j < kCount; ++j) {
      const float* columns = b + (j * k_count + k) * 8;
      const Vector even = repeat_four(columns);
      const Vector odd = repeat_four(columns + 4);
      for (int v = 0; v < 2; ++v) {
        const Vector upper = load(rows + v * ANNULUS_VECTOR);
        const Vector lower = load(rows + 32 + v * ANNULUS_VECTOR);
        sum[j][0][v] = multiply_add(upper, even, sum[j][0][v]);
        sum[j][1][v] = multiply_add(upper, odd, sum[j][1][v]);
        sum[j][2][v] = multiply_add(lower, even, sum[j][2][v]);
        sum[j][3][v] = multiply_add(lower, odd, sum[j][3][v]);
      }
    }
  }
  for (int j = 0; j < kCount; ++j) {
    for (int i = 0; i < 4; ++i) {
      for (int v = 0; v < 2; ++v) store(d[4 * j + i] + v * ANNULUS_VECTOR, sum[j][i][v]);
    }
  }
}

// a[k][row / 8][lane] is the element of row g (0) or g + 8 (1) for lane 4 g + t. b[column /
// 8][k][8] has the 8 columns in the order 0, 2, 4, 6, 1, 3, 5, 7. d has four arrays of 32 for every
// 8 columns.
inline void multiply_rows(const float* a, const float* b, int k_count, int column_blocks,
                          float* const* d, bool accumulate) {
  float* part[8];
  for (int first = 0; first < 32; first += 2 * ANNULUS_VECTOR) {
    int j = 0;
    for (; j + kBlocks <= column_blocks; j += kBlocks) {
      for (int i = 0; i < 4 * kBlocks; ++i) part[i] = d[4 * j + i] + first;
      blocks<kBlocks>(a + first, b + j * k_count * 8, k_count, part, accumulate);
    }
    for (; j < column_blocks; ++j) {
      for (int i = 0; i < 4; ++i) part[i] = d[4 * j + i] + first;
      blocks<1>(a + first, b + j * k_count * 8, k_count, part, accumulate);
    }
  }
}

}  // namespace annulus::simulator::ANNULUS_VECTOR_NAMESPACE
