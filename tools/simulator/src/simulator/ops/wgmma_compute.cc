// The arithmetic of wgmma. Every product is exact in fp32. Products of 8-bit floats are added to
// fp32 accumulators as an H200 adds them (ops/float8_kernel.h). All others are added in fp32, in
// ascending order of k, starting with D; tensor cores add in another order and with other
// roundings.

#include <immintrin.h>

#include <bit>
#include <cstring>

#include "base/of_thread.h"
#include "simulator/machine/cta.h"
#include "simulator/ops/handlers.h"
#include "simulator/ops/wgmma.h"
#include "simulator/ops/wgmma_product.h"

namespace annulus::simulator {
namespace {

constexpr std::size_t kMaxK = 32;
constexpr std::size_t kMaxN = 256;

// Widens eight 16-bit floats.
inline __m256 widen_halves(__m128i bits, MatrixInput type) {
  if (type == MatrixInput::kF16) return _mm256_cvtph_ps(bits);
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

// Widens the low eight of 16 bytes, which are 8-bit floats. E5m2 is the upper half of an fp16. E4m3
// has an exponent bias that is smaller by 8, no infinities, and a single NaN.
inline __m256 widen_bytes(__m128i bytes, MatrixInput type) {
  const __m128i wide = _mm_cvtepu8_epi16(bytes);
  if (type == MatrixInput::kE5m2) return _mm256_cvtph_ps(_mm_slli_epi16(wide, 8));
  const __m128i magnitude = _mm_and_si128(wide, _mm_set1_epi16(0x7f));
  const __m128i sign = _mm_slli_epi16(_mm_and_si128(wide, _mm_set1_epi16(0x80)), 8);
  const __m128i nan = _mm_cmpeq_epi16(magnitude, _mm_set1_epi16(0x7f));
  __m128i half = _mm_or_si128(_mm_slli_epi16(magnitude, 7), sign);
  half = _mm_or_si128(half, _mm_and_si128(nan, _mm_set1_epi16(0x7e00)));
  return _mm256_mul_ps(_mm256_cvtph_ps(half), _mm256_set1_ps(256.0f));
}

// Tf32 has 10 bits of fraction; the lower bits of the word are ignored.
inline __m256 cut_tf32(__m256 words) {
  return _mm256_and_ps(words, _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(~0x1fffu))));
}

// Reorders eight columns to 0, 2, 4, 6, 1, 3, 5, 7.
inline __m256 even_first(__m256 columns) {
  return _mm256_permutevar8x32_ps(columns, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
}

// Transposes eight rows of eight: to[8 i + j] = element i of row j.
inline void transpose(const __m256 (&rows)[8], float* to) {
  __m256 t[8], s[8];
  for (int i = 0; i < 4; ++i) {
    t[2 * i] = _mm256_unpacklo_ps(rows[2 * i], rows[2 * i + 1]);
    t[2 * i + 1] = _mm256_unpackhi_ps(rows[2 * i], rows[2 * i + 1]);
  }
  for (int i = 0; i < 2; ++i) {
    s[4 * i] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0x44);
    s[4 * i + 1] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0xee);
    s[4 * i + 2] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0x44);
    s[4 * i + 3] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    _mm256_store_ps(to + 8 * i, _mm256_permute2f128_ps(s[i], s[i + 4], 0x20));
    _mm256_store_ps(to + 8 * (i + 4), _mm256_permute2f128_ps(s[i], s[i + 4], 0x31));
  }
}

inline __m128i load_chunk(const Cta& cta, std::uint32_t offset) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(cta.shared.data() + offset));
}

// Reads B from shared memory into the layout of ops/wgmma_kernel.h.
void gather_columns(const Cta& cta, const MatrixForm& form, const std::uint32_t* chunks,
                    float* to) {
  const std::uint32_t k_count = form.k();
  const std::uint32_t column_blocks = form.n / 8;
  if (form.transpose_b) {
    for (std::uint32_t k = 0; k < k_count; ++k) {
      for (std::uint32_t j = 0; j < column_blocks; ++j) {
        const __m128i chunk = load_chunk(cta, chunks[k * column_blocks + j]);
        _mm256_store_ps(to + (j * k_count + k) * 8, even_first(widen_halves(chunk, form.b)));
      }
    }
    return;
  }
  constexpr std::uint32_t kOrder[8] = {0, 2, 4, 6, 1, 3, 5, 7};
  for (std::uint32_t j = 0; j < column_blocks; ++j) {
    float* block = to + j * k_count * 8;
    __m128i part[8][2];
    for (std::uint32_t i = 0; i < 8; ++i) {
      const std::uint32_t* row = chunks + (8 * j + kOrder[i]) * 2;
      part[i][0] = load_chunk(cta, row[0]);
      part[i][1] = load_chunk(cta, row[1]);
    }
    __m256 rows[8];
    for (std::uint32_t k = 0; k < k_count; k += 8) {
      for (std::size_t i = 0; i < 8; ++i) {
        if (form.b == MatrixInput::kTf32) {
          rows[i] = cut_tf32(_mm256_castsi256_ps(_mm256_set_m128i(part[i][1], part[i][0])));
        } else if (form.element_bytes() == 2) {
          rows[i] = widen_halves(part[i][k / 8], form.b);
        } else {
          const __m128i half = part[i][k / 16];
          rows[i] = widen_bytes(k % 16 == 0 ? half : _mm_srli_si128(half, 8), form.b);
        }
      }
      transpose(rows, block + k * 8);
    }
  }
}

// Reads from shared memory the fragments of A that a warp could also have in registers:
//   [0] rows g, first half of K   [1] rows g + 8   [2] rows g, second half   [3] rows g + 8
void gather_fragments(const Cta& cta, const MatrixForm& form, const std::uint32_t* chunks,
                      std::uint32_t warp, std::uint32_t (&to)[4][kLanes]) {
  for (std::uint32_t i = 0; i < 4; ++i) {
    for (std::uint32_t g = 0; g < 8; ++g) {
      const std::uint32_t row = 16 * warp + 8 * (i & 1) + g;
      std::byte* const four = reinterpret_cast<std::byte*>(&to[i][4 * g]);
      if (!form.transpose_a) {
        std::memcpy(four, cta.shared.data() + chunks[2 * row + i / 2], 16);
        continue;
      }
      for (std::uint32_t k = 0; k < 8; ++k) {
        const std::uint32_t chunk = chunks[(8 * (i / 2) + k) * 8 + row / 8];
        std::memcpy(four + 2 * k, cta.shared.data() + chunk + 2 * g, 2);
      }
    }
  }
}

// Widens one element of each of eight words to fp32.
inline __m256 take_element(__m256i words, MatrixInput type, int element) {
  if (type == MatrixInput::kTf32) return cut_tf32(_mm256_castsi256_ps(words));
  const int bits = type <= MatrixInput::kBf16 ? 16 : 8;
  const __m256i low = _mm256_and_si256(_mm256_srli_epi32(words, bits * element),
                                       _mm256_set1_epi32((1 << bits) - 1));
  const __m128i halves =
      _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
  if (bits == 16) return widen_halves(halves, type);
  return widen_bytes(_mm_packus_epi16(halves, halves), type);
}

template <int kLane>
inline __m256 spread_quad(__m256 values) {
  return _mm256_permute_ps(values, kLane * 0x55);
}

// Copies A from the fragments of a warp into the layout of ops/wgmma_kernel.h. Element e of lane 4
// g + t is A[g][per_word * t + e], and every lane of quad g gets it.
void spread_rows(const MatrixForm& form, const std::uint32_t (&from)[4][kLanes], float* to) {
  const int per_word = static_cast<int>(4 / form.element_bytes());
  const __m256 sign = _mm256_set1_ps(form.negate ? -0.0f : 0.0f);
  for (std::size_t i = 0; i < 4; ++i) {
    const std::size_t half = i / 2 * static_cast<std::size_t>(4 * per_word);  // the half of K
    for (std::size_t lane = 0; lane < kLanes; lane += 8) {
      const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(&from[i][lane]));
      for (int e = 0; e < per_word; ++e) {
        const __m256 x = _mm256_xor_ps(take_element(words, form.a, e), sign);
        float* place = to + (half + static_cast<std::size_t>(e)) * 64 + (i & 1) * 32 + lane;
        const auto step = static_cast<std::size_t>(per_word) * 64;
        _mm256_store_ps(place, spread_quad<0>(x));
        _mm256_store_ps(place + step, spread_quad<1>(x));
        _mm256_store_ps(place + 2 * step, spread_quad<2>(x));
        _mm256_store_ps(place + 3 * step, spread_quad<3>(x));
      }
    }
  }
}

struct Operands {
  alignas(64) float a[kMaxK * 64];
  alignas(64) float b[kMaxK * kMaxN];
  alignas(64) float halves[kMaxN / 2 * kLanes];
  alignas(64) std::uint32_t fragments[4][kLanes];
  Float8Columns columns;
  bool finite_columns = false;
};

// The product for f16 accumulators. Two columns share a register.
void multiply_into_halves(std::byte* registers, const MatrixForm& form, Operands& operands,
                          WgmmaProduct product, bool accumulate) {
  float* d[kMaxN / 2];
  for (std::size_t i = 0; i < form.n / 2; ++i) d[i] = operands.halves + i * kLanes;
  for (std::size_t i = 0; accumulate && i < form.n / 4; ++i) {
    const auto* pairs = reinterpret_cast<const std::uint32_t*>(registers + form.d_slots[i]);
    for (int lane = 0; lane < kLanes; ++lane) {
      d[2 * i][lane] = widen(Half{static_cast<std::uint16_t>(pairs[lane])});
      d[2 * i + 1][lane] = widen(Half{static_cast<std::uint16_t>(pairs[lane] >> 16)});
    }
  }
  product(operands.a, operands.b, static_cast<int>(form.k()), static_cast<int>(form.n / 8), d,
          accumulate);
  for (std::size_t i = 0; i < form.n / 4; ++i) {
    auto* pairs = reinterpret_cast<std::uint32_t*>(registers + form.d_slots[i]);
    for (int lane = 0; lane < kLanes; ++lane) {
      pairs[lane] = narrow<Half>(d[2 * i][lane]).bits |
                    (static_cast<std::uint32_t>(narrow<Half>(d[2 * i + 1][lane]).bits) << 16);
    }
  }
}

// The exponent of the smallest normal number of an 8-bit format.
int least_exponent(MatrixInput type) { return type == MatrixInput::kE4m3 ? -6 : -14; }

// While it exists, the processor rounds downward.
class RoundDownward {
 public:
  RoundDownward() { _mm_setcsr(before_ | _MM_ROUND_DOWN); }
  ~RoundDownward() { _mm_setcsr(before_); }
  RoundDownward(const RoundDownward&) = delete;
  RoundDownward& operator=(const RoundDownward&) = delete;

 private:
  unsigned before_ = _mm_getcsr();
};

void split_columns(const MatrixForm& form, Operands& operands) {
  static const Float8Product kProduct = best_float8_product();
  operands.finite_columns = kProduct.split(operands.b, least_exponent(form.b),
                                           static_cast<int>(form.n / 8), operands.columns);
}

// The product of 8-bit floats with fp32 accumulators. Returns false, and does nothing, if an
// operand is infinite or NaN: then the order of the sum does not matter.
bool multiply_float8(const MatrixForm& form, const Operands& operands, float* const* d,
                     bool accumulate) {
  static const Float8Product kProduct = best_float8_product();
  if (!operands.finite_columns) return false;
  const RoundDownward rounding;
  return kProduct.multiply(operands.a, least_exponent(form.a), operands.b, operands.columns,
                           static_cast<int>(form.n / 8), d, accumulate);
}

}  // namespace

void compute(Cta& cta, int warpgroup, const MatrixProduct& product, std::uint32_t warps) {
  static const WgmmaProduct kProduct = best_wgmma_product();
  auto& operands = base::of_thread<Operands>();
  const MatrixForm& form = *product.form;
  const std::size_t a_chunks = form.a_in_registers ? 0 : form.transpose_a ? 16 * 8 : 64 * 2;
  const std::uint32_t* chunks = product.offsets.data();
  gather_columns(cta, form, chunks + a_chunks, operands.b);
  const bool cut_sums = form.element_bytes() == 1 && !form.half_accumulators;
  if (cut_sums) split_columns(form, operands);
  for (std::uint32_t rest = warps; rest != 0; rest &= rest - 1) {
    const auto warp = static_cast<std::uint32_t>(lowest_lane(rest));
    if (form.a_in_registers) {
      spread_rows(form, product.a[warp], operands.a);
    } else {
      gather_fragments(cta, form, chunks, warp, operands.fragments);
      spread_rows(form, operands.fragments, operands.a);
    }
    std::byte* registers = cta.warps[static_cast<std::size_t>(4 * warpgroup) + warp].registers;
    if (form.half_accumulators) {
      multiply_into_halves(registers, form, operands, kProduct, product.accumulate);
      continue;
    }
    float* d[kMaxN / 2];
    for (std::size_t i = 0; i < form.n / 2; ++i) {
      d[i] = reinterpret_cast<float*>(registers + form.d_slots[i]);
    }
    if (cut_sums && multiply_float8(form, operands, d, product.accumulate)) continue;
    kProduct(operands.a, operands.b, static_cast<int>(form.k()), static_cast<int>(form.n / 8), d,
             product.accumulate);
  }
}

}  // namespace annulus::simulator
