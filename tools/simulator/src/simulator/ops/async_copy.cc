// cp.async (PTX ISA 9.0, section 9.7.9.25.3). simulator/machine/async_copies.h describes when the
// bytes land.

#include "simulator/ops/access.h"
#include "simulator/ops/bulk_copy.h"
#include "simulator/ops/handlers.h"
#include "simulator/ops/shared_address.h"

namespace annulus::simulator {
namespace {

// The Inst of a copy: a the destination's base, b the source's base, c the source size or kNoSlot;
// imm the source's offset, aux the destination's offset; small[0] the source base has 64 bits,
// small[1] the number of bytes, small[2] the destination base has 64 bits, small[3] an
// ignore-source predicate is in d, small[4] that predicate is negated.
template <bool kChecked>
void copy(Warp& warp, const Inst& inst, Mask mask) {
  LaneAddresses to, from;
  lane_addresses(warp, inst.a, inst.small[2], static_cast<std::int32_t>(inst.aux), to);
  lane_addresses(warp, inst.b, inst.small[0], inst.imm, from);
  const std::uint32_t bytes = inst.small[1];
  LanePointers pointers;
  reach_shared<kChecked>(warp, mask, to, bytes, pointers);
  std::uint32_t offsets[kLanes];
  std::uint32_t sizes[kLanes];
  Mask whole = 0;
  Mask part = 0;
  const Mask ignored = inst.small[3] ? warp.predicate(inst.d, inst.small[4]) : 0;
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    offsets[lane] = shared_offset(*warp.cta, pointers[static_cast<std::size_t>(lane)]);
    sizes[lane] = inst.c == kNoSlot ? bytes : warp.lanes<std::uint32_t>(inst.c)[lane];
    if (sizes[lane] > bytes) {
      raise_at(FaultKind::kInvalidOperand, lane,
               "source size {} is larger than the {} bytes of the copy", sizes[lane], bytes);
    }
    if ((ignored >> lane) & 1) sizes[lane] = 0;
    (sizes[lane] == bytes ? whole : part) |= 1u << lane;
  }
  if (whole != 0) {
    reach_global<kChecked>(warp, whole, from, bytes, Access::kLoad, AccessKind::kRead, pointers);
    if (kChecked) note_load(warp, whole, from, bytes, MemoryOrder::kWeak);
  }
  for (Mask rest = part; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    const std::uint64_t address = from[static_cast<std::size_t>(lane)];
    if (address % bytes != 0) {
      raise_at(FaultKind::kMisaligned, lane,
               "global address {:#x} is not a multiple of the {} bytes copied", address, bytes);
    }
    check_global_read(warp, lane, address, sizes[lane]);
    if (kChecked) note_load(warp, lane, address, sizes[lane]);
  }
  warp.copies.issue(warp, mask, offsets, from.data(), sizes, bytes, kChecked);
}

void commit(Warp& warp, const Inst&, Mask mask) { warp.copies.commit(mask); }

// The Inst: imm the number of groups that may stay in flight; small[0] is 1 for wait_all, which
// waits for uncommitted copies too.
template <bool kChecked>
void wait(Warp& warp, const Inst& inst, Mask mask) {
  warp.copies.wait(warp, mask, static_cast<std::uint32_t>(inst.imm), inst.small[0] != 0, kChecked);
}

// The Inst: a the base, imm the offset, small[0] the base has 64 bits, small[1] ShareSpace,
// small[2] .noinc. Without .noinc the mbarrier expects one more arrival in this phase, which is
// this one.
void arrive_after_copies(Warp& warp, const Inst& inst, Mask mask) {
  std::uint32_t offsets[kLanes] = {};
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    const SharedPlace place = shared_place(warp, inst.a, inst.small[0] != 0, inst.imm,
                                           static_cast<ShareSpace>(inst.small[1]), lane);
    Cta& cta = *warp.cta;
    if (place.cta != &cta) {
      raise_at(FaultKind::kInvalidOperand, lane, "the mbarrier is in another CTA");
    }
    offsets[lane] = place.offset;
    Mbarrier& mbarrier = cta.mbarriers.use(cta, warp, place.offset, lane, false);
    if (inst.small[2] == 0) cta.mbarriers.expect_one_more(mbarrier, lane);
  }
  warp.copies.arrive(warp, mask, offsets);
}

void decode_arrive(Decoder& decoder) {
  Inst& inst = decoder.inst();
  if (!decoder.has("arrive") || !decoder.has("b64")) decoder.unsupported();
  const Decoder::Address address = decoder.address(decoder.operand(0));
  inst.a = address.base;
  inst.imm = address.offset;
  inst.small[0] = address.base_bits == 64;
  inst.small[1] = static_cast<std::uint8_t>(share_space(decoder, address));
  inst.small[2] = decoder.has("noinc");
  decoder.handler(arrive_after_copies);
}

}  // namespace

// Decodes the opcode cp: cp.async here, with commit_group, wait_group, wait_all and mbarrier.arrive
// (9.7.13.15.15), and the bulk forms in bulk_decode.cc. The fourth operand of a copy is its source
// size or an ignore-source predicate, depending on the type of its register.
void decode_cp(Decoder& decoder) {
  Inst& inst = decoder.inst();
  inst.kind = Class::kAsyncCopy;
  if (decoder.has("bulk")) return decode_bulk(decoder);
  if (!decoder.has("async")) decoder.unsupported();
  if (decoder.has("mbarrier")) return decode_arrive(decoder);
  if (decoder.has("commit_group")) return decoder.handler(commit);
  if (decoder.has("wait_group")) {
    inst.imm = decoder.immediate(0);
    return decoder.handler(wait<false>, wait<true>);
  }
  if (decoder.has("wait_all")) {
    inst.small[0] = 1;
    return decoder.handler(wait<false>, wait<true>);
  }
  const Decoder::Address to = decoder.address(decoder.operand(0));
  const Decoder::Address from = decoder.address(decoder.operand(1));
  const std::int64_t bytes = decoder.immediate(2);
  if (bytes != 4 && bytes != 8 && bytes != 16)
    decoder.malformed("the size of a copy is 4, 8 or 16 bytes");
  if (decoder.has("cg") && bytes != 16) decoder.malformed(".cg copies 16 bytes");
  inst.a = to.base;
  inst.aux = static_cast<std::uint32_t>(to.offset);
  inst.small[2] = to.base_bits == 64;
  inst.b = from.base;
  inst.imm = from.offset;
  inst.small[0] = from.base_bits == 64;
  inst.small[1] = static_cast<std::uint8_t>(bytes);
  // A cache policy of 64 bits may follow, which has no effect here.
  const std::size_t last = decoder.operands() - (decoder.has("L2::cache_hint") ? 1 : 0);
  if (last > 3) {
    const ptx::Operand& size = decoder.operand(3);
    const bool predicate =
        size.kind == ptx::OperandKind::kRegister &&
        decoder.function().registers[static_cast<std::size_t>(size.reg)].bits == 1;
    if (predicate) {
      inst.d = decoder.predicate_in(size, &inst.small[4]);
      inst.small[3] = 1;
    } else {
      inst.c = decoder.in(3, kU32);
    }
  }
  decoder.handler(copy<false>, copy<true>);
}

}  // namespace annulus::simulator
