#ifndef ANNULUS_SIMULATOR_MACHINE_CTA_H_
#define ANNULUS_SIMULATOR_MACHINE_CTA_H_

// A CTA: its warps, its shared memory and barriers, and its operations that are under way.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "simulator/check/block_order.h"
#include "simulator/check/block_shadow.h"
#include "simulator/check/launch_shadow.h"
#include "simulator/check/shared_shadow.h"
#include "simulator/fault/fault.h"
#include "simulator/machine/counts.h"
#include "simulator/machine/flights.h"
#include "simulator/machine/mbarriers.h"
#include "simulator/machine/memory.h"
#include "simulator/machine/named_barrier.h"
#include "simulator/machine/random.h"
#include "simulator/machine/warp.h"
#include "simulator/machine/warpgroup.h"
#include "simulator/program/address_spaces.h"
#include "simulator/program/program.h"

namespace annulus::simulator {

struct Cluster;
class DeviceHeap;
class PrintBuffer;

// Global memory as a CTA accesses it, and, in checked mode, the records that its accesses are
// compared with.
struct GlobalView {
  GlobalMemory* memory = nullptr;
  std::span<const PeerMemory> peers;
  // [pc]: the allocation that the instruction accessed last, which is nearly always the next one
  // too.
  struct Recent : Allocation {
    LaunchShadow::View* view = nullptr;
  };
  std::vector<Recent> recent;

  // Searches for races in global memory. It is null in fast mode, and if the launch has no
  // operation.
  LaunchShadow* races = nullptr;
  BlockOrder* order = nullptr;  // null if blocks cannot order themselves
  Stamp stamp = 0;              // the stamp of the CTA's first warp
  BlockClocks clocks;
};

// One CTA. An object is made for each host thread and launch, and runs one cluster after another.
struct Cta {
  // Values from the launch.
  const Program* program = nullptr;
  const std::byte* parameters = nullptr;
  std::uint32_t grid[3] = {1, 1, 1};
  std::uint32_t block[3] = {1, 1, 1};
  std::uint32_t threads = 0;
  bool checked = false;
  bool strict = false;        // checked, and SimulatorOptions::reading is strict
  bool by_warp = false;       // SimulatorOptions::products
  std::uint32_t landing = 0;  // SimulatorOptions::landing
  // The drawn number from which elect.sync chooses its lane. If it is empty, elect.sync chooses the
  // lowest lane.
  std::optional<std::uint32_t> elected;

  // The position of the CTA.
  std::uint32_t index[3] = {0, 0, 0};  // in the grid
  Cluster* cluster = nullptr;
  std::uint32_t rank = 0;  // in the cluster

  // State that the warps share.
  std::vector<Warp> warps;
  std::vector<std::byte> shared;  // shared[0] is address kSharedBase
  std::array<NamedBarrier, kNamedBarriers> barriers;
  Mbarriers mbarriers;
  std::vector<Warpgroup> warpgroups;
  RegisterPool register_pool;
  GlobalView global;
  Xoshiro256 random{0};
  Counts counts;
  PrintBuffer* prints = nullptr;
  DeviceHeap* heap = nullptr;
  std::uint64_t executed = 0;  // number of executed warp instructions
  std::uint64_t ordered = 0;   // number of ordered accesses among them, while several CTAs are
                               // resident
  std::uint64_t changes = 0;   // number of atomics that changed the value they found

  SharedShadow shadow;       // in checked mode
  Flights flights;           // in checked mode
  BlockShadow block_shadow;  // in checked mode
  // Accesses of other CTAs to the shared memory of this one: the last access of each warp.
  struct Remote {
    std::uint32_t clock;
    int lane;
    Warp* by;
    std::uint32_t pc;
  };
  std::vector<Remote> remote;

  struct Free {
    void operator()(std::byte* files) const { std::free(files); }
  };
  std::unique_ptr<std::byte[], Free> register_files;

  // A number that rises with every action of the CTA that another thread could observe by reading
  // memory.
  std::uint64_t activity() const {
    std::uint64_t sum = changes;
    for (const Class kind :
         {Class::kGlobalStore, Class::kSharedStore, Class::kAsyncCopy, Class::kMatrix}) {
      sum += counts.by_class[static_cast<std::size_t>(kind)];
    }
    return sum;
  }

  std::uint32_t warp_count() const { return static_cast<std::uint32_t>(warps.size()); }

  // The lanes of a warp for which the CTA has threads.
  Mask warp_lanes(int warp) const {
    const std::uint32_t rest = threads - static_cast<std::uint32_t>(warp) * kLanes;
    return rest >= kLanes ? kFull : (1u << rest) - 1;
  }

  // Lets the groups that wait for this continue.
  void wake(const Wait& what) {
    for (Warp& warp : warps) {
      for (Group& group : warp.groups) {
        if (group.state == GroupState::kBlocked && group.wait.same(what)) {
          group.state = GroupState::kRunning;
        }
      }
    }
  }
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_MACHINE_CTA_H_
