// 16 rows of a product of 8-bit floats as an H200 computes it, for any vector width. This file is
// included by a file that defines ANNULUS_VECTOR and ANNULUS_VECTOR_NAMESPACE, after
// ops/wgmma_kernel.h, whose layouts it has.
//
// One instruction adds 32 products to an accumulator (docs/simulator.md, "What the manual leaves
// open"). Let e be the largest exponent among them, where the exponent of a product is the sum of
// its factors' exponents. Every product and the accumulator are cut toward zero to multiples of
// 2^(e - 13) and added exactly. The sum is cut toward zero to 14 significant bits.
//
// Near 1.5 * 2^(e + 10) the numbers of fp32 are the multiples of 2^(e - 13). So a sum that starts
// there cuts every term, downward if the processor rounds downward. If a negative term is not a
// multiple, this is one unit too low. The number of these terms is added at the end. A term is a
// multiple of 2^(u + v) and of no higher power if its factors are odd multiples of 2^u and 2^v.

namespace annulus::simulator::ANNULUS_VECTOR_NAMESPACE {

constexpr int kFloat8Terms = 32;
// A group is the elements of kGroupRows rows and 8 columns, in four vectors: [column % 2][row,
// column / 2]. Their bytes are one vector: [row][column % 2][column / 2].
constexpr int kGroupRows = ANNULUS_VECTOR / 2;
// The bytes for counting have u + kUnitBias of a factor in 7 bits, and its sign in the eighth. In
// the sum of two, the eighth bit is the sign of the product. A factor 0 has kNoUnit, which is above
// all sums of others.
constexpr int kUnitBias = 16;
constexpr int kNoUnit = 63;

typedef int Ints __attribute__((vector_size(4 * ANNULUS_VECTOR)));
inline Ints ints(Vector value) { return reinterpret_cast<Ints>(value); }
inline Vector floats(Ints value) { return reinterpret_cast<Vector>(value); }

#if ANNULUS_VECTOR == 16
using Bytes = __m512i;
inline Bytes load_bytes(const signed char* from) { return _mm512_loadu_si512(from); }
inline Bytes repeat_eight(const signed char* from) {
  long long bytes;
  __builtin_memcpy(&bytes, from, 8);
  return _mm512_set1_epi64(bytes);
}
inline Bytes repeat_byte(signed char value) { return _mm512_set1_epi8(value); }
inline Bytes add_bytes(Bytes a, Bytes b) { return _mm512_add_epi8(a, b); }
inline Bytes add_saturated(Bytes a, Bytes b) { return _mm512_adds_epi8(a, b); }
inline Bytes larger_bytes(Bytes a, Bytes b) { return _mm512_max_epi8(a, b); }
inline Bytes smaller_bytes(Bytes a, Bytes b) { return _mm512_min_epi8(a, b); }
// Adds 1 to the counts of bytes for which a < b.
inline Bytes count_below(Bytes counts, Bytes a, Bytes b) {
  return _mm512_mask_add_epi8(counts, _mm512_cmplt_epi8_mask(a, b), counts, _mm512_set1_epi8(1));
}
// From the order of the bytes of a group to the order of its vectors, and back.
inline void store_ordered(signed char* to, Bytes value) {
  const __m512i order = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
  _mm512_storeu_si512(to, _mm512_permutexvar_epi32(order, value));
}
inline Bytes load_ordered(const signed char* from) {
  const __m512i order = _mm512_setr_epi32(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
  return _mm512_permutexvar_epi32(order, load_bytes(from));
}
inline Ints widen_bytes(const signed char* from) {
  return reinterpret_cast<Ints>(
      _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
}
inline void narrow_bytes(signed char* to, Ints value) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                   _mm512_cvtepi32_epi8(reinterpret_cast<__m512i>(value)));
}
inline Vector convert(Ints value) { return _mm512_cvtepi32_ps(reinterpret_cast<__m512i>(value)); }
#else
using Bytes = __m256i;
inline Bytes load_bytes(const signed char* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
inline Bytes repeat_eight(const signed char* from) {
  long long bytes;
  __builtin_memcpy(&bytes, from, 8);
  return _mm256_set1_epi64x(bytes);
}
inline Bytes repeat_byte(signed char value) { return _mm256_set1_epi8(value); }
inline Bytes add_bytes(Bytes a, Bytes b) { return _mm256_add_epi8(a, b); }
inline Bytes add_saturated(Bytes a, Bytes b) { return _mm256_adds_epi8(a, b); }
inline Bytes larger_bytes(Bytes a, Bytes b) { return _mm256_max_epi8(a, b); }
inline Bytes smaller_bytes(Bytes a, Bytes b) { return _mm256_min_epi8(a, b); }
inline Bytes count_below(Bytes counts, Bytes a, Bytes b) {
  return _mm256_sub_epi8(counts, _mm256_cmpgt_epi8(b, a));
}
inline void store_ordered(signed char* to, Bytes value) {
  const __m256i order = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_permutevar8x32_epi32(value, order));
}
inline Bytes load_ordered(const signed char* from) {
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  return _mm256_permutevar8x32_epi32(load_bytes(from), order);
}
inline Ints widen_bytes(const signed char* from) {
  return reinterpret_cast<Ints>(
      _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
}
inline void narrow_bytes(signed char* to, Ints value) {
  const auto words = reinterpret_cast<__m256i>(value);
  const __m128i halves =
      _mm_packs_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packs_epi16(halves, halves));
}
inline Vector convert(Ints value) { return _mm256_cvtepi32_ps(reinterpret_cast<__m256i>(value)); }
#endif

// The bytes of eight factors of e4m3 or e5m2: first their exponents, then the bytes for counting.
// Subnormal factors have the `least` exponent of their format, and the exponent of 0 stays below
// all others when another is added to it. `largest` becomes the largest exponent so far; an
// infinity or a NaN has kEndless.
constexpr int kEndless = 128;

inline __m128i factor_bytes(__m256 values, int least, __m256i& largest) {
  const __m256i bits = _mm256_castps_si256(values);
  const __m256i magnitude = _mm256_slli_epi32(bits, 1);
  const __m256i exponent =
      _mm256_sub_epi32(_mm256_srli_epi32(magnitude, 24), _mm256_set1_epi32(127));
  largest = _mm256_max_epi32(largest, exponent);
  const __m256i zeros = _mm256_cmpeq_epi32(magnitude, _mm256_setzero_si256());
  const __m256i normal = _mm256_max_epi32(exponent, _mm256_set1_epi32(least));
  const __m256i exponents = _mm256_blendv_epi8(normal, _mm256_set1_epi32(-128), zeros);
  // How far the last 1 of a fraction of three bits is from the point.
  const __m256i lengths =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 3, 2, 3, 1, 3, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0));
  const __m256i fraction = _mm256_and_si256(_mm256_srli_epi32(bits, 20), _mm256_set1_epi32(7));
  const __m256i length = _mm256_shuffle_epi8(lengths, fraction);
  const __m256i units =
      _mm256_add_epi32(_mm256_sub_epi32(exponent, length), _mm256_set1_epi32(kUnitBias));
  const __m256i known = _mm256_blendv_epi8(units, _mm256_set1_epi32(kNoUnit), zeros);
  const __m256i sign = _mm256_slli_epi32(_mm256_srai_epi32(bits, 31), 7);  // -128 or 0
  const __m256i halves = _mm256_packs_epi32(exponents, _mm256_or_si256(known, sign));
  const __m256i bytes = _mm256_packs_epi16(halves, halves);
  return _mm_unpacklo_epi32(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
}

inline bool finite(__m256i largest) {
  const __m256i endless = _mm256_cmpeq_epi32(largest, _mm256_set1_epi32(kEndless));
  return _mm256_testz_si256(endless, endless) != 0;
}

inline bool split_columns(const float* b, int least, int column_blocks, Float8Columns& to) {
  __m256i largest = _mm256_setzero_si256();
  for (int i = 0; i < column_blocks * kFloat8Terms; ++i) {
    const __m128i bytes = factor_bytes(_mm256_loadu_ps(b + 8 * i), least, largest);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to.bytes + 16 * i), bytes);
  }
  return finite(largest);
}

// The bytes of 16 rows: [k][row][8 equal ones].
struct RowBytes {
  signed char exponents[kFloat8Terms * 16 * 8];
  signed char units[kFloat8Terms * 16 * 8];
};

// Stores the bytes of the rows 0, 2, 4, 6, 1, 3, 5, 7.
inline void store_rows(signed char* to, __m128i rows) {
  const __m256i both = _mm256_broadcastsi128_si256(rows);
  const __m256i first =
      _mm256_setr_epi64x(0, 0x0404040404040404, 0x0101010101010101, 0x0505050505050505);
  const __m256i last = _mm256_add_epi8(first, _mm256_set1_epi8(2));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_shuffle_epi8(both, first));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 32), _mm256_shuffle_epi8(both, last));
}

inline bool split_rows(const float* a, int least, RowBytes& to) {
  __m256i largest = _mm256_setzero_si256();
  for (int i = 0; i < 2 * kFloat8Terms; ++i) {  // 2 k + row / 8
    const float* lanes = a + i * 32;            // four equal ones for each row
    const __m256 first = _mm256_shuffle_ps(_mm256_loadu_ps(lanes), _mm256_loadu_ps(lanes + 8), 0);
    const __m256 last =
        _mm256_shuffle_ps(_mm256_loadu_ps(lanes + 16), _mm256_loadu_ps(lanes + 24), 0);
    const __m128i bytes = factor_bytes(_mm256_shuffle_ps(first, last, 0x88), least, largest);
    store_rows(to.exponents + i * 64, bytes);
    store_rows(to.units + i * 64, _mm_srli_si128(bytes, 8));
  }
  return finite(largest);
}

inline bool finite(float* const* d, int count) {
  __m256i largest = _mm256_setzero_si256();
  for (int i = 0; i < count * 32; i += 8) {
    const __m256i bits = _mm256_castps_si256(_mm256_loadu_ps(d[i / 32] + i % 32));
    largest = _mm256_max_epi32(largest, _mm256_srli_epi32(_mm256_slli_epi32(bits, 1), 24));
  }
  return finite(_mm256_sub_epi32(largest, _mm256_set1_epi32(127)));
}

// Where a sum with this largest exponent starts.
inline Vector start_of(Ints exponent) {
  return floats(((exponent + (10 + 127)) << 23) | (1 << 22));
}

// The sums of one vector. The accumulator is the whole sum if it is larger than 2^15 times any
// product, or if all products are 0: then `exponent` is beyond the bounds of `within`.
struct Sums {
  Vector old;
  Ints exponent;
  Ints within;
  Vector sum;

  void start(Vector accumulator, Ints products) {
    old = accumulator;
    const Ints bits = ints(old);
    const Ints of_old = ((bits >> 23) & 255) - 127;
    exponent = of_old > products ? of_old : products;
    const Ints high = exponent > 60 ? Ints{} + 60 : exponent;
    within = high < -100 ? Ints{} - 100 : high;
    const Vector begin = start_of(within);
    const Vector cut = begin + floats(bits & 0x7fffffff) - begin;
    sum = begin + floats(ints(cut) | (bits & ~0x7fffffff));
  }
  Vector end(Ints too_low) const {
    const Vector unit = floats((within + (127 - 13)) << 23);
    const Vector exact = multiply_add(convert(too_low), unit, sum - start_of(within));
    const Ints kept = (within == exponent ? ints(exact) : ints(old)) & ~0x3ff;
    return floats((kept << 1) != 0 ? kept : Ints{});  // no -0
  }
};

// Multiplies kCount blocks of 8 columns by a group of rows. `a` and the bytes of rows begin at the
// group's rows, `b` and the bytes of columns at the first block, and `d` at both. `lane` is the
// lane of the group's first row.
template <int kCount>
inline void multiply_group(const float* a, const signed char* row_exponents,
                           const signed char* row_units, const float* b, const signed char* columns,
                           float* const* d, int lane, bool accumulate) {
  constexpr int kBlock = kFloat8Terms * 8;
  Bytes largest[kCount];
  for (int j = 0; j < kCount; ++j) largest[j] = repeat_byte(-128);
  for (int k = 0; k < kFloat8Terms; ++k) {
    const Bytes of_rows = load_bytes(row_exponents + k * 128);
    for (int j = 0; j < kCount; ++j) {
      const Bytes of_columns = repeat_eight(columns + 2 * (j * kBlock + k * 8));
      largest[j] = larger_bytes(largest[j], add_saturated(of_rows, of_columns));
    }
  }
  Sums sums[kCount][2][2];
  Bytes bounds[kCount];
  Bytes too_low[kCount];
  signed char bytes[4 * ANNULUS_VECTOR];
  for (int j = 0; j < kCount; ++j) {
    store_ordered(bytes, largest[j]);
    for (int i = 0; i < 4; ++i) {
      const float* old = d[4 * j + i / 2] + lane + i % 2 * ANNULUS_VECTOR;
      sums[j][i / 2][i % 2].start(accumulate ? load(old) : zero(),
                                  widen_bytes(bytes + i * ANNULUS_VECTOR));
    }
    for (int i = 0; i < 4; ++i) {
      narrow_bytes(bytes + i * ANNULUS_VECTOR, sums[j][i / 2][i % 2].within);
    }
    // The byte of a product is below its bound if the product is negative and is cut.
    const Bytes units = add_saturated(load_ordered(bytes), repeat_byte(2 * kUnitBias - 13));
    bounds[j] = add_bytes(smaller_bytes(larger_bytes(units, repeat_byte(0)), repeat_byte(kNoUnit)),
                          repeat_byte(-128));
    too_low[j] = repeat_byte(0);
  }
  for (int k = 0; k < kFloat8Terms; ++k) {
    const Vector first = load(a + k * 64);
    const Vector last = load(a + k * 64 + ANNULUS_VECTOR);
    const Bytes of_rows = load_bytes(row_units + k * 128);
    for (int j = 0; j < kCount; ++j) {
      const Vector even = repeat_four(b + j * kBlock + k * 8);
      const Vector odd = repeat_four(b + j * kBlock + k * 8 + 4);
      sums[j][0][0].sum = multiply_add(first, even, sums[j][0][0].sum);
      sums[j][0][1].sum = multiply_add(last, even, sums[j][0][1].sum);
      sums[j][1][0].sum = multiply_add(first, odd, sums[j][1][0].sum);
      sums[j][1][1].sum = multiply_add(last, odd, sums[j][1][1].sum);
      const Bytes of_products =
          add_bytes(of_rows, repeat_eight(columns + 2 * (j * kBlock + k * 8) + 8));
      too_low[j] = count_below(too_low[j], of_products, bounds[j]);
    }
  }
  for (int j = 0; j < kCount; ++j) {
    store_ordered(bytes, too_low[j]);
    for (int i = 0; i < 4; ++i) {
      store(d[4 * j + i / 2] + lane + i % 2 * ANNULUS_VECTOR,
            sums[j][i / 2][i % 2].end(widen_bytes(bytes + i * ANNULUS_VECTOR)));
    }
  }
}

// The product of 16 rows. Returns false, and does nothing, if an element of A or an accumulator is
// infinite or NaN. Requires: all elements of B are finite, and the processor rounds downward.
inline bool multiply_float8(const float* a, int least, const float* b, const Float8Columns& columns,
                            int column_blocks, float* const* d, bool accumulate) {
  RowBytes bytes;
  if (!split_rows(a, least, bytes)) return false;
  if (accumulate && !finite(d, 4 * column_blocks)) return false;
  for (int row = 0; row < 16; row += kGroupRows) {
    const int lane = row % 8 * 4;
    const auto multiply = [&](auto function, int j) {
      const int block = j * kFloat8Terms * 8;
      function(a + row / 8 * 32 + lane, bytes.exponents + row * 8, bytes.units + row * 8, b + block,
               columns.bytes + 2 * block, d + 4 * j + row / 8 * 2, lane, accumulate);
    };
    int j = 0;
    for (; j + kBlocks <= column_blocks; j += kBlocks) multiply(multiply_group<kBlocks>, j);
    for (; j < column_blocks; ++j) multiply(multiply_group<1>, j);
  }
  return true;
}

}  // namespace annulus::simulator::ANNULUS_VECTOR_NAMESPACE
