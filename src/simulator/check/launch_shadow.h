#ifndef ANNULUS_SIMULATOR_CHECK_LAUNCH_SHADOW_H_
#define ANNULUS_SIMULATOR_CHECK_LAUNCH_SHADOW_H_

// The search for races in global memory during one launch in checked mode. Every access of a
// lane is stamped into the records of its allocation and compared with what is there:
//
//   another operation's stamp   a race, unless that operation comes before this one
//                               (simulator/check/operation.h)
//   another block's stamp       a race, where blocks have no way to order themselves. Kernels with
//                               fences of the device go to BlockOrder instead, which knows who
//                               waited for whom.
//
// Nothing depends on which of two accesses comes first or on which thread runs them: an access is
// stamped first and compared afterwards, so of two at once at least one sees the other. It is
// compared before it happens, so that a kernel's race never becomes one of this program.

#include <atomic>
#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "simulator/check/access_record.h"
#include "simulator/check/detector.h"

namespace annulus::simulator {

class LaunchShadow {
 public:
  // What the launch needs of one allocation.
  struct View {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    // [kind]: where the launch stamps its own accesses; null before the first of a kind.
    std::atomic<AccessPlane*> own[kAccessKinds] = {};
    // [kind]: what others did that may conflict with an access of this kind.
    std::vector<AccessRecord::Rival> rivals[kAccessKinds];
    std::vector<AccessRange> ranges[kAccessKinds];
    std::shared_ptr<AccessRecord> record;
  };

  // `launch` is the kernel's operation. `blocks_ordered`: blocks have another judge.
  LaunchShadow(Detector& detector, OperationPointer launch, bool blocks_ordered);

  Detector& detector() { return detector_; }

  // The view of the allocation that `record` is of; lives as long as the launch.
  View* view(std::shared_ptr<AccessRecord> record);

  // An access of memory that nothing holds, and that `freer` freed (null: nobody did). Throws the
  // Fault where that is not before this launch; otherwise it is a matter of bounds.
  void check_freed(const OperationPointer& freer, int lane, std::uint64_t address) const;

  // The stamps of a warp, but for lane and site.
  Stamp stamp(std::uint64_t block, int warp) const {
    const std::uint64_t number = block << warp_bits_ | static_cast<std::uint64_t>(warp);
    return number_ << kStampOperationShift | ((number << kStampWarpShift) & kStampWarps);
  }

  // Lanes of a warp access `bytes` each, all within the view; addresses[lane]. Requires: `bytes` is
  // a power of two up to 32 and divides the addresses. Throws Fault without its place.
  void access(View& view, AccessKind kind, std::uint32_t lanes, const std::uint64_t* addresses,
              std::uint32_t bytes, Stamp mine) {
    if (kind == AccessKind::kRead) lanes = read(view, lanes, addresses, bytes, mine);
    for (; lanes != 0; lanes &= lanes - 1) {
      const int lane = std::countr_zero(lanes);
      access_slowly(view, kind, lane, addresses[lane] - view.begin, bytes,
                    mine | static_cast<Stamp>(lane) << kStampLaneShift);
    }
  }

 private:
  // The usual case, a read that only writes of the launch itself can conflict with. Stamps it, and
  // returns the lanes that need another look.
  std::uint32_t read(const View& view, std::uint32_t lanes, const std::uint64_t* addresses,
                     std::uint32_t bytes, Stamp mine) const;

  void access_slowly(View& view, AccessKind kind, int lane, std::uint64_t offset,
                     std::uint32_t bytes, Stamp mine);
  AccessPlane& own_plane(View& view, AccessKind kind);
  // Stamps the cells; what was there is left in `old`, as many as the result.
  std::size_t put_all(AccessPlane& plane, AccessKind kind, std::uint64_t offset,
                      std::uint32_t bytes, Stamp mine, Stamp* old) const;
  bool put(std::atomic<Stamp>& cell, AccessKind kind, Stamp mine, Stamp* old) const;

  struct Access {
    AccessKind kind;
    std::uint64_t offset;
    std::uint32_t bytes;
    Stamp mine;
  };
  void compare(const View& view, const Access& access, const AccessPlane& plane, AccessKind other);
  void compare(const View& view, const Access& access, Stamp stamp, AccessKind other);
  bool ordered(std::uint32_t number);

  Detector& detector_;
  const OperationPointer operation_;
  std::uint64_t number_;  // of the operation in stamps
  int warp_bits_;
  Stamp same_block_;                               // the bits in which all stamps of a block agree
  std::vector<std::atomic<std::uint8_t>> orders_;  // [number]: 0 not known yet, 1 before, 2 not
  std::mutex mutex_;                               // guards views_, and own planes of all views
  std::map<std::uint64_t, View> views_;
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_CHECK_LAUNCH_SHADOW_H_
