#include "simulator/check/launch_shadow.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "simulator/check/race.h"

namespace annulus::simulator {

LaunchShadow::LaunchShadow(Detector& detector, OperationPointer launch, bool blocks_ordered)
    : detector_(detector),
      operation_(std::move(launch)),
      number_(detector_.number(operation_)),
      warp_bits_(operation_->warp_bits),
      orders_(kMaxOperations + 2) {
  const Stamp warps = (((Stamp{1} << warp_bits_) - 1) << kStampWarpShift);
  same_block_ = blocks_ordered ? kStampOperation : kStampOperation | (kStampWarps & ~warps);
}

LaunchShadow::View* LaunchShadow::view(std::shared_ptr<AccessRecord> record) {
  std::lock_guard lock(mutex_);
  const auto [place, fresh] = views_.try_emplace(record->begin());
  View& view = place->second;
  if (!fresh) return &view;
  view.begin = record->begin();
  view.end = record->end();
  view.record = std::move(record);
  for (int kind = 0; kind < kAccessKinds; ++kind) {
    view.rivals[kind] = view.record->against(static_cast<AccessKind>(kind), *operation_);
    view.ranges[kind] = view.record->unordered_ranges(static_cast<AccessKind>(kind), *operation_);
  }
  return &view;
}

void LaunchShadow::check_freed(const OperationPointer& freer, int lane,
                               std::uint64_t address) const {
  if (freer == nullptr || detector_.order.before(*freer, *operation_)) return;
  Fault fault = used_after_free(freer.get(), *operation_, "uses", address);
  fault.lane = lane;
  report(fault);
}

inline bool LaunchShadow::put(std::atomic<Stamp>& cell, AccessKind kind, Stamp mine,
                              Stamp* old) const {
  Stamp stamp = cell.load();
  while (true) {
    if (stamp == AccessPlane::kMoved) return false;
    *old = stamp;
    Stamp next = mine;
    if (((stamp ^ mine) & same_block_) == 0) return true;
    // Several blocks may read a cell, or update it by atomics, without a race. The stamp then
    // records that there is more than one. Two plain writes are a race that is reported at once.
    if (kind != AccessKind::kWrite && ((stamp ^ mine) & kStampOperation) == 0) {
      if ((stamp & kStampSeveral) != 0) return true;
      next |= kStampSeveral;
    }
    if (cell.compare_exchange_weak(stamp, next)) return true;
  }
}

std::uint32_t LaunchShadow::read(const View& view, std::uint32_t lanes,
                                 const std::uint64_t* addresses, std::uint32_t bytes,
                                 Stamp mine) const {
  const AccessPlane* const own = view.own[static_cast<int>(AccessKind::kRead)].load();
  if (own == nullptr || !view.rivals[0].empty() || !view.ranges[0].empty()) return lanes;
  const int shift = std::countr_zero(bytes);
  const Stamp several = mine | kStampSeveral;
  std::uint32_t left = 0;
  std::uint64_t index = ~std::uint64_t{0};
  std::atomic<Stamp>* cells = nullptr;  // null if the cells are larger than the access
  int cell_shift = 0;
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint64_t offset = addresses[lane] - view.begin;
    if (offset >> AccessPlane::kChunkBits != index) {
      index = offset >> AccessPlane::kChunkBits;
      AccessPlane::Chunk* const chunk = own->find(offset);
      cells = chunk != nullptr && chunk->shift <= shift ? chunk->cells() : nullptr;
      cell_shift = cells != nullptr ? chunk->shift : 0;
    }
    if (cells == nullptr) {
      left |= 1u << lane;
      continue;
    }
    std::atomic<Stamp>* cell = cells + ((offset & (AccessPlane::kChunkBytes - 1)) >> cell_shift);
    for (const auto* const end = cell + (std::size_t{1} << (shift - cell_shift)); cell < end;
         ++cell) {
      // There is nothing to stamp after an earlier read by this block, or by several blocks. A
      // stamp that has moved (kMoved) belongs to no operation, so it is not skipped here or below.
      // Its lane takes the slow path, which waits for the split and may stamp cells again.
      const Stamp stamp = cell->load();
      if (((stamp ^ mine) & same_block_) == 0 ||
          ((stamp ^ several) & (kStampOperation | kStampSeveral)) == 0) {
        continue;
      }
      Stamp old = 0;
      if (!put(*cell, AccessKind::kRead, mine | static_cast<Stamp>(lane) << kStampLaneShift,
               &old)) {
        left |= 1u << lane;
      }
    }
  }
  // The reads are compared after they are stamped, as in access_slowly. Strong writes conflict with
  // plain reads too, but are rare. If there are any, all lanes take the slow path.
  if (view.own[static_cast<int>(AccessKind::kStrongWrite)].load() != nullptr) return lanes;
  const AccessPlane* const written = view.own[static_cast<int>(AccessKind::kWrite)].load();
  for (std::uint32_t rest = written == nullptr ? 0 : lanes & ~left; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint64_t offset = addresses[lane] - view.begin;
    AccessPlane::Chunk* const other = written->find(offset);
    if (other == nullptr) continue;
    const std::uint64_t within = offset & (AccessPlane::kChunkBytes - 1);
    const std::uint64_t last = (within + bytes - 1) >> other->shift;
    for (std::uint64_t cell = within >> other->shift; cell <= last; ++cell) {
      const Stamp stamp = other->cells()[cell].load();
      if (stamp != 0 && ((stamp ^ mine) & same_block_) != 0) left |= 1u << lane;
    }
  }
  return left;
}

AccessPlane& LaunchShadow::own_plane(View& view, AccessKind kind) {
  std::atomic<AccessPlane*>& place = view.own[static_cast<int>(kind)];
  if (AccessPlane* const plane = place.load()) return *plane;
  std::lock_guard lock(mutex_);
  if (place.load() == nullptr) place = &view.record->plane(kind, operation_);
  return *place.load();
}

std::size_t LaunchShadow::put_all(AccessPlane& plane, AccessKind kind, std::uint64_t offset,
                                  std::uint32_t bytes, Stamp mine, Stamp* old) const {
  const int shift = std::min(AccessPlane::kWidest, std::countr_zero(bytes));
  const std::uint64_t within = offset & (AccessPlane::kChunkBytes - 1);
  while (true) {
    AccessPlane::Chunk* const chunk = plane.get(offset, shift);
    const std::size_t count = bytes >> chunk->shift;
    std::atomic<Stamp>* const cells = chunk->cells() + (within >> chunk->shift);
    std::size_t done = 0;
    while (done < count && put(cells[done], kind, mine, &old[done])) ++done;
    if (done == count) return count;
    plane.wait();
  }
}

void LaunchShadow::compare(const View& view, const Access& access, Stamp stamp, AccessKind other) {
  if (stamp == 0) return;
  const Stamp differs = stamp ^ access.mine;
  const RacePlace place{view.begin + access.offset, access.bytes, view.begin, view.end};
  if ((differs & kStampOperation) == 0) {
    const bool same_block = (differs & same_block_) == 0;
    if (same_block && (stamp & kStampSeveral) == 0) return;
    // If the stamp is this block's own but several blocks made it, the other blocks are unknown.
    report(unordered_blocks({operation_, access.kind, 0},
                            {operation_, other, same_block ? 0 : stamp}, place));
    return;
  }
  const std::uint32_t number = stamp_operation(stamp);
  if (ordered(number)) return;
  report(unordered_operations({operation_, access.kind, 0}, {detector_.at(number), other, stamp},
                              place));
}

void LaunchShadow::compare(const View& view, const Access& access, const AccessPlane& plane,
                           AccessKind other) {
  const std::uint64_t within = access.offset & (AccessPlane::kChunkBytes - 1);
  while (true) {
    AccessPlane::Chunk* const chunk = plane.find(access.offset);
    if (chunk == nullptr) return;
    const std::uint64_t last = (within + access.bytes - 1) >> chunk->shift;
    std::uint64_t cell = within >> chunk->shift;
    for (; cell <= last; ++cell) {
      const Stamp stamp = chunk->cells()[cell].load();
      if (stamp == AccessPlane::kMoved) break;
      compare(view, access, stamp, other);
    }
    if (cell > last) return;
    plane.wait();
  }
}

// Stamps the access first and compares it afterwards, for the reason in the header's first comment.
// The kinds are compared in the same order as in AccessRecord::access, reads first.
void LaunchShadow::access_slowly(View& view, AccessKind kind, int lane, std::uint64_t offset,
                                 std::uint32_t bytes, Stamp mine) {
  const Access access{kind, offset, bytes, mine};
  Stamp old[32];
  AccessPlane& own = own_plane(view, kind);
  const std::size_t cells = put_all(own, kind, offset, bytes, mine, old);
  try {
    for (const AccessKind other : {AccessKind::kRead, AccessKind::kStrongRead, AccessKind::kWrite,
                                   AccessKind::kStrongWrite}) {
      if (!conflict(kind, other)) continue;
      if (kind == other) {
        for (std::size_t i = 0; i < cells; ++i) compare(view, access, old[i], other);
      } else if (const AccessPlane* plane = view.own[static_cast<int>(other)].load()) {
        compare(view, access, *plane, other);
      }
      for (const AccessRecord::Rival& rival : view.rivals[static_cast<int>(kind)]) {
        if (rival.kind == other) compare(view, access, *rival.plane, other);
      }
    }
    const RacePlace place{view.begin + offset, bytes, view.begin, view.end};
    for (const AccessRange& range : view.ranges[static_cast<int>(kind)]) {
      if (range.begin >= place.address + bytes || range.end <= place.address) continue;
      report(unordered_operations({operation_, kind, 0}, {range.operation, range.kind, 0}, place));
    }
  } catch (Fault& fault) {
    fault.lane = lane;
    throw;
  }
}

bool LaunchShadow::ordered(std::uint32_t number) {
  std::atomic<std::uint8_t>& order = orders_[number];
  std::uint8_t known = order.load(std::memory_order_relaxed);
  if (known == 0) {
    known = detector_.order.before(*detector_.at(number), *operation_) ? 1 : 2;
    order.store(known, std::memory_order_relaxed);
  }
  return known == 1;
}

}  // namespace annulus::simulator
