// 16 rows of a product of 8-bit floats as an H200 computes it, for any vector width. This file is
// included after ops/wgmma_kernel.h by the files that compile it for an instruction set.
//
// One instruction adds 32 products to an accumulator (docs/simulator.md, "What the manual leaves
// open"). Let e be the largest exponent among them, where the exponent of a product is the sum of
// its factors' exponents. Every product and the accumulator are cut toward zero to multiples of
// 2^(e - 13) and added exactly. The sum is cut toward zero to 14 significant bits.
//
// In [2^(e + 10), 2^(e + 11)) the numbers of fp32 are the multiples of 2^(e - 13). So a sum of
// terms >= 0 that starts there cuts every term, if the processor rounds toward zero. There is one
// such sum for the positive terms and one for the negative terms. Their difference is exact.

namespace annulus::simulator::ANNULUS_VECTOR_NAMESPACE {

constexpr int kFloat8Terms = 32;
constexpr int kSlabVectors = 4;  // a slab is so many vectors of columns
constexpr int kSlab = kSlabVectors * ANNULUS_VECTOR;

constexpr int kVectorBlocks = ANNULUS_VECTOR / 8;  // blocks of 8 columns in a vector
constexpr int kVectorArrays = 4 * kVectorBlocks;   // arrays of d for a vector

typedef int Ints __attribute__((vector_size(4 * ANNULUS_VECTOR)));
inline Ints ints(Vector value) { return reinterpret_cast<Ints>(value); }
inline Vector floats(Ints value) { return reinterpret_cast<Vector>(value); }

#if ANNULUS_VECTOR == 16
using Bytes = __m512i;  // a byte for each column of a slab
inline Bytes load_bytes(const signed char* from) { return _mm512_loadu_si512(from); }
inline void store_bytes(signed char* to, Bytes value) { _mm512_store_si512(to, value); }
inline Bytes repeat_byte(signed char value) { return _mm512_set1_epi8(value); }
inline Bytes add_bytes(Bytes a, Bytes b) { return _mm512_adds_epi8(a, b); }
inline Bytes larger_bytes(Bytes a, Bytes b) { return _mm512_max_epi8(a, b); }
inline Vector repeat(float value) { return _mm512_set1_ps(value); }
inline Vector join(__m256 low, __m256 high) {
  return _mm512_castpd_ps(
      _mm512_insertf64x4(_mm512_castps_pd(_mm512_castps256_ps512(low)), _mm256_castps_pd(high), 1));
}
inline __m256 half_of(Vector value, int half) {
  return _mm256_castpd_ps(half == 0 ? _mm512_castpd512_pd256(_mm512_castps_pd(value))
                                    : _mm512_extractf64x4_pd(_mm512_castps_pd(value), 1));
}
inline Ints widen_exponents(const signed char* from) {
  return reinterpret_cast<Ints>(
      _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
}
#else
using Bytes = __m256i;
inline Bytes load_bytes(const signed char* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
inline void store_bytes(signed char* to, Bytes value) {
  _mm256_store_si256(reinterpret_cast<__m256i*>(to), value);
}
inline Bytes repeat_byte(signed char value) { return _mm256_set1_epi8(value); }
inline Bytes add_bytes(Bytes a, Bytes b) { return _mm256_adds_epi8(a, b); }
inline Bytes larger_bytes(Bytes a, Bytes b) { return _mm256_max_epi8(a, b); }
inline Vector repeat(float value) { return _mm256_set1_ps(value); }
inline Ints widen_exponents(const signed char* from) {
  return reinterpret_cast<Ints>(
      _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
}
#endif

// The accumulators of a row, in the order of the columns of b: 4 even and 4 odd columns of a block.
// `d` has the arrays of the row's half from the block on, and the lanes from the row's on.
inline __m256 load_block(float* const* d, int lane) {
  return _mm256_set_m128(_mm_load_ps(d[1] + lane), _mm_load_ps(d[0] + lane));
}
inline void store_block(float* const* d, int lane, __m256 value) {
  _mm_store_ps(d[0] + lane, _mm256_castps256_ps128(value));
  _mm_store_ps(d[1] + lane, _mm256_extractf128_ps(value, 1));
}
inline Vector load_accumulators(float* const* d, int lane, int blocks) {
#if ANNULUS_VECTOR == 16
  return join(load_block(d, lane), blocks > 1 ? load_block(d + 4, lane) : _mm256_setzero_ps());
#else
  static_cast<void>(blocks);
  return load_block(d, lane);
#endif
}
inline void store_accumulators(float* const* d, int lane, int blocks, Vector value) {
#if ANNULUS_VECTOR == 16
  store_block(d, lane, half_of(value, 0));
  if (blocks > 1) store_block(d + 4, lane, half_of(value, 1));
#else
  static_cast<void>(blocks);
  store_block(d, lane, value);
#endif
}

// The exponents of eight factors, as bytes. Subnormal factors have the `least` exponent of their
// format. That of 0 stays below all others when another is added to it.
inline void store_exponents(signed char* to, __m256 values, int least) {
  const __m256i magnitude = _mm256_slli_epi32(_mm256_castps_si256(values), 1);
  const __m256i exponent =
      _mm256_sub_epi32(_mm256_srli_epi32(magnitude, 24), _mm256_set1_epi32(127));
  const __m256i normal = _mm256_max_epi32(exponent, _mm256_set1_epi32(least));
  const __m256i zeros = _mm256_cmpeq_epi32(magnitude, _mm256_setzero_si256());
  const __m256i words = _mm256_blendv_epi8(normal, _mm256_set1_epi32(-128), zeros);
  const __m128i halves =
      _mm_packs_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packs_epi16(halves, halves));
}

// Copies b, whose layout is that of ops/wgmma_kernel.h, into slabs.
inline void split_columns(const float* b, int least, int column_blocks, Float8Columns& to) {
  const int slabs = (8 * column_blocks + kSlab - 1) / kSlab;
  for (int j = 0; j < slabs * kSlab / 8; ++j) {
    const int slab = 8 * j / kSlab * kFloat8Terms * kSlab;
    for (int k = 0; k < kFloat8Terms; ++k) {
      const __m256 values =
          j < column_blocks ? _mm256_loadu_ps(b + (j * kFloat8Terms + k) * 8) : _mm256_setzero_ps();
      const __m256 negated = _mm256_sub_ps(_mm256_setzero_ps(), values);
      float* parts = to.parts + 2 * (slab + k * kSlab) + 8 * j % kSlab;
      _mm256_storeu_ps(parts, _mm256_max_ps(values, _mm256_setzero_ps()));
      _mm256_storeu_ps(parts + kSlab, _mm256_max_ps(negated, _mm256_setzero_ps()));
      store_exponents(to.exponents + slab + k * kSlab + 8 * j % kSlab, values, least);
    }
  }
}

// 16 rows of A: [k][row / 8][kRowOrder[row % 8]].
struct Rows {
  float sizes[kFloat8Terms * 16];
  // where a slab has the parts with which the products are positive; the others are at ^ kSlab
  std::uint32_t positive[kFloat8Terms * 16];
  signed char exponents[kFloat8Terms * 16];
};
constexpr int kRowOrder[8] = {0, 4, 1, 5, 2, 6, 3, 7};

inline void split_rows(const float* a, int least, Rows& to) {
  for (int i = 0; i < 2 * kFloat8Terms; ++i) {  // 2 k + row / 8
    const float* lanes = a + i * 32;            // four equal ones for each row
    const __m256 first = _mm256_shuffle_ps(_mm256_loadu_ps(lanes), _mm256_loadu_ps(lanes + 8), 0);
    const __m256 last =
        _mm256_shuffle_ps(_mm256_loadu_ps(lanes + 16), _mm256_loadu_ps(lanes + 24), 0);
    const __m256 values = _mm256_shuffle_ps(first, last, 0x88);  // rows 0, 2, 4, 6, 1, 3, 5, 7
    const __m256 sign = _mm256_set1_ps(-0.0f);
    _mm256_storeu_ps(to.sizes + i * 8, _mm256_andnot_ps(sign, values));
    const __m256i negative = _mm256_srai_epi32(_mm256_castps_si256(values), 31);
    const __m256i swap = _mm256_and_si256(negative, _mm256_set1_epi32(kSlab));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to.positive + i * 8),
                        _mm256_add_epi32(swap, _mm256_set1_epi32(i / 2 * 2 * kSlab)));
    store_exponents(to.exponents + i * 8, values, least);
  }
}

// Row `row` of the arrays of Rows times the first kCount vectors of columns of a slab, or of what
// is left of it. `blocks` is the number of blocks of 8 columns from there on that exist.
template <int kCount>
inline void multiply_slab(const Rows& rows, int row, const float* parts,
                          const signed char* exponents, float* const* d, int lane, int blocks,
                          bool accumulate) {
  Bytes largest = repeat_byte(-128);
  for (int k = 0; k < kFloat8Terms; ++k) {
    const Bytes of_columns = load_bytes(exponents + k * kSlab);
    const Bytes of_row = repeat_byte(rows.exponents[k * 16 + row]);
    largest = larger_bytes(largest, add_bytes(of_row, of_columns));
  }
  alignas(64) signed char of_products[kSlab];
  store_bytes(of_products, largest);

  Vector old[kCount];
  Vector sums[2][kCount];
  Ints exponent[kCount];
  Ints within[kCount];
  for (int v = 0; v < kCount; ++v) {
    old[v] = accumulate ? load_accumulators(d + v * kVectorArrays, lane, blocks - v * kVectorBlocks)
                        : zero();
    const Ints bits = ints(old[v]);
    const Ints of_old = ((bits >> 23) & 255) - 127;
    const Ints products = widen_exponents(of_products + v * ANNULUS_VECTOR);
    exponent[v] = of_old > products ? of_old : products;
    // Beyond these bounds the accumulator is the whole sum: it is larger than 2^15 times any
    // product, or all products are 0.
    const Ints high = exponent[v] > 60 ? Ints{} + 60 : exponent[v];
    within[v] = high < -100 ? Ints{} - 100 : high;
    const Vector start = floats((within[v] + (10 + 127)) << 23);
    sums[0][v] = start + floats(bits > 0 ? bits : Ints{});
    sums[1][v] = start + floats(bits < 0 ? bits & 0x7fffffff : Ints{});
  }
  for (int k = 0; k < kFloat8Terms; ++k) {
    const Vector size = repeat(rows.sizes[k * 16 + row]);
    const std::uint32_t place = rows.positive[k * 16 + row];
    const float* positive = parts + place;
    const float* negative = parts + (place ^ kSlab);
    for (int v = 0; v < kCount; ++v) {
      sums[0][v] = multiply_add(size, load(positive + v * ANNULUS_VECTOR), sums[0][v]);
      sums[1][v] = multiply_add(size, load(negative + v * ANNULUS_VECTOR), sums[1][v]);
    }
  }
  for (int v = 0; v < kCount; ++v) {
    const Ints sum = ints(sums[0][v] - sums[1][v]);
    const Ints kept = (within[v] == exponent[v] ? sum : ints(old[v])) & ~0x3ff;
    store_accumulators(d + v * kVectorArrays, lane, blocks - v * kVectorBlocks, floats(kept));
  }
}

// The product of 16 rows. The layouts of a and d are those of ops/wgmma_kernel.h. Requires: all
// operands are finite, and the processor rounds toward zero.
inline void multiply_float8(const float* a, int least, const Float8Columns& columns,
                            int column_blocks, float* const* d, bool accumulate) {
  Rows rows;
  split_rows(a, least, rows);
  for (int j = 0; j < column_blocks; j += kSlab / 8) {
    const float* parts = columns.parts + 2 * 8 * j * kFloat8Terms;
    const signed char* exponents = columns.exponents + 8 * j * kFloat8Terms;
    const int blocks = column_blocks - j;
    for (int i = 0; i < 16; ++i) {
      const int row = i / 8 * 8 + kRowOrder[i % 8];
      float* const* to = d + 4 * j + 2 * (i / 8);
      const int lane = i % 8 * 4;
      if (blocks >= kSlab / 8) {
        multiply_slab<kSlabVectors>(rows, row, parts, exponents, to, lane, blocks, accumulate);
        continue;
      }
      for (int next = 0; next < blocks; next += kVectorBlocks) {
        multiply_slab<1>(rows, row, parts + 8 * next, exponents + 8 * next, to + 4 * next, lane,
                         blocks - next, accumulate);
      }
    }
  }
}

}  // namespace annulus::simulator::ANNULUS_VECTOR_NAMESPACE
