#ifndef ANNULUS_SIMULATOR_CHECK_ACCESS_RECORD_H_
#define ANNULUS_SIMULATOR_CHECK_ACCESS_RECORD_H_

// The recorded accesses to one allocation. Accesses by kernels are recorded for each cell, in
// planes. Copies and fills are recorded as ranges. An access replaces an earlier one of its kind
// that comes before it, because an access that races with the earlier one also races with the later
// one (FastTrack, Flanagan and Freund, PLDI 2009). Reads that no order connects are kept in
// separate planes.

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
  // The largest number of ranges of an allocation. If there are more, the older half is forgotten.
  static constexpr std::size_t kMaxRanges = 4096;

  AccessRecord(Detector& detector, std::uint64_t begin, std::uint64_t end);
  ~AccessRecord();
  AccessRecord(const AccessRecord&) = delete;
  AccessRecord& operator=(const AccessRecord&) = delete;

  std::uint64_t begin() const { return begin_; }
  std::uint64_t end() const { return end_; }

  // Records that `operation` copies from all bytes of [begin, end) (kRead) or to them (kWrite).
  // Throws Fault if that is a race.
  void access(const OperationPointer& operation, AccessKind kind, std::uint64_t begin,
              std::uint64_t end);

  // Checks that the allocation may be freed by `operation`, or by the host if `operation` is null.
  // Returns a Fault if another operation may still use the memory, else null.
  std::unique_ptr<Fault> in_use(const Operation* operation, const char* call) const;

  // --- For launches (LaunchShadow). Only one launch runs at a time. ---

  // The plane in which `kernel` records its accesses of a kind. A kernel uses an existing plane if
  // it comes after the last kernel that used the plane. All plain writes share one plane.
  AccessPlane& plane(AccessKind kind, const OperationPointer& kernel);
  // The planes that may hold accesses in conflict with `kind`, by other kernels or by other blocks
  // of this kernel. The plane in which the kernel records its own accesses of that kind is left
  // out, because stamping a cell returns its former stamp.
  struct Rival {
    AccessKind kind;
    const AccessPlane* plane;
  };
  std::vector<Rival> against(AccessKind kind, const Operation& kernel) const;
  // Copies and fills that conflict with `kind` and do not come before `kernel`.
  std::vector<AccessRange> unordered_ranges(AccessKind kind, const Operation& kernel) const;
  // Removes stamps for which `keep` is false, and ranges whose operation is settled.
  void sweep(const std::function<bool(Stamp)>& keep);

 private:
  struct Plane {
    AccessKind kind;
    OperationPointer last;  // the last kernel that used the plane
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
