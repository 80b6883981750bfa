// The product of one mma.sync.m16n8k16, for any vector width.
// This file is included by a file that defines ANNULUS_VECTOR (floats in a vector) and
// ANNULUS_VECTOR_NAMESPACE, and is compiled for that instruction set. The lanes of a warp are the
// lanes of the vectors. Every width adds in the same order, so the bits of a result do not depend
// on the processor.
//
// Fragments (PTX ISA 9.0, section 9.7.14.5.8), lane = 4 g + t:
//   A 16x16: a0 = (row g, k 2t, 2t+1)          a1 = (row g+8, same k)
//            a2 = (row g, k+8)                 a3 = (row g+8, k+8)
//   B 16x8:  b0 = (k 2t, 2t+1; column g)       b1 = (k+8; column g)
//   C 16x8:  c0, c1 = (row g, column 2t, 2t+1) c2, c3 = (row g+8, same columns)
//
// For a fixed k every lane needs A[g][k], which is in the lane's own quad (a shuffle within 128
// bits), and B[k][2t] or B[k][2t+1], which is the same for all quads (a broadcast of 128 bits).

#include <immintrin.h>

#include <cstdint>

namespace annulus::simulator::ANNULUS_VECTOR_NAMESPACE {

#if ANNULUS_VECTOR == 16
using Vector = __m512;
inline Vector load(const float* from) { return _mm512_loadu_ps(from); }
inline void store(float* to, Vector value) { _mm512_storeu_ps(to, value); }
inline Vector broadcast_quad(const float* from) {
  return _mm512_broadcast_f32x4(_mm_load_ps(from));
}
inline Vector multiply_add(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
template <int kLane>
inline Vector spread(Vector a) {
  return _mm512_permute_ps(a, kLane * 0x55);
}
#else
using Vector = __m256;
inline Vector load(const float* from) { return _mm256_loadu_ps(from); }
inline void store(float* to, Vector value) { _mm256_storeu_ps(to, value); }
inline Vector broadcast_quad(const float* from) {
  return _mm256_broadcast_ps(reinterpret_cast<const __m128*>(from));
}
inline Vector multiply_add(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
template <int kLane>
inline Vector spread(Vector a) {
  return _mm256_permute_ps(a, kLane * 0x55);
}
#endif

// Adds the products of one k, for the lanes of two vectors. k is 2 kT + p of a half of 8.
template <int kT>
inline void step(const Vector (&low)[2], const Vector (&high)[2], const float* even,
                 const float* odd, Vector (&sum)[4][2]) {
  const Vector be = broadcast_quad(even);
  const Vector bo = broadcast_quad(odd);
  for (int v = 0; v < 2; ++v) {
    const Vector upper = spread<kT>(low[v]);
    const Vector lower = spread<kT>(high[v]);
    sum[0][v] = multiply_add(upper, be, sum[0][v]);
    sum[1][v] = multiply_add(upper, bo, sum[1][v]);
    sum[2][v] = multiply_add(lower, be, sum[2][v]);
    sum[3][v] = multiply_add(lower, bo, sum[3][v]);
  }
}

// a[register][half][lane], b[register][half][parity of column][t][column / 2] in fp32; halves: 0
// low, 1 high. c and d are four arrays of 32. kRegisters: 4 for k16, 2 for k8.
template <int kRegisters>
inline void multiply(const float (&a)[4][2][32], const float (&b)[2][2][2][4][4],
                     const float* const (&c)[4], float* const (&d)[4]) {
  for (int first = 0; first < 32; first += 2 * ANNULUS_VECTOR) {
    Vector sum[4][2];
    for (int i = 0; i < 4; ++i) {
      for (int v = 0; v < 2; ++v) sum[i][v] = load(c[i] + first + v * ANNULUS_VECTOR);
    }
    for (int h = 0; h < kRegisters / 2; ++h) {
      for (int p = 0; p < 2; ++p) {
        Vector low[2], high[2];
        for (int v = 0; v < 2; ++v) {
          low[v] = load(&a[2 * h][p][first + v * ANNULUS_VECTOR]);
          high[v] = load(&a[2 * h + 1][p][first + v * ANNULUS_VECTOR]);
        }
        step<0>(low, high, b[h][p][0][0], b[h][p][1][0], sum);
        step<1>(low, high, b[h][p][0][1], b[h][p][1][1], sum);
        step<2>(low, high, b[h][p][0][2], b[h][p][1][2], sum);
        step<3>(low, high, b[h][p][0][3], b[h][p][1][3], sum);
      }
    }
    for (int i = 0; i < 4; ++i) {
      for (int v = 0; v < 2; ++v) store(d[i] + first + v * ANNULUS_VECTOR, sum[i][v]);
    }
  }
}

}  // namespace annulus::simulator::ANNULUS_VECTOR_NAMESPACE
