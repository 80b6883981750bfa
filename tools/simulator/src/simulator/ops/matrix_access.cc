// The 8 x 8 matrices of 16-bit elements that a warp loads, stores and transposes (PTX ISA 9.0,
// section 9.7.14.5): ldmatrix, stmatrix, movmatrix.

#include <immintrin.h>

#include <cstring>

#include "simulator/ops/access.h"
#include "simulator/ops/handlers.h"

namespace annulus::simulator {
namespace {

// Transposes 8 x 8 elements of 16 bits, in rows of 16 bytes.
inline void transpose_matrix(const std::byte* const (&rows)[8], std::byte* to) {
  __m128i r[8];
  for (int i = 0; i < 8; ++i) r[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows[i]));
  __m128i s[8];
  for (int i = 0; i < 4; ++i) {
    s[2 * i] = _mm_unpacklo_epi16(r[2 * i], r[2 * i + 1]);
    s[2 * i + 1] = _mm_unpackhi_epi16(r[2 * i], r[2 * i + 1]);
  }
  const __m128i t0 = _mm_unpacklo_epi32(s[0], s[2]);
  const __m128i t1 = _mm_unpackhi_epi32(s[0], s[2]);
  const __m128i t2 = _mm_unpacklo_epi32(s[1], s[3]);
  const __m128i t3 = _mm_unpackhi_epi32(s[1], s[3]);
  const __m128i t4 = _mm_unpacklo_epi32(s[4], s[6]);
  const __m128i t5 = _mm_unpackhi_epi32(s[4], s[6]);
  const __m128i t6 = _mm_unpacklo_epi32(s[5], s[7]);
  const __m128i t7 = _mm_unpackhi_epi32(s[5], s[7]);
  auto* out = reinterpret_cast<__m128i*>(to);
  _mm_storeu_si128(out + 0, _mm_unpacklo_epi64(t0, t4));
  _mm_storeu_si128(out + 1, _mm_unpackhi_epi64(t0, t4));
  _mm_storeu_si128(out + 2, _mm_unpacklo_epi64(t1, t5));
  _mm_storeu_si128(out + 3, _mm_unpackhi_epi64(t1, t5));
  _mm_storeu_si128(out + 4, _mm_unpacklo_epi64(t2, t6));
  _mm_storeu_si128(out + 5, _mm_unpackhi_epi64(t2, t6));
  _mm_storeu_si128(out + 6, _mm_unpacklo_epi64(t3, t7));
  _mm_storeu_si128(out + 7, _mm_unpackhi_epi64(t3, t7));
}

// Lane 8 i + r has the address of row r of matrix i. Register i of lane 4 r + t is word t of row r,
// so a register of 32 lanes holds the matrix row by row.
template <bool kTranspose, bool kChecked>
void ldmatrix(Warp& warp, const Inst& inst, Mask mask) {
  Cta& cta = *warp.cta;
  if (mask != kFull) {
    raise_at(FaultKind::kInvalidOperand, lowest_lane(mask),
             "ldmatrix needs all 32 lanes, but only lanes {:#010x} execute it", mask);
  }
  LaneAddresses addresses;
  lane_addresses(warp, inst.a, inst.small[0], inst.imm, addresses);
  const int matrices = inst.small[1];
  const Mask rows = matrices == 4 ? kFull : (1u << (8 * matrices)) - 1;
  LanePointers pointers;
  reach_shared<kChecked>(warp, rows, addresses, 16, pointers);
  if (kChecked) {
    for (int lane = 0; lane < 8 * matrices; ++lane) {
      cta.shadow.read(warp.index, SharedShadow::kCollective,
                      shared_offset(cta, pointers[static_cast<std::size_t>(lane)]), 16);
    }
  }
  for (int i = 0; i < matrices; ++i) {
    std::byte* to = warp.registers + cta.program->slots[inst.aux + static_cast<std::uint32_t>(i)];
    const std::byte* row[8];
    for (int r = 0; r < 8; ++r) row[r] = pointers[static_cast<std::size_t>(8 * i + r)];
    if constexpr (kTranspose) {
      transpose_matrix(row, to);
    } else {
      for (int r = 0; r < 8; ++r) std::memcpy(to + 16 * r, row[r], 16);
    }
  }
}

void movmatrix(Warp& warp, const Inst& inst, Mask mask) {
  if (mask != kFull) raise(FaultKind::kInvalidOperand, "movmatrix needs all 32 lanes");
  std::byte copy[128];
  std::memcpy(copy, warp.registers + inst.a, sizeof(copy));
  const std::byte* row[8];
  for (int r = 0; r < 8; ++r) row[r] = copy + 16 * r;
  transpose_matrix(row, warp.registers + inst.d);
}

// Register i of lane 4 r + t is word t of row r of matrix i, or, with .trans, elements 2t and 2t +
// 1 of column r. Lane 8 i + r has the target address of row r of matrix i.
template <bool kTranspose, bool kChecked>
void stmatrix(Warp& warp, const Inst& inst, Mask mask) {
  Cta& cta = *warp.cta;
  if (mask != kFull) {
    raise_at(FaultKind::kInvalidOperand, lowest_lane(mask),
             "stmatrix needs all 32 lanes, but only lanes {:#010x} execute it", mask);
  }
  LaneAddresses addresses;
  lane_addresses(warp, inst.a, inst.small[0], inst.imm, addresses);
  const int matrices = inst.small[1];
  const Mask lanes = matrices == 4 ? kFull : (1u << (8 * matrices)) - 1;
  LanePointers pointers;
  reach_shared<kChecked>(warp, lanes, addresses, 16, pointers);
  for (int i = 0; i < matrices; ++i) {
    std::uint16_t rows[8][8];
    const auto* words =
        warp.lanes<std::uint32_t>(cta.program->slots[inst.aux + static_cast<std::uint32_t>(i)]);
    for (int lane = 0; lane < kLanes; ++lane) {
      const int r = lane / 4;
      const int c = lane % 4 * 2;
      const auto low = static_cast<std::uint16_t>(words[lane]);
      const auto high = static_cast<std::uint16_t>(words[lane] >> 16);
      (kTranspose ? rows[c][r] : rows[r][c]) = low;
      (kTranspose ? rows[c + 1][r] : rows[r][c + 1]) = high;
    }
    for (int r = 0; r < 8; ++r) {
      std::byte* to = pointers[static_cast<std::size_t>(8 * i + r)];
      if (kChecked) {
        // A row has words of several lanes. It is recorded as written by several lanes, not by all
        // together, so that the fence or arrival of one lane does not count for the others.
        cta.shadow.write(warp.index, SharedShadow::kSeveral, shared_offset(cta, to), 16,
                         std::memcmp(to, rows[r], 16) != 0);
      }
      std::memcpy(to, rows[r], 16);
    }
  }
}

// The common part of ldmatrix and stmatrix: an operand with the addresses of the rows, and one
// register for each matrix, read or written. `as_slot` returns the slot of a register.
template <typename AsSlot>
void decode_matrices(Decoder& decoder, const Decoder::Address& address,
                     const ptx::Operand& fragment, const AsSlot& as_slot) {
  Inst& inst = decoder.inst();
  inst.convergence = Convergence::kWarp;
  if (!decoder.has("m8n8") || !decoder.has("b16")) {
    decoder.unsupported("this shape is not modelled");
  }
  const std::size_t matrices = decoder.has("x4") ? 4 : decoder.has("x2") ? 2 : 1;
  inst.a = address.base;
  inst.imm = address.offset;
  inst.small[0] = address.base_bits == 64;
  inst.small[1] = static_cast<std::uint8_t>(matrices);
  std::vector<ptx::Operand> parts = {fragment};
  if (fragment.kind == ptx::OperandKind::kVector) parts = fragment.elements;
  if (parts.size() != matrices) decoder.malformed("the fragment has the wrong number of registers");
  std::vector<std::uint32_t> slots;
  for (const ptx::Operand& part : parts) slots.push_back(as_slot(part, Type{Type::kBits, 32}));
  inst.aux = decoder.list(slots);
}

}  // namespace

void decode_ldmatrix(Decoder& decoder) {
  decoder.inst().kind = Class::kSharedLoad;
  decode_matrices(decoder, decoder.address(decoder.operand(1)), decoder.operand(0),
                  [&](const ptx::Operand& part, Type type) { return decoder.out(part, type); });
  if (decoder.has("trans")) {
    decoder.handler(ldmatrix<true, false>, ldmatrix<true, true>);
  } else {
    decoder.handler(ldmatrix<false, false>, ldmatrix<false, true>);
  }
}

void decode_stmatrix(Decoder& decoder) {
  decoder.inst().kind = Class::kSharedStore;
  decode_matrices(decoder, decoder.address(decoder.operand(0)), decoder.operand(1),
                  [&](const ptx::Operand& part, Type type) { return decoder.in(part, type); });
  if (decoder.has("trans")) {
    decoder.handler(stmatrix<true, false>, stmatrix<true, true>);
  } else {
    decoder.handler(stmatrix<false, false>, stmatrix<false, true>);
  }
}

void decode_movmatrix(Decoder& decoder) {
  Inst& inst = decoder.inst();
  inst.kind = Class::kShuffle;
  inst.convergence = Convergence::kWarp;
  inst.a = decoder.in(1, Type{Type::kBits, 32});
  inst.d = decoder.out(0, Type{Type::kBits, 32});
  decoder.handler(movmatrix);
}

}  // namespace annulus::simulator
