#ifndef ANNULUS_SIM_OPS_ACCESS_H_
#define ANNULUS_SIM_OPS_ACCESS_H_

// How instructions reach memory: addresses of 32 lanes in, host pointers out, after the checks that
// keep the simulator itself safe (bounds, alignment: both twins) and those that find bugs (shadow
// of global memory: checked twin). Shared memory's shadow is the caller's, who knows the values.

#include <array>
#include <cstdint>
#include <mutex>

#include "sim/context.h"

namespace annulus::sim {

using LaneAddresses = std::array<std::uint64_t, kLanes>;
using LanePointers = std::array<std::byte*, kLanes>;

// base[lane] + offset, for a base slot of 32 or 64 bits.
void lane_addresses(const Context& context, std::uint32_t base_slot, bool base_is_64,
                    std::int64_t offset, LaneAddresses& addresses);

enum class Access : std::uint8_t { kLoad, kStore };

// Global memory; addresses are host addresses. What is loaded must have been written, what is
// stored is written from now on; `kind` is for the search for races, in which an atomic loads and
// writes.
template <bool kChecked>
void reach_global(Context& context, Mask mask, const LaneAddresses& addresses, std::uint32_t bytes,
                  Access access, AccessKind kind, LanePointers& pointers);

// Held by strong accesses of global memory while value and order change together. Does nothing for
// weak ones, in the fast twin, and in kernels whose blocks cannot order themselves.
template <bool kChecked>
class StrongScope {
 public:
  StrongScope(Context& context, const Inst& inst)
      : context_(context),
        order_(inst.order),
        on_(kChecked && context.order != nullptr && inst.order != MemoryOrder::kWeak) {
    if (on_) lock_ = context.order->lock_strong();
  }
  // In front of a write / behind a read, at the addresses of the lanes.
  void release(Mask mask, const LaneAddresses& addresses, bool read_too) const {
    for (Mask rest = on_ ? mask : 0; rest != 0; rest &= rest - 1) {
      context_.order->release(context_.clocks, context_.warp->index,
                              addresses[static_cast<std::size_t>(lowest_lane(rest))], order_,
                              read_too);
    }
  }
  void acquire(Mask mask, const LaneAddresses& addresses) const {
    for (Mask rest = on_ ? mask : 0; rest != 0; rest &= rest - 1) {
      context_.order->acquire(context_.clocks, context_.warp->index,
                              addresses[static_cast<std::size_t>(lowest_lane(rest))], order_);
    }
  }

 private:
  Context& context_;
  const MemoryOrder order_;
  const bool on_;
  std::unique_lock<std::mutex> lock_;
};

// Checks and marks for one lane; for copies of other sizes.
void check_global_read(Context& context, int lane, std::uint64_t address, std::uint32_t bytes);

// Shared memory; addresses are 32-bit shared addresses (the upper half is ignored). Counts bank
// conflicts in the checked twin.
template <bool kChecked>
void reach_shared(Context& context, Mask mask, const LaneAddresses& addresses, std::uint32_t bytes,
                  LanePointers& pointers);

// Local memory of each lane.
template <bool kChecked>
void reach_local(Context& context, Mask mask, const LaneAddresses& addresses, std::uint32_t bytes,
                 Access access, LanePointers& pointers);

// The offset in shared memory (0 at kSharedBase) of a pointer that reach_shared gave.
inline std::uint32_t shared_offset(const Context& context, const std::byte* pointer) {
  return static_cast<std::uint32_t>(pointer - context.shared.data());
}

// Wavefronts that the banks need for lanes of `mask`, each accessing `bytes` (4, 8 or 16; narrower
// counts as 4), and how many would do if no two different words met in a bank.
void count_wavefronts(Context& context, Mask mask, const LaneAddresses& addresses,
                      std::uint32_t bytes);

}  // namespace annulus::sim

#endif  // ANNULUS_SIM_OPS_ACCESS_H_
