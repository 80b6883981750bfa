#include "simulator/check/block_order.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "simulator/check/race.h"

namespace annulus::simulator {

BlockOrder::BlockOrder(OperationPointer launch)
    : operation_(std::move(launch)), warp_bits_(operation_->warp_bits) {}

void BlockOrder::join(Clocks& into, const Clocks& from) {
  if (into.size() < from.size()) into.resize(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

void BlockOrder::join(Knowledge& into, const Knowledge& from) {
  join(into.known, from.known);
  join(into.pending, from.pending);
  join(into.published, from.published);
}

void BlockOrder::start(BlockClocks& block, std::uint64_t index, std::uint32_t warps) const {
  block.first_warp = index << warp_bits_;
  block.warps.assign(warps, BlockClocks::Warp{});
  block.unfinished = block.bulk = false;
  block.atomics = {};
}

Clocks BlockOrder::now(const BlockClocks& block, int warp) {
  const BlockClocks::Warp& self = block.warps[static_cast<std::size_t>(warp)];
  const std::size_t number = block.first_warp + static_cast<std::size_t>(warp);
  Clocks clocks = self.known;
  if (clocks.size() <= number) clocks.resize(number + 1);
  clocks[number] = self.clock;
  return clocks;
}

void BlockOrder::release(BlockClocks& block, int warp, std::uint64_t address, MemoryOrder order,
                         bool read_too) {
  BlockClocks::Warp& self = block.warps[static_cast<std::size_t>(warp)];
  Clocks& place = strong_[address];
  // An atomic preserves the clocks that earlier writes published at the address (a release
  // sequence). A plain store removes them.
  if (!read_too) place.clear();
  if (order == MemoryOrder::kRelease || order == MemoryOrder::kBoth) {
    join(place, now(block, warp));
    ++self.clock;
  } else {
    join(place, self.published);
    // The write itself is recorded with the clock that this warp has published. This clock is 0 if
    // the warp's published knowledge came only from a barrier (access_place). The vector must reach
    // the entry of this warp, so that a reader which takes the vector knows the write.
    const std::size_t number = block.first_warp + static_cast<std::size_t>(warp);
    if (!self.published.empty() && place.size() <= number) place.resize(number + 1);
  }
}

std::uint32_t BlockOrder::acquire(BlockClocks& block, int warp, std::uint64_t address,
                                  MemoryOrder order) {
  const auto place = strong_.find(address);
  if (place == strong_.end()) return 0;
  BlockClocks::Warp& self = block.warps[static_cast<std::size_t>(warp)];
  std::uint32_t learnt = 0;
  for (std::size_t other = 0; other < block.warps.size(); ++other) {
    const std::size_t number = block.first_warp + other;
    const std::uint32_t known = number < self.known.size() ? self.known[number] : 0;
    if (number < place->second.size() && place->second[number] > known) learnt |= 1u << other;
  }
  const bool at_once = acquires(order);
  join(at_once ? self.known : self.pending, place->second);
  return learnt;
}

void BlockOrder::fence(BlockClocks& block, int warp) const {
  BlockClocks::Warp& self = block.warps[static_cast<std::size_t>(warp)];
  join(self.known, self.pending);
  self.pending.clear();
  self.published = now(block, warp);
  ++self.clock;
}

void BlockOrder::arrive(BlockClocks& block, int warp, Knowledge& barrier) const {
  BlockClocks::Warp& self = block.warps[static_cast<std::size_t>(warp)];
  join(barrier.known, now(block, warp));
  join(barrier.pending, self.pending);
  join(barrier.published, self.published);
  ++self.clock;
}

void BlockOrder::leave(BlockClocks& block, int warp, const Knowledge& barrier) const {
  join(block.warps[static_cast<std::size_t>(warp)], barrier);
}

void BlockOrder::shared_atomic(BlockClocks& block, int warp) const {
  arrive(block, warp, block.atomics);
  leave(block, warp, block.atomics);
}

// The size of an access is a power of two, at most 32, and divides its address: callers have
// refused or split any other access (simulator/ops/access.cc). So an access lies within 16 bytes or
// is exactly two times 16 bytes, and access_place() gets no piece that its mask would cut off.
void BlockOrder::access(const BlockClocks& block, int warp, const LaunchShadow::View& view,
                        AccessKind kind, int lane, std::uint64_t address, std::uint32_t bytes,
                        Stamp mine) {
  for (std::uint32_t done = 0; done < bytes; done += 16) {
    access_place(block, warp, view, {kind, lane, address + done, std::min(bytes, 16u), mine});
  }
}

void BlockOrder::finish(const BlockClocks& block, int warp, std::uint64_t begin,
                        std::uint64_t end) {
  const std::uint32_t clock = block.warps[static_cast<std::size_t>(warp)].clock;
  const auto number =
      static_cast<std::uint32_t>(block.first_warp) + static_cast<std::uint32_t>(warp);
  for (std::uint64_t place = begin >> 4; place <= (end - 1) >> 4; ++place) {
    Part& part = parts_[place % kParts];
    std::lock_guard lock(part.mutex);
    const auto found = part.places.find(place);
    if (found == part.places.end()) continue;
    for (Entry& entry : found->second) {
      if (entry.warp == number && entry.clock == kUnfinished) entry.clock = clock;
    }
  }
}

void BlockOrder::report_race(const Entry& entry, std::uint64_t address,
                             const LaunchShadow::View& view, const Access& access) const {
  const Stamp stamp = (access.mine & kStampOperation) |
                      (static_cast<Stamp>(entry.warp) << kStampWarpShift) |
                      (static_cast<Stamp>(entry.lane) << kStampLaneShift) | entry.site;
  Fault fault = unordered_blocks({operation_, access.kind, 0}, {operation_, entry.kind, stamp},
                                 {address, access.bytes, view.begin, view.end});
  fault.lane = access.lane;
  report(fault);
}

// Compares an access with the entries of its bytes, and adds its own entry. Throws if another block
// made a conflicting access that the warp does not know. Accesses of the same block never conflict
// here, because BlockShadow finds races within a block.
void BlockOrder::access_place(const BlockClocks& block, int warp, const LaunchShadow::View& view,
                              const Access& access) {
  const auto [kind, lane, address, bytes, mine] = access;
  const BlockClocks::Warp& self = block.warps[static_cast<std::size_t>(warp)];
  const auto number =
      static_cast<std::uint32_t>(block.first_warp) + static_cast<std::uint32_t>(warp);
  const auto mask = static_cast<std::uint16_t>(((1u << bytes) - 1) << (address & 15));
  Part& part = parts_[(address >> 4) % kParts];
  std::lock_guard lock(part.mutex);
  std::vector<Entry>& entries = part.places[address >> 4];
  std::size_t kept = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Entry entry = entries[i];
    const bool mine_too = entry.warp >> warp_bits_ == number >> warp_bits_;
    const bool known =
        mine_too || (entry.warp < self.known.size() && entry.clock <= self.known[entry.warp]);
    if ((entry.bytes & mask) != 0 && conflict(kind, entry.kind)) {
      const auto skipped = std::countr_zero(static_cast<unsigned>(entry.bytes & mask));
      const std::uint64_t first =
          (address & ~std::uint64_t{15}) + static_cast<std::uint64_t>(skipped);
      if (!known) report_race(entry, first, view, access);
      if (!mine_too && block.bulk && !entry.bulk && !operation_->program->fences_global_proxy) {
        report_at(
            FaultKind::kMissingFence, lane,
            "a bulk copy accesses global address {:#x}, which another block accessed with "
            "ordinary instructions, and the kernel has no fence.proxy.async for global memory",
            first);
      }
    }
    // An earlier entry is dropped if this access comes after it, covers its bytes and conflicts
    // with everything that it conflicts with. Among the entries of the same block, only those of
    // the same warp and kind are dropped: for other warps `known` was set without a comparison.
    const bool covered = (entry.bytes & ~mask) == 0;
    const bool after = mine_too ? entry.warp == number && entry.kind == kind
                                : known && (entry.kind == kind || kind == AccessKind::kWrite);
    const bool replaced = covered && after && entry.clock != kUnfinished;
    if (!replaced) entries[kept++] = entry;
  }
  entries.resize(kept);
  // A warp that knows what a fence published must also know this strong write, which published it.
  // So the entry gets the clock of that fence, and not the current clock, which is later.
  std::uint32_t clock = self.clock;
  if (kind == AccessKind::kStrongWrite && !self.published.empty()) {
    clock = number < self.published.size() ? self.published[number] : 0;
  }
  if (block.unfinished && writes(kind)) clock = kUnfinished;
  entries.push_back({number, clock, mask, kind, static_cast<std::uint8_t>(lane),
                     static_cast<std::uint16_t>(mine & kStampSite), block.bulk});
}

}  // namespace annulus::simulator
