#include "simulator/check/access_record.h"

#include <algorithm>

#include "simulator/check/detector.h"
#include "simulator/check/race.h"

namespace annulus::simulator {
namespace {

// The order in which an access is compared with earlier ones. Reads come first, so that a race is
// reported as the same kind in whichever order its two accesses run.
constexpr AccessKind kInTurn[] = {AccessKind::kRead, AccessKind::kStrongRead, AccessKind::kWrite,
                                  AccessKind::kStrongWrite};

}  // namespace

AccessRecord::AccessRecord(Detector& detector, std::uint64_t begin, std::uint64_t end)
    : detector_(detector), begin_(begin), end_(end) {
  detector_.add(this);
}

AccessRecord::~AccessRecord() { detector_.remove(this); }

bool AccessRecord::all_before(const Plane& plane, const Operation& operation) const {
  return plane.chain && detector_.order.before(*plane.last, operation);
}

void AccessRecord::check_planes(const OperationPointer& operation, AccessKind kind,
                                AccessKind other, std::uint64_t begin, std::uint64_t end) const {
  for (const auto& plane : planes_) {
    if (plane->kind != other || all_before(*plane, *operation)) continue;
    std::uint32_t ordered = 0;  // the operation that was last found to come before, which
                                // neighbouring stamps often name too
    plane->cells.each(
        begin - begin_, end - begin_,
        [&](Stamp stamp, std::uint64_t cell_begin, std::uint64_t cell_end) {
          const std::uint32_t number = stamp_operation(stamp);
          if (number == ordered) return;
          OperationPointer earlier = detector_.at(number);
          if (detector_.order.before(*earlier, *operation)) {
            ordered = number;
            return;
          }
          const std::uint64_t first = std::max(begin, begin_ + cell_begin);
          const std::uint64_t last = std::min(end, begin_ + cell_end);
          report(unordered_operations({operation, kind, 0}, {std::move(earlier), other, stamp},
                                      {first, last - first, begin_, end_}));
        });
  }
}

void AccessRecord::access(const OperationPointer& operation, AccessKind kind, std::uint64_t begin,
                          std::uint64_t end) {
  std::lock_guard lock(mutex_);
  for (const AccessKind other : kInTurn) {
    if (!conflict(kind, other)) continue;
    check_planes(operation, kind, other, begin, end);
    for (const AccessRange& range : ranges_) {
      if (range.kind != other || range.begin >= end || range.end <= begin) continue;
      if (detector_.order.before(*range.operation, *operation)) continue;
      const std::uint64_t first = std::max(begin, range.begin);
      const std::uint64_t last = std::min(end, range.end);
      report(unordered_operations({operation, kind, 0}, {range.operation, other, 0},
                                  {first, last - first, begin_, end_}));
    }
  }
  remember(operation, kind, begin, end);
}

void AccessRecord::remember(const OperationPointer& operation, AccessKind kind, std::uint64_t begin,
                            std::uint64_t end) {
  std::vector<AccessRange> kept;
  kept.reserve(ranges_.size() + 2);
  for (AccessRange& range : ranges_) {
    if (detector_.order.settled(*range.operation)) continue;
    const bool apart = range.begin >= end || range.end <= begin;
    // A write conflicts with everything that any earlier access conflicts with. A read conflicts
    // only with what an earlier read conflicts with.
    const bool replaced = (writes(kind) || !writes(range.kind)) &&
                          detector_.order.before(*range.operation, *operation);
    if (apart || !replaced) {
      kept.push_back(std::move(range));
      continue;
    }
    if (range.begin < begin) kept.push_back({range.begin, begin, range.kind, range.operation});
    if (range.end > end) kept.push_back({end, range.end, range.kind, range.operation});
  }
  kept.push_back({begin, end, kind, operation});
  if (kept.size() > kMaxRanges) {
    kept.erase(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(kMaxRanges / 2));
  }
  ranges_ = std::move(kept);
}

std::unique_ptr<Fault> AccessRecord::in_use(const Operation* operation, const char* call) const {
  std::lock_guard lock(mutex_);
  const auto over = [&](const Operation& user) {
    return operation != nullptr ? detector_.order.before(user, *operation)
                                : detector_.order.observed(user);
  };
  for (const auto& plane : planes_) {
    if (plane->chain && over(*plane->last)) continue;
    std::unique_ptr<Fault> fault;
    std::uint32_t ordered = 0;
    plane->cells.each(0, end_ - begin_,
                      [&](Stamp stamp, std::uint64_t cell_begin, std::uint64_t cell_end) {
                        const std::uint32_t number = stamp_operation(stamp);
                        if (fault != nullptr || number == ordered) return;
                        OperationPointer user = detector_.at(number);
                        if (over(*user)) {
                          ordered = number;
                          return;
                        }
                        const std::uint64_t last = std::min(cell_end, end_ - begin_);
                        fault = std::make_unique<Fault>(
                            freed_in_use(operation, call, {std::move(user), plane->kind, stamp},
                                         {begin_ + cell_begin, last - cell_begin, begin_, end_}));
                      });
    if (fault != nullptr) return fault;
  }
  for (const AccessRange& range : ranges_) {
    if (over(*range.operation)) continue;
    return std::make_unique<Fault>(
        freed_in_use(operation, call, {range.operation, range.kind, 0},
                     {range.begin, range.end - range.begin, begin_, end_}));
  }
  return nullptr;
}

AccessPlane& AccessRecord::plane(AccessKind kind, const OperationPointer& kernel) {
  std::lock_guard lock(mutex_);
  for (const auto& plane : planes_) {
    if (plane->kind != kind) continue;
    const bool after = detector_.order.before(*plane->last, *kernel);
    // All plain writes share a plane: two unordered plain writes either touch different bytes or
    // are a race.
    if (kind != AccessKind::kWrite && !after) continue;
    plane->chain = plane->chain && after;
    plane->last = kernel;
    return plane->cells;
  }
  planes_.push_back(std::make_unique<Plane>(kind, kernel, end_ - begin_));
  return planes_.back()->cells;
}

std::vector<AccessRecord::Rival> AccessRecord::against(AccessKind kind,
                                                       const Operation& kernel) const {
  std::lock_guard lock(mutex_);
  std::vector<Rival> planes;
  for (const AccessKind other : kInTurn) {
    if (!conflict(kind, other)) continue;
    for (const auto& plane : planes_) {
      if (plane->kind != other) continue;
      const bool own = plane->last.get() == &kernel;
      if (own ? kind != other : !all_before(*plane, kernel))
        planes.push_back({other, &plane->cells});
    }
  }
  return planes;
}

std::vector<AccessRange> AccessRecord::unordered_ranges(AccessKind kind,
                                                        const Operation& kernel) const {
  std::lock_guard lock(mutex_);
  std::vector<AccessRange> ranges;
  for (const AccessKind other : kInTurn) {
    for (const AccessRange& range : ranges_) {
      if (range.kind != other || !conflict(kind, other)) continue;
      if (!detector_.order.before(*range.operation, kernel)) ranges.push_back(range);
    }
  }
  return ranges;
}

void AccessRecord::sweep(const std::function<bool(Stamp)>& keep) {
  std::lock_guard lock(mutex_);
  for (const auto& plane : planes_) plane->cells.sweep(keep);
  std::erase_if(
      ranges_, [&](const AccessRange& range) { return detector_.order.settled(*range.operation); });
}

}  // namespace annulus::simulator
