// stmatrix (PTX ISA 9.0, section 9.7.14.6): a warp stores 8 x 8 matrices of 16-bit elements.

#include <cstring>

#include "simulator/ops/access.h"
#include "simulator/ops/handlers.h"

namespace annulus::simulator {
namespace {

// Register i of lane 4 r + t is word t of row r of matrix i, or with .trans elements 2t and 2t + 1
// of column r. Lane 8 i + r names where row r of matrix i goes.
template <bool kTranspose, bool kChecked>
void stmatrix(Warp& warp, const Inst& inst, Mask mask) {
  Cta& cta = *warp.cta;
  if (mask != kFull) {
    raise_at(FaultKind::kInvalidOperand, lowest_lane(mask),
             "stmatrix needs all 32 lanes, the warp has {:#010x}", mask);
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

}  // namespace

void decode_stmatrix(Decoder& decoder) {
  Inst& inst = decoder.inst();
  inst.kind = Class::kSharedStore;
  inst.convergence = Convergence::kWarp;
  if (!decoder.has("m8n8") || !decoder.has("b16")) {
    decoder.unsupported("this shape is not modelled");
  }
  const std::size_t matrices = decoder.has("x4") ? 4 : decoder.has("x2") ? 2 : 1;
  const Decoder::Address address = decoder.address(decoder.operand(0));
  inst.a = address.base;
  inst.imm = address.offset;
  inst.small[0] = address.base_bits == 64;
  inst.small[1] = static_cast<std::uint8_t>(matrices);
  const ptx::Operand& source = decoder.operand(1);
  std::vector<ptx::Operand> parts = {source};
  if (source.kind == ptx::OperandKind::kVector) parts = source.elements;
  if (parts.size() != matrices) decoder.malformed("the fragment has another number of registers");
  std::vector<std::uint32_t> slots;
  for (const ptx::Operand& part : parts) {
    slots.push_back(decoder.in(part, Type{Type::kBits, 32}));
  }
  inst.aux = decoder.list(slots);
  if (decoder.has("trans")) {
    decoder.handler(stmatrix<true, false>, stmatrix<true, true>);
  } else {
    decoder.handler(stmatrix<false, false>, stmatrix<false, true>);
  }
}

}  // namespace annulus::simulator
