#ifndef ANNULUS_SIMULATOR_CHECK_BLOCK_ORDER_H_
#define ANNULUS_SIMULATOR_CHECK_BLOCK_ORDER_H_

// Finds races between the blocks of one launch. It is used if the kernel can order its blocks,
// because it has fences of the device, or acquires and releases. The rules are those of the memory
// model of PTX (PTX ISA 9.0, chapter 8). A warp "knows" an access if the access comes before its
// next access:
//
//   a fence, or a release, publishes what the warp knows, at the strong writes after it;
//   a strong read takes what was published by the writes whose value it reads. The warp knows it
//   from its next fence on, or at once if the read is an acquire;
//   a warp knows its own accesses, and through barriers of the block those of the other warps.
//
// One rule is weaker than in the model, because programs rely on it and every GPU behaves so: a
// barrier of the block also passes on the effect of fences and strong reads. So the barrier may
// come between the fences of all threads and the atomic of one thread, or between that atomic and
// the fences after it.
//
// Every warp has a clock, which ticks when the warp publishes something, and a vector of the clocks
// of other warps that it knows (a vector clock). An access of another block is ordered if its clock
// is known. The search is exact to the byte. It takes 16 bytes for each warp and each 16 bytes that
// the warp accessed, and frees this memory at the end of the launch. The threads of a warp count as
// one.

#include <array>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "simulator/check/block_clocks.h"
#include "simulator/check/launch_shadow.h"
#include "simulator/program/program.h"

namespace annulus::simulator {

class BlockOrder {
 public:
  explicit BlockOrder(OperationPointer launch);

  void start(BlockClocks& block, std::uint64_t index, std::uint32_t warps) const;

  // Locks a strong access together with release() or acquire() for its address, so that the
  // recorded order matches the value that is read.
  std::unique_lock<std::mutex> lock_strong() { return std::unique_lock(strong_mutex_); }
  // The warp makes a strong write. `read_too` means that it is an atomic, which also reads.
  void release(BlockClocks& block, int warp, std::uint64_t address, MemoryOrder order,
               bool read_too);
  // The warp makes a strong read. Returns the warps of its own block whose accesses it now knows,
  // as bits.
  std::uint32_t acquire(BlockClocks& block, int warp, std::uint64_t address, MemoryOrder order);
  void fence(BlockClocks& block, int warp) const;
  // The warp arrives at a barrier, or leaves it.
  void arrive(BlockClocks& block, int warp, Knowledge& barrier) const;
  void leave(BlockClocks& block, int warp, const Knowledge& barrier) const;
  void shared_atomic(BlockClocks& block, int warp) const;
  static void join(Knowledge& into, const Knowledge& from);

  // The writes of the warp in the range, recorded while BlockClocks::unfinished was set, happen
  // now. Until this call no other block knows them, whatever the warp releases.
  void finish(const BlockClocks& block, int warp, std::uint64_t begin, std::uint64_t end);

  // A lane accesses bytes of one allocation. Throws Fault, to which the caller adds the place.
  void access(const BlockClocks& block, int warp, const LaunchShadow::View& view, AccessKind kind,
              int lane, std::uint64_t address, std::uint32_t bytes, Stamp mine);

 private:
  static constexpr std::size_t kParts = 64;
  static constexpr std::uint32_t kUnfinished = ~0u;  // the clock of a write that has not happened
                                                     // yet

  // The last access by a warp, of one kind, to some bytes of an aligned group of 16.
  struct Entry {
    std::uint32_t warp;
    std::uint32_t clock;
    std::uint16_t bytes;  // one bit for each byte
    AccessKind kind;
    std::uint8_t lane;
    std::uint16_t site;
    bool bulk;
  };
  // The access that is being made, within an aligned group of 16 bytes.
  struct Access {
    AccessKind kind;
    int lane;
    std::uint64_t address;
    std::uint32_t bytes;
    Stamp mine;
  };
  struct Part {
    std::mutex mutex;
    std::unordered_map<std::uint64_t, std::vector<Entry>> places;  // the key is address / 16
  };

  static void join(Clocks& into, const Clocks& from);
  static Clocks now(const BlockClocks& block, int warp);
  void access_place(const BlockClocks& block, int warp, const LaunchShadow::View& view,
                    const Access& access);
  void report_race(const Entry& entry, std::uint64_t address, const LaunchShadow::View& view,
                   const Access& access) const;

  const OperationPointer operation_;
  const int warp_bits_;
  std::array<Part, kParts> parts_;
  std::mutex strong_mutex_;                           // guards strong_
  std::unordered_map<std::uint64_t, Clocks> strong_;  // the published clocks, by address
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_CHECK_BLOCK_ORDER_H_
