#ifndef ANNULUS_SIM_CONTEXT_H_
#define ANNULUS_SIM_CONTEXT_H_

// The state an instruction works on: one CTA with its warps, shared memory and barriers, and the
// Context through which handlers see it. One host thread runs one CTA at a time.

#include <fmt/core.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "sim/async_copies.h"
#include "sim/block_order.h"
#include "sim/cluster_clocks.h"
#include "sim/launch_shadow.h"
#include "sim/mbarriers.h"
#include "sim/program.h"
#include "sim/shared_shadow.h"
#include "sim/warpgroup.h"

namespace annulus::sim {

// Generic addresses: global memory is where the host has it; the other spaces are windows at
// addresses no host pointer has.
constexpr std::uint64_t kSharedWindow = 0x0001'0000'0000'0000;
constexpr std::uint64_t kLocalWindow = 0x0002'0000'0000'0000;
constexpr std::uint64_t kParamWindow = 0x0003'0000'0000'0000;
constexpr std::uint64_t kWindowBytes = 0x0001'0000'0000'0000;

// Shared memory starts behind the kilobyte that the system reserves, so 0 is not a valid address.
constexpr std::uint32_t kSharedBase = 1024;

constexpr int kMaxCallDepth = 16;
constexpr int kNamedBarriers = 16;

enum class GroupState : std::uint8_t {
  kRunning,
  kParked,   // for lanes of its warp that have to meet it
  kWaiting,  // at a barrier, which lets it go on behind the instruction
  kBlocked,  // until what `wait` names has happened; then it runs the instruction again
};

// What a blocked group waits for.
struct Wait {
  enum Kind : std::uint8_t { kNone, kMbarrier, kRegisters, kMatrix, kCluster };
  Kind kind = kNone;
  std::uint32_t key = 0;     // offset of the mbarrier, number of the warpgroup
  std::uint32_t detail = 0;  // for the message: what the mbarrier's phase should be past, ...
  bool same(const Wait& other) const { return kind == other.kind && key == other.key; }
};

// Lanes of a warp that stand at the same instruction with the same calls behind them.
struct Group {
  std::uint32_t pc = 0;
  Mask mask = 0;
  GroupState state = GroupState::kRunning;
  std::uint8_t depth = 0;
  Wait wait;
  std::array<std::uint32_t, kMaxCallDepth> returns{};
};

struct Warp {
  std::byte* registers = nullptr;
  int index = 0;
  Mask live = 0;   // lanes that have not exited
  Mask carry = 0;  // the carry flag of add.cc and friends
  std::vector<Group> groups;
  AsyncCopies copies;
  MatrixWarp matrix;                            // wgmma
  std::array<std::uint32_t, 32> bulk_groups{};  // cp.async.bulk.commit_group, per lane
  std::uint32_t maximum_registers = 0;          // of each thread, as setmaxnreg left it
  Mask cluster_arrived = 0;                     // at barrier.cluster, in its open phase
  Mask cluster_unwaited = 0;                    // lanes that have yet to wait for their arrival
  std::vector<Mask> written;                    // of watched registers (checked twin)
  std::vector<std::byte> local;                 // [lane][local_bytes]
  std::vector<std::uint8_t> local_written;
};

// bar.sync and friends. Counts threads, in whole warps for the aligned forms.
struct NamedBarrier {
  std::uint32_t expected = 0;  // 0: every warp of the CTA that has not exited
  std::uint32_t arrived = 0;
  bool open = false;
  std::uint32_t warps = 0;      // that arrived, waiting or not
  ClusterClocks::Vector times;  // what came before the arrivals
  Knowledge order;              // the same for global memory, where blocks order themselves
  std::uint32_t predicate_count = 0;
  bool predicate_and = true;
  bool predicate_or = false;
  struct Waiter {
    int warp;
    std::uint32_t inst;
    Mask mask;
  };
  std::vector<Waiter> waiters;
};

// xoshiro256**: fast, and seeded per CTA so that the number of host threads changes nothing.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) {
    for (std::uint64_t& word : state_) {  // splitmix64
      std::uint64_t z = (seed += 0x9e3779b97f4a7c15);
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
      z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
      word = z ^ (z >> 31);
    }
  }
  std::uint64_t next() {
    const std::uint64_t result = rotate(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = rotate(state_[3], 45);
    return result;
  }
  std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>(((next() >> 32) * bound) >> 32);
  }

 private:
  static std::uint64_t rotate(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  std::uint64_t state_[4] = {};
};

struct Counts {
  std::array<std::uint64_t, static_cast<std::size_t>(Class::kCount)> by_class{};
  std::uint64_t lanes = 0;
  std::uint64_t ctas = 0;
  std::uint64_t matrix_flop = 0;
  std::uint64_t special_lanes = 0;
  std::uint64_t wavefronts = 0;
  std::uint64_t wavefronts_ideal = 0;
  std::uint64_t sectors_read = 0;
  std::uint64_t sectors_written = 0;
  std::uint64_t bulk_bytes = 0;
  std::uint64_t matrix_shared_bytes = 0;
};

struct Cluster;

// Everything a handler may touch, of one CTA. Lives as long as a host thread works on a launch.
struct Context {
  std::byte* registers = nullptr;  // of the running warp
  Warp* warp = nullptr;
  const Program* program = nullptr;
  GlobalMemory* memory = nullptr;
  std::span<const PeerMemory> peers;
  const std::byte* parameters = nullptr;
  std::uint32_t pc = 0;  // of the running instruction
  bool blocked = false;  // set by a barrier: the lanes wait
  bool again = false;    // and run the instruction again when `wait` has happened
  bool yield = false;    // the warp's turn is over
  Wait wait;
  Counts counts;

  // The CTA.
  std::uint32_t grid[3] = {1, 1, 1};
  std::uint32_t block[3] = {1, 1, 1};
  std::uint32_t cta[3] = {0, 0, 0};
  std::uint32_t warp_count = 0;
  std::uint32_t threads = 0;
  std::vector<Warp> warps;
  std::vector<std::byte> shared;  // shared[0] is address kSharedBase
  SharedShadow shadow;
  Mbarriers mbarriers;
  std::vector<Warpgroup> warpgroups;
  RegisterPool register_pool;
  bool checked = false;
  bool by_warp = false;  // SimulatorOptions::products
  Cluster* cluster = nullptr;
  std::uint32_t rank = 0;                // in the cluster
  ClusterClocks::Agent first_agent = 0;  // of the warps
  std::uint32_t elected = 0;             // draws the lanes that elect.sync elects
  // Accesses of other CTAs to this one's shared memory, the last of each warp.
  struct Remote {
    ClusterClocks::Agent agent;
    std::uint32_t clock;
    int lane;
    Context* by;
    std::uint32_t pc;
  };
  std::vector<Remote> remote;
  std::array<NamedBarrier, kNamedBarriers> barriers;
  Dice dice{0};
  std::uint32_t landing = 0;
  std::uint64_t executed = 0;  // warp instructions of this CTA

  // The allocation that each instruction touched last: nearly always the right guess.
  struct Recent : Allocation {
    LaunchShadow::View* view = nullptr;  // checked twin
  };
  std::vector<Recent> recent;

  // Races in global memory; null in the fast twin, and where nobody asked.
  LaunchShadow* races = nullptr;
  BlockOrder* order = nullptr;  // null where blocks cannot order themselves
  Stamp stamp = 0;              // of the CTA's first warp
  BlockClocks clocks;

  struct Free {
    void operator()(std::byte* files) const { std::free(files); }
  };
  std::unique_ptr<std::byte[], Free> register_files;

  ClusterClocks::Agent agent() const {
    return first_agent + static_cast<ClusterClocks::Agent>(warp->index);
  }

  // The lanes stop here until wake() is called for the same thing, and then run the instruction
  // again.
  void suspend(Wait what) {
    blocked = again = true;
    wait = what;
  }
  void wake(const Wait& what) {
    for (Warp& one : warps) {
      for (Group& group : one.groups) {
        if (group.state == GroupState::kBlocked && group.wait.same(what)) {
          group.state = GroupState::kRunning;
        }
      }
    }
  }

  // The lanes of a warp that the CTA has threads for.
  Mask warp_lanes(int index) const {
    const std::uint32_t rest = threads - static_cast<std::uint32_t>(index) * kLanes;
    return rest >= kLanes ? kFull : (1u << rest) - 1;
  }

  template <typename T>
  T* lanes(std::uint32_t slot) const {
    return reinterpret_cast<T*>(registers + slot);
  }
  // A predicate register is a mask: the lanes where it is true, or where it is false.
  Mask predicate(std::uint32_t slot, bool negated = false) const {
    return *reinterpret_cast<const Mask*>(registers + slot) ^ (negated ? kFull : 0);
  }
  // Writes the lanes of `mask`.
  void set_predicate(std::uint32_t slot, Mask value, Mask mask) const {
    Mask& d = *reinterpret_cast<Mask*>(registers + slot);
    d = (d & ~mask) | (value & mask);
  }
};

[[noreturn]] void raise(FaultKind kind, std::string detail, int lane = -1);

template <typename... Arguments>
[[noreturn]] void raise_at(FaultKind kind, int lane, fmt::format_string<Arguments...> format,
                           Arguments&&... arguments) {
  raise(kind, fmt::format(format, std::forward<Arguments>(arguments)...), lane);
}

inline int lowest_lane(Mask mask) { return __builtin_ctz(mask); }

// In front of a loop over lanes: no lane depends on another, even where source and destination are
// the same register.
#if defined(__clang__)
#define ANNULUS_LANE_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define ANNULUS_LANE_LOOP _Pragma("GCC ivdep")
#endif

// d[lane] = f(s[lane]...) for the lanes of mask. Requires: f is pure, and harmless for any operand.
template <typename D, typename F, typename... S>
inline __attribute__((always_inline)) void each_lane(Mask mask, D* d, F f, const S*... s) {
  if (mask == kFull) {
    ANNULUS_LANE_LOOP
    for (int lane = 0; lane < kLanes; ++lane) d[lane] = f(s[lane]...);
  } else {
    for (int lane = 0; lane < kLanes; ++lane) {
      if ((mask >> lane) & 1) d[lane] = f(s[lane]...);
    }
  }
}

}  // namespace annulus::sim

#endif  // ANNULUS_SIM_CONTEXT_H_
