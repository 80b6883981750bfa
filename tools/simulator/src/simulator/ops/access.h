#ifndef ANNULUS_SIMULATOR_OPS_ACCESS_H_
#define ANNULUS_SIMULATOR_OPS_ACCESS_H_

// Memory accesses of instructions: the addresses of 32 lanes become host pointers. Both modes make
// the checks that keep the simulator itself safe (bounds, alignment). Checked mode also makes the
// checks that find bugs (the shadow of global memory). The caller checks the shadow of shared
// memory, because it has the values.

#include <array>
#include <cstdint>
#include <mutex>

#include "simulator/machine/cta.h"

namespace annulus::simulator {

using LaneAddresses = std::array<std::uint64_t, kLanes>;
using LanePointers = std::array<std::byte*, kLanes>;

// addresses[lane] = base[lane] + offset, for a base slot of 32 or 64 bits.
void lane_addresses(const Warp& warp, std::uint32_t base_slot, bool base_is_64, std::int64_t offset,
                    LaneAddresses& addresses);

enum class Access : std::uint8_t { kLoad, kStore, kUpdate };  // an update reads and then writes

// Converts addresses of global memory, which are host addresses. Bytes that are loaded must have
// been written. Bytes that are stored are marked as written. `kind` is for the search for races,
// where an atomic is a load that is also a write.
template <bool kChecked>
void reach_global(Warp& warp, Mask mask, const LaneAddresses& addresses, std::uint32_t bytes,
                  Access access, AccessKind kind, LanePointers& pointers);

// A strong access to global memory holds a StrongScope, so that the value and the recorded order
// change together. The class does nothing in fast mode, for accesses that are weak for other
// blocks, and in kernels whose blocks cannot order themselves.
template <bool kChecked>
class StrongScope {
 public:
  StrongScope(Warp& warp, MemoryOrder order)
      : warp_(warp),
        global_(warp.cta->global),
        order_(order),
        on_(kChecked && global_.order != nullptr && strong_for_device(order)) {
    if (on_) lock_ = global_.order->lock_strong();
  }
  // release() is called before a write and acquire() after a read, with the addresses of the lanes.
  void release(Mask mask, const LaneAddresses& addresses, bool read_too) const {
    for (Mask rest = on_ ? mask : 0; rest != 0; rest &= rest - 1) {
      global_.order->release(global_.clocks, warp_.index,
                             addresses[static_cast<std::size_t>(lowest_lane(rest))], order_,
                             read_too);
    }
  }
  // With the option `reading=proven`, a relaxed atomic orders later accesses like an acquire.
  void acquire(Mask mask, const LaneAddresses& addresses, bool atomic = false) const {
    const bool at_once = atomic && !warp_.cta->strict && order_ == MemoryOrder::kRelaxed;
    const MemoryOrder order = at_once ? MemoryOrder::kAcquire : order_;
    for (Mask rest = on_ ? mask : 0; rest != 0; rest &= rest - 1) {
      const std::uint64_t address = addresses[static_cast<std::size_t>(lowest_lane(rest))];
      const std::uint32_t learnt =
          global_.order->acquire(global_.clocks, warp_.index, address, order);
      warp_.cta->block_shadow.learn(warp_.index, learnt, address);
    }
  }

 private:
  const Warp& warp_;
  GlobalView& global_;
  const MemoryOrder order_;
  const bool on_;
  std::unique_lock<std::mutex> lock_;
};

// For checked mode: searches for races within the block, in addition to the checks of reach_global.
// A load calls note_load. A store calls check_store and then note_store.
void note_load(const Warp& warp, Mask mask, const LaneAddresses& addresses, std::uint32_t bytes,
               MemoryOrder order);
void note_load(const Warp& warp, int lane, std::uint64_t address, std::uint32_t bytes);
void check_store(const Warp& warp, int lane, std::uint64_t address, std::uint32_t bytes,
                 MemoryOrder order);
void note_store(const Warp& warp, int lane, std::uint64_t address, std::uint32_t bytes,
                MemoryOrder order);

// Searches for races of a lane that updates memory by an atomic. The update has to be ordered by
// what came before. Then the lane takes what earlier strong writes at the address gave, if its
// result is used (`learns`), and gives. After all lanes of an instruction, the warp's clock has to
// advance.
void update_in_block(const Warp& warp, int lane, const LaneAddresses& addresses,
                     std::uint32_t bytes, MemoryOrder order, bool learns);

// Checks the read of one lane, for copies whose size no load instruction has.
void check_global_read(Warp& warp, int lane, std::uint64_t address, std::uint32_t bytes);

// Converts 32-bit shared addresses (the upper half is ignored). Counts bank conflicts in checked
// mode.
template <bool kChecked>
void reach_shared(Warp& warp, Mask mask, const LaneAddresses& addresses, std::uint32_t bytes,
                  LanePointers& pointers);

// Converts addresses in the local memory of each lane.
template <bool kChecked>
void reach_local(Warp& warp, Mask mask, const LaneAddresses& addresses, std::uint32_t bytes,
                 Access access, LanePointers& pointers);

// Throws Fault if the address of a lane is not a multiple of `bytes`, which is a power of two.
void require_aligned(Mask mask, const LaneAddresses& addresses, std::uint32_t bytes);

// The offset in shared memory (0 at kSharedBase) of a pointer that reach_shared returned.
inline std::uint32_t shared_offset(const Cta& cta, const std::byte* pointer) {
  return static_cast<std::uint32_t>(pointer - cta.shared.data());
}

// Counts the wavefronts that the banks need for the lanes of `mask`, and the wavefronts that would
// be enough without bank conflicts. Each lane accesses `bytes` bytes (4, 8 or 16; narrower accesses
// count as 4).
void count_wavefronts(Cta& cta, Mask mask, const LaneAddresses& addresses, std::uint32_t bytes);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_OPS_ACCESS_H_
