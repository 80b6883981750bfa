// mma.sync of 16-bit floats (PTX ISA 9.0, section 9.7.14.5). No manual describes how tensor cores
// round. Here every product is added in fp32, in ascending order of k.

#include <immintrin.h>

#include <bit>
#include <cstring>

#include "simulator/ops/access.h"
#include "simulator/ops/mma.h"
#include "simulator/ops/mma_product.h"

namespace annulus::simulator {
namespace {

// Widens the halves of 32 registers to fp32.
template <typename T>
inline void split_halves(const std::uint32_t* from, float* low, float* high) {
  for (int i = 0; i < kLanes; i += 8) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
    if constexpr (std::is_same_v<T, Brain>) {
      _mm256_storeu_ps(low + i, _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16)));
      _mm256_storeu_ps(high + i, _mm256_castsi256_ps(_mm256_and_si256(
                                     bits, _mm256_set1_epi32(static_cast<int>(0xffff0000u)))));
    } else {
      const auto narrow_low = [](__m256i words) {  // the low halves of 8 words, together
        const __m256i packed = _mm256_packus_epi32(words, words);
        return _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08));
      };
      const __m256i low_bits = _mm256_and_si256(bits, _mm256_set1_epi32(0xffff));
      const __m256i high_bits = _mm256_srli_epi32(bits, 16);
      _mm256_storeu_ps(low + i, _mm256_cvtph_ps(narrow_low(low_bits)));
      _mm256_storeu_ps(high + i, _mm256_cvtph_ps(narrow_low(high_bits)));
    }
  }
}

// Moves x[4 n + t] to even[t][n / 2] (n even) and odd[t][n / 2] (n odd), as transposes of 4 x 4.
inline void transpose_quads(const float* x, float (&even)[4][4], float (&odd)[4][4]) {
  const __m256 r0 = _mm256_loadu_ps(x);
  const __m256 r1 = _mm256_loadu_ps(x + 8);
  const __m256 r2 = _mm256_loadu_ps(x + 16);
  const __m256 r3 = _mm256_loadu_ps(x + 24);
  const __m256 t0 = _mm256_unpacklo_ps(r0, r1);
  const __m256 t1 = _mm256_unpackhi_ps(r0, r1);
  const __m256 t2 = _mm256_unpacklo_ps(r2, r3);
  const __m256 t3 = _mm256_unpackhi_ps(r2, r3);
  const __m256 columns[4] = {_mm256_shuffle_ps(t0, t2, 0x44), _mm256_shuffle_ps(t0, t2, 0xee),
                             _mm256_shuffle_ps(t1, t3, 0x44), _mm256_shuffle_ps(t1, t3, 0xee)};
  for (int t = 0; t < 4; ++t) {
    _mm_store_ps(even[t], _mm256_castps256_ps128(columns[t]));
    _mm_store_ps(odd[t], _mm256_extractf128_ps(columns[t], 1));
  }
}

// mma.sync. `slots` holds d (4, or 2 of f16), a (4, or 2 for k8), b (2, or 1 for k8), c (like d).
// The fragments are widened into the layout of ops/mma_kernel.h, which multiplies in vectors.
// Sources are read before the product writes d, so they may be the same registers.
template <typename T, int kRegisters, bool kNarrowAccumulator>
void mma(Warp& warp, const Inst& inst, Mask mask) {
  Cta& cta = *warp.cta;
  require_mma_warp(mask);
  const std::uint32_t* slots = &cta.program->slots[inst.aux];
  constexpr int kAccumulators = kNarrowAccumulator ? 2 : 4;
  MmaOperands operands;
  for (int i = 0; i < kRegisters; ++i) {
    split_halves<T>(warp.lanes<std::uint32_t>(slots[kAccumulators + i]), operands.a[i][0],
                    operands.a[i][1]);
  }
  for (int h = 0; h < kRegisters / 2; ++h) {
    alignas(64) float halves[2][32];
    split_halves<T>(warp.lanes<std::uint32_t>(slots[kAccumulators + kRegisters + h]), halves[0],
                    halves[1]);
    for (int p = 0; p < 2; ++p) {
      transpose_quads(halves[p], operands.b[h][p][0], operands.b[h][p][1]);
    }
  }
  const std::uint32_t* c_slots = slots + kAccumulators + kRegisters + kRegisters / 2;
  static const MmaProduct multiply = best_mma_product();
  cta.counts.matrix_flop += std::uint64_t{2} * 16 * 8 * 4 * kRegisters;
  if constexpr (kNarrowAccumulator) {
    // With f16 accumulators c0 and c1 share a register, and c2 and c3 share another.
    alignas(64) float c[4][32];
    alignas(64) float d[4][32];
    for (int i = 0; i < 2; ++i) {
      split_halves<Half>(warp.lanes<std::uint32_t>(c_slots[i]), c[2 * i], c[2 * i + 1]);
    }
    for (int i = 0; i < 4; ++i) {
      operands.c[i] = c[i];
      operands.d[i] = d[i];
    }
    multiply(operands, kRegisters == 4);
    for (int i = 0; i < 2; ++i) {
      auto* out = warp.lanes<std::uint32_t>(slots[i]);
      for (int lane = 0; lane < kLanes; ++lane) {
        out[lane] = narrow<Half>(d[2 * i][lane]).bits |
                    (static_cast<std::uint32_t>(narrow<Half>(d[2 * i + 1][lane]).bits) << 16);
      }
    }
  } else {
    for (int i = 0; i < 4; ++i) {
      operands.c[i] = warp.lanes<float>(c_slots[i]);
      operands.d[i] = warp.lanes<float>(slots[i]);
    }
    multiply(operands, kRegisters == 4);
  }
}

}  // namespace

void take_mma_fragment(Decoder& decoder, std::size_t operand, int registers,
                       std::vector<std::uint32_t>& slots) {
  const ptx::Operand& whole = decoder.operand(operand);
  std::vector<ptx::Operand> parts = {whole};
  if (whole.kind == ptx::OperandKind::kVector) parts = whole.elements;
  if (parts.size() != static_cast<std::size_t>(registers)) {
    decoder.malformed("a fragment has the wrong number of registers");
  }
  const Type word{Type::kBits, 32};
  for (const ptx::Operand& part : parts) {
    slots.push_back(operand == 0 ? decoder.out(part, word) : decoder.in(part, word));
  }
}

void require_mma_warp(Mask mask) {
  if (mask != kFull) {
    raise_at(FaultKind::kInvalidOperand, lowest_lane(mask),
             "mma needs all 32 lanes, but only lanes {:#010x} execute it", mask);
  }
}

// Supported are m16n8k8 and m16n8k16 of f16 and bf16, A by rows and B by columns, with accumulators
// of fp32, or of f16 for f16, and the forms of mma_words.cc.
void decode_mma(Decoder& decoder) {
  Inst& inst = decoder.inst();
  inst.kind = Class::kMatrix;
  inst.convergence = Convergence::kWarp;
  if (decoder.has("sp") || decoder.has("sp::ordered_metadata")) {
    decoder.unsupported("sparse matrices are not modelled");
  }
  if (decode_mma_of_words(decoder)) return;
  if (decoder.has("tf32") || decoder.has("e4m3") || decoder.has("e5m2")) {
    decoder.unsupported("this shape is not modelled with these types");
  }
  const bool k16 = decoder.has("m16n8k16");
  if ((!k16 && !decoder.has("m16n8k8")) || !decoder.has("row") || !decoder.has("col")) {
    decoder.unsupported("this shape is not modelled");
  }
  // the types are .dtype.atype.btype.ctype
  const Type d = decoder.type_from_end(3);
  const Type a = decoder.type_from_end(2);
  const Type b = decoder.type_from_end(1);
  const Type c = decoder.type_from_end(0);
  const Type f16{Type::kFloat, 16};
  const Type b16{Type::kBrain, 16};
  const Type f32{Type::kFloat, 32};
  if (a != b || (a != f16 && a != b16) || d != c || (d != f32 && (d != f16 || a != f16))) {
    decoder.unsupported("these types are not modelled");
  }
  const bool narrow = d == f16;
  const int registers = k16 ? 4 : 2;
  std::vector<std::uint32_t> slots;
  take_mma_fragment(decoder, 0, narrow ? 2 : 4, slots);
  take_mma_fragment(decoder, 1, registers, slots);
  take_mma_fragment(decoder, 2, registers / 2, slots);
  take_mma_fragment(decoder, 3, narrow ? 2 : 4, slots);
  inst.aux = decoder.list(slots);
  if (narrow) {
    decoder.handler(k16 ? mma<Half, 4, true> : mma<Half, 2, true>);
  } else if (a == f16) {
    decoder.handler(k16 ? mma<Half, 4, false> : mma<Half, 2, false>);
  } else {
    decoder.handler(k16 ? mma<Brain, 4, false> : mma<Brain, 2, false>);
  }
}

}  // namespace annulus::simulator
