#ifndef ANNULUS_SIMULATOR_CHECK_LAUNCH_SHADOW_H_
#define ANNULUS_SIMULATOR_CHECK_LAUNCH_SHADOW_H_

// The search for races in global memory during one launch in checked mode. Every access of a lane
// is stamped into the records of its allocation and compared with the stamps there:
//
//   another operation's stamp   a race, unless that operation comes before this one
//                               (simulator/check/operation.h)
//   another block's stamp       a race, if blocks have no way to order themselves. Kernels with
//                               fences of the device use BlockOrder instead, which knows which
//                               warp waited for which.
//
// The result depends neither on the order of two accesses nor on the threads that run them. An
// access is stamped first and compared afterwards, so at least one of two simultaneous accesses
// finds the other. This needs sequentially consistent loads and exchanges of stamps, and of the
// pointers `own`: with acquire and release, each access could miss the other. An access is compared
// before it happens, so that a race of the kernel never becomes a race of this program.

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
  // The state of the search for one allocation.
  struct View {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    // [kind]: the plane in which the launch stamps its own accesses; null before the first one.
    std::atomic<AccessPlane*> own[kAccessKinds] = {};
    // [kind]: accesses by others that may conflict with an access of this kind.
    std::vector<AccessRecord::Rival> rivals[kAccessKinds];
    std::vector<AccessRange> ranges[kAccessKinds];
    std::shared_ptr<AccessRecord> record;
  };

  // `launch` is the kernel's operation. `blocks_ordered` means that the kernel can order its
  // blocks, so BlockOrder finds the races between them.
  LaunchShadow(Detector& detector, OperationPointer launch, bool blocks_ordered);

  Detector& detector() { return detector_; }

  // The view of the allocation that `record` describes. It stays valid as long as the launch.
  View* view(std::shared_ptr<AccessRecord> record);

  // A lane accesses memory that belongs to no allocation any more, because `freer` freed it (null:
  // no operation did). Throws Fault if no order connects the free and this launch. If the free
  // comes first, the access is out of bounds, which the caller reports.
  void check_freed(const OperationPointer& freer, int lane, std::uint64_t address) const;

  // The stamp of a warp's accesses, without the lane and the site.
  Stamp stamp(std::uint64_t block, int warp) const {
    const std::uint64_t number = block << warp_bits_ | static_cast<std::uint64_t>(warp);
    return number_ << kStampOperationShift | ((number << kStampWarpShift) & kStampWarps);
  }

  // Each of `lanes` accesses `bytes` at addresses[lane], all within the view. Requires: `bytes` is
  // a power of two up to 32 and divides the addresses. Throws Fault, to which the caller adds the
  // place.
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
  // Handles the usual case: a read with which only writes of the launch itself can conflict. Stamps
  // the cells, and returns the lanes that access_slowly has to handle.
  std::uint32_t read(const View& view, std::uint32_t lanes, const std::uint64_t* addresses,
                     std::uint32_t bytes, Stamp mine) const;

  void access_slowly(View& view, AccessKind kind, int lane, std::uint64_t offset,
                     std::uint32_t bytes, Stamp mine);
  AccessPlane& own_plane(View& view, AccessKind kind);
  // Stamps the cells of an access and returns their number. Their former stamps go to `old`.
  std::size_t put_all(AccessPlane& plane, AccessKind kind, std::uint64_t offset,
                      std::uint32_t bytes, Stamp mine, Stamp* old) const;
  // Stamps one cell, unless it has a stamp of this block already. Returns false if its chunk is
  // being split.
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
  std::uint64_t number_;  // the operation's number in stamps
  int warp_bits_;
  // The bits that are equal in all stamps of a block, or of all blocks if BlockOrder compares
  // blocks.
  Stamp same_block_;
  std::vector<std::atomic<std::uint8_t>> orders_;  // [number]: 0 not known yet, 1 comes before, 2
                                                   // does not
  std::mutex mutex_;  // guards views_, and the creation of planes in all views
  std::map<std::uint64_t, View> views_;
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_CHECK_LAUNCH_SHADOW_H_
