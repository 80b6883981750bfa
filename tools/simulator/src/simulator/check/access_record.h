#ifndef ANNULUS_SIMULATOR_CHECK_ACCESS_RECORD_H_
#define ANNULUS_SIMULATOR_CHECK_ACCESS_RECORD_H_

// What is known about the accesses to one allocation. Accesses by kernels are kept cell by cell, in
// planes; copies and fills are kept as ranges. An access replaces an earlier one of its kind that
// is ordered before it, because an access that races with the earlier one races with the later one
// too (FastTrack, Flanagan and Freund, PLDI 2009). Reads that nothing orders keep a plane each.

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
  // An allocation keeps at most so many ranges; when there are more, the older half is forgotten.
  static constexpr std::size_t kMaxRanges = 4096;

  AccessRecord(Detector& detector, std::uint64_t begin, std::uint64_t end);
  ~AccessRecord();
  AccessRecord(const AccessRecord&) = delete;
  AccessRecord& operator=(const AccessRecord&) = delete;

  std::uint64_t begin() const { return begin_; }
  std::uint64_t end() const { return end_; }

  // `operation` copies from all bytes of [begin, end) (kRead) or to them (kWrite). Throws Fault
  // where that is a race.
  void access(const OperationPointer& operation, AccessKind kind, std::uint64_t begin,
              std::uint64_t end);

  // The allocation is about to be freed by `operation`, or by the host where that is null. Returns
  // the Fault where another operation may still use the memory, else null.
  std::unique_ptr<Fault> in_use(const Operation* operation, const char* call) const;

  // --- For launches (LaunchShadow), of which one runs at a time ---

  // The plane in which `kernel` notes its accesses of a kind. A plane is used again by a kernel
  // that comes after the last one that used it; all plain writes share one.
  AccessPlane& plane(AccessKind kind, const OperationPointer& kernel);
  // The planes that may hold accesses in conflict with `kind`, by other kernels or by other blocks
  // of this one. The plane in which the kernel notes its own accesses of that kind is left out,
  // since stamping it returns what was there.
  struct Rival {
    AccessKind kind;
    const AccessPlane* plane;
  };
  std::vector<Rival> against(AccessKind kind, const Operation& kernel) const;
  // Copies and fills that conflict with `kind` and are not before `kernel`.
  std::vector<AccessRange> unordered_ranges(AccessKind kind, const Operation& kernel) const;
  // Forgets stamps for which `keep` is false, and ranges whose operation is settled.
  void sweep(const std::function<bool(Stamp)>& keep);

 private:
  struct Plane {
    AccessKind kind;
    OperationPointer last;  // the kernel that used it last
    bool chain = true;      // each kernel that used the plane comes before the next one
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
