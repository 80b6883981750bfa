#ifndef ANNULUS_SIMULATOR_CHECK_ACCESS_RECORD_H_
#define ANNULUS_SIMULATOR_CHECK_ACCESS_RECORD_H_

// What is known about the accesses to one allocation: by kernels cell by cell, in planes, by copies
// and fills as ranges. An access replaces an earlier one of its kind that comes before it: whoever
// is not ordered with the earlier one is not ordered with the later one either, or comes after both
// (FastTrack, Flanagan and Freund, PLDI 2009). Reads that nothing orders keep a plane each.

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "simulator/check/access_kind.h"
#include "simulator/check/access_plane.h"
#include "simulator/check/operation.h"
#include "simulator/fault/fault.h"

namespace annulus::simulator {

class Detector;

// A copy or fill of [begin, end).
struct AccessRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  AccessKind kind{};
  OperationPointer operation;
};

class AccessRecord {
 public:
  // At most so many ranges are kept of an allocation; then the oldest are forgotten.
  static constexpr std::size_t kMaxRanges = 4096;

  AccessRecord(Detector& detector, std::uint64_t begin, std::uint64_t end);
  ~AccessRecord();
  AccessRecord(const AccessRecord&) = delete;
  AccessRecord& operator=(const AccessRecord&) = delete;

  std::uint64_t begin() const { return begin_; }
  std::uint64_t end() const { return end_; }

  // `operation` copies from or to all bytes of [begin, end), kRead or kWrite. Throws Fault where
  // that is a race.
  void access(const OperationPointer& operation, AccessKind kind, std::uint64_t begin,
              std::uint64_t end);

  // The allocation is about to be freed by `operation`, or, where that is null, by the host. The
  // Fault where somebody may still use it.
  std::unique_ptr<Fault> in_use(const Operation* operation, const char* call) const;

  // --- For launches (LaunchShadow); one runs at a time ---

  // Where `kernel` notes its accesses of a kind.
  AccessPlane& plane(AccessKind kind, const OperationPointer& kernel);
  // Those that may hold accesses in conflict with `kind`, by other kernels or by other blocks of
  // this one, but for the one that it notes its own accesses of that kind in.
  struct Rival {
    AccessKind kind;
    const AccessPlane* plane;
  };
  std::vector<Rival> against(AccessKind kind, const Operation& kernel) const;
  // Copies and fills that conflict with `kind` and are not before `kernel`.
  std::vector<AccessRange> unordered_ranges(AccessKind kind, const Operation& kernel) const;
  // Forgets stamps for which `keep` is false, and settled ranges.
  void sweep(const std::function<bool(Stamp)>& keep);

 private:
  struct Plane {
    AccessKind kind;
    OperationPointer last;  // the kernel that used it last
    bool chain = true;      // each kernel that used it came before the next
    AccessPlane cells;
    Plane(AccessKind k, OperationPointer kernel, std::uint64_t bytes)
        : kind(k), last(std::move(kernel)), cells(bytes) {}
  };

  bool all_before(const Plane& plane, const Operation& operation) const;

  void check_planes(const OperationPointer& operation, AccessKind kind, AccessKind other,
                    std::uint64_t begin, std::uint64_t end) const;
  void remember(const OperationPointer& operation, AccessKind kind, std::uint64_t begin,
                std::uint64_t end);

  Detector& detector_;
  const std::uint64_t begin_;
  const std::uint64_t end_;
  mutable std::mutex mutex_;  // guards the lists below
  std::vector<std::unique_ptr<Plane>> planes_;
  std::vector<AccessRange> ranges_;
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_CHECK_ACCESS_RECORD_H_
