// The issue of bulk copies: source and target are read and checked, and the copy is added to the
// copies under way.

#include "simulator/ops/bulk_copy.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "simulator/machine/cluster.h"
#include "simulator/machine/reduce.h"
#include "simulator/ops/handlers.h"
#include "simulator/ops/shared_address.h"

namespace annulus::simulator::bulk {
namespace {

constexpr std::uint32_t kAlignment = 16;
constexpr std::uint32_t kTensorAlignment = 128;

// Reads an address in shared memory of the CTA, or of a CTA of the cluster, and checks it.
SharedPlace place_at(const Warp& warp, const std::uint32_t* slots, std::uint32_t which,
                     ShareSpace space, std::uint32_t bytes, std::uint32_t alignment, int lane) {
  const SharedPlace place = shared_place(warp, slots[which], slots[which + 1] != 0,
                                         static_cast<std::int32_t>(slots[which + 2]), space, lane);
  const std::uint32_t address = place.offset + kSharedBase;
  if (address % alignment != 0) {
    raise_at(FaultKind::kMisaligned, lane, "shared address {} is not a multiple of {}", address,
             alignment);
  }
  const std::size_t size = place.cta->shared.size();
  if (place.offset > size || bytes > size - place.offset) {
    raise_at(FaultKind::kOutOfBounds, lane,
             "{} bytes at shared address {}, but the CTA has {} bytes from address {} on", bytes,
             address, size, kSharedBase);
  }
  return place;
}

// Checks the accesses of a copy to global memory, and marks the bytes that it writes. The bytes
// themselves move later.
template <bool kChecked>
void reach_range(Warp& warp, std::uint64_t address, std::uint32_t bytes, AccessKind kind,
                 int lane) {
  if (bytes == 0) return;
  if (!kChecked && !writes(kind)) return check_global_read(warp, lane, address, bytes);
  // A reduction also reads, so it counts as a load, and its bytes must have been written before.
  const Access access = kind == AccessKind::kWrite ? Access::kStore : Access::kLoad;
  // The checks are the same as for a warp that copies in the largest pieces that the alignment
  // allows.
  std::uint32_t piece = 16;
  while (((address | bytes) & (piece - 1)) != 0) piece /= 2;
  LaneAddresses addresses;
  LanePointers pointers;
  try {
    for (std::uint32_t at = 0; at < bytes; at += kLanes * piece) {
      const std::uint32_t lanes = std::min<std::uint32_t>(kLanes, (bytes - at) / piece);
      for (std::uint32_t i = 0; i < lanes; ++i) addresses[i] = address + at + i * piece;
      const Mask mask = lanes == kLanes ? kFull : (1u << lanes) - 1;
      reach_global<kChecked>(warp, mask, addresses, piece, access, kind, pointers);
    }
  } catch (Fault& fault) {
    fault.lane = lane;
    throw;
  }
}

AccessKind stored(bool reduces) { return reduces ? AccessKind::kStrongWrite : AccessKind::kWrite; }

// Visits the ranges of global memory that a copy reads or writes: visit(begin, end).
template <typename Visit>
void for_ranges(const BulkCopy& copy, Visit visit) {
  if (!copy.tensor) return visit(copy.address, copy.address + copy.bytes);
  for_rows(copy.map, copy.start, [&](const BoxRow& row) {
    if (row.bytes != 0) visit(row.address, row.address + row.bytes);
  });
}

// Records that a copy uses global memory from its issue on (machine/flights.h). For other blocks
// too, a store is over only after its thread has waited for it (BlockOrder::finish).
void begin_flight(Warp& warp, const BulkCopy& copy) {
  Cta& cta = *warp.cta;
  Flight flight{.ranges = {},
                .writes = copy.kind == BulkCopy::Kind::kStore,
                .reduces = copy.reduction != Reduction::kNone,
                .issuer = &warp,
                .lane = copy.lane,
                .pc = warp.pc,
                .group = copy.group,
                .mbarrier = copy.mbarrier,
                .clock = 0};
  if (!flight.writes) {
    // This CTA cannot observe the end of a copy that only goes to other CTAs.
    if (((copy.ctas >> cta.rank) & 1) == 0) return;
    flight.clock = cta.mbarriers.find(copy.mbarrier)->clock();
  }
  for_ranges(copy, [&](std::uint64_t begin, std::uint64_t end) {
    flight.ranges.push_back({begin, end});
  });
  std::ranges::sort(flight.ranges, {}, &Flight::Range::begin);
  cta.flights.add(std::move(flight));
}

// Compares the accesses of a copy to global memory with the accesses of the block.
void check_in_block(const Warp& warp, const BulkCopy& copy, AccessKind kind) {
  BlockShadow& shadow = warp.cta->block_shadow;
  const BlockShadow::Access access{.warp = warp.index,
                                   .kind = kind,
                                   .site = warp.cta->program->code[warp.pc].site,
                                   .bulk = true};
  for_ranges(copy, [&](std::uint64_t begin, std::uint64_t end) {
    if (writes(kind)) {
      shadow.check_bulk_write(access, copy.lane, begin, end);
    } else {
      shadow.check_bulk_read(access, copy.lane, begin, end);
    }
  });
}

template <bool kChecked>
void reach_copy_of(Warp& warp, const BulkCopy& copy, AccessKind kind) {
  if (!copy.tensor) {
    if (copy.address % kAlignment != 0) {
      raise_at(FaultKind::kMisaligned, copy.lane, "global address {:#x} is not a multiple of {}",
               copy.address, kAlignment);
    }
    return reach_range<kChecked>(warp, copy.address, copy.bytes, kind, copy.lane);
  }
  for_rows(copy.map, copy.start, [&](const BoxRow& row) {
    reach_range<kChecked>(warp, row.address, row.bytes, kind, copy.lane);
  });
}

template <bool kChecked>
void reach_copy(Warp& warp, const BulkCopy& copy, AccessKind kind) {
  BlockClocks& clocks = warp.cta->global.clocks;
  clocks.bulk = true;
  clocks.unfinished = writes(kind);
  reach_copy_of<kChecked>(warp, copy, kind);
  clocks.bulk = clocks.unfinished = false;
}

void take_size(Warp& warp, const std::uint32_t* slots, BulkCopy& copy) {
  copy.bytes = warp.lanes<std::uint32_t>(slots[kSize])[copy.lane];
  if (copy.bytes % kAlignment != 0) {
    raise_at(FaultKind::kInvalidOperand, copy.lane,
             "a copy of {} bytes, which is not a multiple of {}", copy.bytes, kAlignment);
  }
}

std::string described(const BulkCopy& copy) {
  return fmt::format("{} of lane {} of warp {}{}",
                     copy.kind == BulkCopy::Kind::kValue ? "a st.async" : "a bulk copy", copy.lane,
                     copy.issuer->index,
                     copy.kind == BulkCopy::Kind::kStore
                         ? std::string()
                         : fmt::format(", which the mbarrier at shared address {} counts,",
                                       copy.mbarrier + kSharedBase));
}

// Reads the targets of a load: the offsets of data and mbarrier, which are the same in all CTAs,
// and the ranks of these CTAs.
void take_targets(Warp& warp, const Inst& inst, const std::uint32_t* slots, BulkCopy& copy) {
  const auto space = static_cast<ShareSpace>(inst.small[kWhere]);
  const std::uint32_t alignment = copy.kind == BulkCopy::Kind::kValue ? copy.bytes
                                  : copy.tensor                       ? kTensorAlignment
                                                                      : kAlignment;
  const SharedPlace target =
      place_at(warp, slots, kShared, space, copy.bytes, alignment, copy.lane);
  const SharedPlace mbarrier = place_at(warp, slots, kMbarrier, space, 8, 8, copy.lane);
  if (target.cta != mbarrier.cta) {
    raise_at(FaultKind::kInvalidOperand, copy.lane,
             "a copy into CTA {} of the cluster, but its mbarrier is in CTA {}", target.cta->rank,
             mbarrier.cta->rank);
  }
  copy.target = target.offset;
  copy.mbarrier = mbarrier.offset;
  copy.ctas = 1u << target.cta->rank;
  if (slots[kCtas] == kNoSlot) return;
  copy.ctas = warp.lanes<std::uint16_t>(slots[kCtas])[copy.lane];
  if (copy.ctas == 0 || (copy.ctas >> warp.cta->cluster->ctas.size()) != 0) {
    raise_at(FaultKind::kInvalidOperand, copy.lane,
             "multicast to the CTAs of mask {:#x}, but the cluster has {} CTAs", copy.ctas,
             warp.cta->cluster->ctas.size());
  }
}

// Begins the write in the shadow of every CTA that the copy writes to, as an access of the agent
// that stands for the copies of its mbarrier.
void begin_in_shadows(Warp& warp, BulkCopy& copy) {
  for (std::uint32_t rest = copy.ctas; rest != 0; rest &= rest - 1) {
    Cta& cta = *warp.cta->cluster->ctas[static_cast<std::size_t>(lowest_lane(rest))];
    check_started(warp, cta, copy.lane);
    const Mbarrier& mbarrier = cta.mbarriers.use(cta, warp, copy.mbarrier, copy.lane, true);
    if (!warp.cta->checked) continue;
    const std::uint32_t record = cta.shadow.add({.kind = SharedShadow::Foreign::kBulkWrite,
                                                 .agent = mbarrier.agent,
                                                 .pc = warp.pc,
                                                 .what = described(copy)});
    cta.shadow.begin_write(warp.agent, copy.lane, copy.target, copy.bytes, record);
    copy.records.push_back(record);
  }
}

// Begins the read of the source in the issuer's shadow. The part of a box that is outside of the
// tensor is not stored, so it may be unwritten.
void begin_read(Warp& warp, const BulkCopy& copy) {
  const auto read = [&](std::uint32_t offset, std::uint32_t bytes) {
    warp.cta->shadow.begin_read(warp.agent, copy.lane, offset, bytes, copy.source_record);
  };
  bool inside = true;
  if (copy.tensor) {
    for_rows(copy.map, copy.start,
             [&](const BoxRow& row) { inside &= row.bytes == copy.map.row_bytes(); });
  }
  if (inside) return read(copy.source, copy.bytes);
  constexpr std::uint32_t kChunk = 16;
  for_rows(copy.map, copy.start, [&](const BoxRow& row) {
    const std::uint32_t end = row.bytes == 0 ? 0 : row.skip + row.bytes;
    for (std::uint32_t at = row.skip / kChunk * kChunk; at < end; at += kChunk) {
      read(swizzled(copy.map.swizzle, copy.source + row.offset + at), kChunk);
    }
  });
}

// Reads the size of the copy: a box of a tensor, or a number of bytes.
void take_geometry(Warp& warp, const Inst& inst, const std::uint32_t* slots, BulkCopy& copy) {
  copy.reduction = static_cast<Reduction>(inst.small[kReduce]);
  copy.type = static_cast<TensorType>(inst.small[kType]);
  if (inst.small[kRank] == 0) {
    take_size(warp, slots, copy);
    if (static_cast<Instruction>(inst.small[kKind]) != Instruction::kShare) {
      copy.address = address_at(warp, slots, kOther, copy.lane);
    }
    return;
  }
  take_box(warp, inst, slots, copy);
  copy.type = copy.map.type;
  if (!can_reduce(copy.reduction, copy.type, true)) {
    raise_at(FaultKind::kInvalidOperand, copy.lane,
             "a reduction .{} of a tensor of {}: a tensor for .{} has one of the types {}",
             name_of(copy.reduction), name_of(copy.type), name_of(copy.reduction),
             reducible_tensors(copy.reduction));
  }
}

// The source of a store may be overwritten after its issuer has waited. The source of a copy
// between CTAs may be overwritten after its mbarrier reports that the copy has arrived.
void begin_source(Warp& warp, BulkCopy& copy) {
  Cta& cta = *warp.cta;
  SharedShadow::Record record{.kind = SharedShadow::Foreign::kBulkRead,
                              .agent = warp.agent,
                              .lane = copy.lane,
                              .pc = warp.pc,
                              .what = described(copy)};
  if (copy.kind == BulkCopy::Kind::kShare) {
    const Cta& target = *cta.cluster->ctas[static_cast<std::size_t>(lowest_lane(copy.ctas))];
    record.agent = target.mbarriers.find(copy.mbarrier)->agent;
    record.lane = ClusterClocks::kCollective;
  }
  copy.source_record = cta.shadow.add(std::move(record));
  begin_read(warp, copy);
}

// Reads source and target, and checks the accesses of the copy to both. Only a store and a copy
// between CTAs have a source in shared memory.
template <bool kChecked>
void begin_copy(Warp& warp, const Inst& inst, const std::uint32_t* slots, Instruction kind,
                BulkCopy& copy) {
  switch (kind) {
    case Instruction::kPrefetch:
    case Instruction::kValue:
      break;
    case Instruction::kLoad:
      copy.kind = BulkCopy::Kind::kLoad;
      take_targets(warp, inst, slots, copy);
      reach_copy<kChecked>(warp, copy, AccessKind::kRead);
      if (kChecked) check_in_block(warp, copy, AccessKind::kRead);
      begin_in_shadows(warp, copy);
      if (kChecked) begin_flight(warp, copy);
      break;
    case Instruction::kShare:
      copy.kind = BulkCopy::Kind::kShare;
      copy.source =
          place_at(warp, slots, kOther, ShareSpace::kCta, copy.bytes, kAlignment, copy.lane).offset;
      take_targets(warp, inst, slots, copy);
      begin_in_shadows(warp, copy);
      break;
    case Instruction::kStore:
      copy.kind = BulkCopy::Kind::kStore;
      copy.source = place_at(warp, slots, kShared, ShareSpace::kCta, copy.bytes,
                             copy.tensor ? kTensorAlignment : kAlignment, copy.lane)
                        .offset;
      copy.group = warp.bulk_groups[static_cast<std::size_t>(copy.lane)];
      reach_copy<kChecked>(warp, copy, stored(copy.reduction != Reduction::kNone));
      if (kChecked) check_in_block(warp, copy, stored(copy.reduction != Reduction::kNone));
      if (kChecked) begin_flight(warp, copy);
  }
  if (kChecked && kind != Instruction::kLoad) begin_source(warp, copy);
}

template <bool kChecked>
void run_lane(Warp& warp, const Inst& inst, int lane) {
  const std::uint32_t* slots = &warp.cta->program->slots[inst.aux];
  const auto kind = static_cast<Instruction>(inst.small[kKind]);
  BulkCopy copy;
  copy.issuer = &warp;
  copy.lane = lane;
  copy.pc = warp.pc;
  take_geometry(warp, inst, slots, copy);
  if (copy.bytes == 0) return;
  if (kind == Instruction::kPrefetch) return reach_copy<false>(warp, copy, AccessKind::kRead);
  begin_copy<kChecked>(warp, inst, slots, kind, copy);
  Cluster& cluster = *warp.cta->cluster;
  cluster.copies.issue(cluster, std::move(copy));
}

}  // namespace

std::uint64_t address_at(const Warp& warp, const std::uint32_t* slots, std::uint32_t which,
                         int lane) {
  const std::uint64_t base = slots[which + 1] != 0 ? warp.lanes<std::uint64_t>(slots[which])[lane]
                                                   : warp.lanes<std::uint32_t>(slots[which])[lane];
  return base + static_cast<std::uint64_t>(
                    static_cast<std::int64_t>(static_cast<std::int32_t>(slots[which + 2])));
}

template <bool kChecked>
void run(Warp& warp, const Inst& inst, Mask mask) {
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    run_lane<kChecked>(warp, inst, lowest_lane(rest));
  }
}

void store_async(Warp& warp, const Inst& inst, Mask mask) {
  const std::uint32_t* slots = &warp.cta->program->slots[inst.aux];
  const std::uint32_t width = inst.small[kWidth], count = inst.small[kValues];
  Cluster& cluster = *warp.cta->cluster;
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    BulkCopy copy;
    copy.kind = BulkCopy::Kind::kValue;
    copy.issuer = &warp;
    copy.lane = lowest_lane(rest);
    copy.pc = warp.pc;
    copy.bytes = width * count;
    copy.data.resize(copy.bytes);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t slot = slots[kCoordinates + i];
      const void* value =
          width == 8 ? static_cast<const void*>(&warp.lanes<std::uint64_t>(slot)[copy.lane])
                     : &warp.lanes<std::uint32_t>(slot)[copy.lane];
      std::memcpy(copy.data.data() + i * width, value, width);
    }
    take_targets(warp, inst, slots, copy);
    begin_in_shadows(warp, copy);
    cluster.copies.issue(cluster, std::move(copy));
  }
}

template void run<false>(Warp&, const Inst&, Mask);
template void run<true>(Warp&, const Inst&, Mask);

void commit(Warp& warp, const Inst&, Mask mask) {
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    ++warp.bulk_groups[static_cast<std::size_t>(lowest_lane(rest))];
  }
}

namespace {

// The lane has waited until its stores have written global memory.
void finish_stores(Warp& warp, int lane, std::uint32_t left) {
  Cta& cta = *warp.cta;
  const std::uint32_t committed = warp.bulk_groups[static_cast<std::size_t>(lane)];
  cta.flights.finish_stores(warp, lane, committed, left, [&](const Flight& flight) {
    const BlockShadow::Access access{.warp = warp.index,
                                     .kind = stored(flight.reduces),
                                     .site = cta.program->code[flight.pc].site,
                                     .bulk = true};
    for (const Flight::Range& range : flight.ranges) {
      cta.block_shadow.note_bulk_write(access, lane, range.begin, range.end);
    }
    for (const Flight::Range& range : flight.ranges) {
      if (cta.global.order == nullptr) break;
      cta.global.order->finish(cta.global.clocks, warp.index, range.begin, range.end);
    }
  });
}

}  // namespace

void wait(Warp& warp, const Inst& inst, Mask mask) {
  Cta& cta = *warp.cta;
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    const auto left = static_cast<std::uint32_t>(inst.imm);
    cta.cluster->copies.wait(*cta.cluster, warp, lane, left, inst.small[0] != 0);
    if (cta.checked && inst.small[0] == 0) finish_stores(warp, lane, left);
  }
}

}  // namespace annulus::simulator::bulk
