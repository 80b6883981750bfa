#ifndef ANNULUS_SIMULATOR_MACHINE_WARP_H_
#define ANNULUS_SIMULATOR_MACHINE_WARP_H_

// A warp: its registers, and the groups of lanes that run together.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulator/check/cluster_clocks.h"
#include "simulator/machine/async_copies.h"
#include "simulator/machine/warpgroup.h"
#include "simulator/program/lanes.h"

namespace annulus::simulator {

constexpr int kMaxCallDepth = 16;

enum class GroupState : std::uint8_t {
  kRunning,
  kParked,   // waits for other lanes of its warp, which have to meet it
  kWaiting,  // waits at a barrier; then it continues after the instruction
  kBlocked,  // waits for what `wait` names; then it runs the instruction again
};

// The event that a blocked group waits for.
struct Wait {
  enum Kind : std::uint8_t { kNone, kMbarrier, kRegisters, kMatrix, kCluster };
  Kind kind = kNone;
  std::uint32_t key = 0;     // the offset of the mbarrier, or the number of the warpgroup
  std::uint32_t detail = 0;  // a number for the message, e.g. the phase that the mbarrier has to
                             // pass
  bool same(const Wait& other) const { return kind == other.kind && key == other.key; }
};

// Lanes of a warp that are at the same instruction and have the same stack of calls.
struct Group {
  std::uint32_t pc = 0;
  Mask mask = 0;
  GroupState state = GroupState::kRunning;
  bool gives_way = false;  // to other groups that can run (simulator/run/run_warp.h)
  std::uint8_t depth = 0;
  Wait wait;
  std::array<std::uint32_t, kMaxCallDepth> returns{};
};

// The handler of an instruction of Flow::kBarrier fills this in, for the lanes that ran it.
struct Pause {
  bool blocked = false;  // the lanes stop here
  bool again = false;    // the lanes run the instruction again when `wait` has happened
  bool yield = false;    // the turn of the warp is over
  Wait wait;
};

struct Cta;

// The state of one warp. A handler receives the warp whose lanes run.
struct Warp {
  std::byte* registers = nullptr;  // the register file, see simulator/program/program.h
  Cta* cta = nullptr;
  std::uint32_t pc = 0;  // index of the running instruction, or of the one whose effect runs
  int index = 0;         // in the CTA
  ClusterClocks::Agent agent = 0;
  Mask live = 0;   // lanes that have not exited
  Mask carry = 0;  // the carry flag of add.cc, addc and the like, a bit per lane
  Pause pause;
  bool ordered_first = false;  // the turn began with an ordered access that has not happened yet
  bool stood = false;          // the warp executed no instruction in its last turn
  std::vector<Group> groups;
  // `spun` measures how long groups have run in polling loops since a group gave way. `preferred`
  // counts the instructions since then (simulator/run/run_warp.cc).
  std::uint32_t spun = 0;
  std::uint32_t preferred = 0;
  AsyncCopies copies;
  MatrixWarp matrix;                            // the state of wgmma
  std::array<std::uint32_t, 32> bulk_groups{};  // the number of cp.async.bulk.commit_group of each
                                                // lane
  std::uint32_t maximum_registers = 0;          // registers of each thread, as set by setmaxnreg
  Mask cluster_arrived = 0;   // lanes that have arrived at barrier.cluster in its open phase
  Mask cluster_unwaited = 0;  // lanes that have arrived and not waited yet
  std::vector<Mask> written;  // the lanes in which each watched register was written (checked mode)
  std::vector<std::byte> local;  // [lane][local_bytes]
  std::vector<std::uint8_t> local_written;

  template <typename T>
  T* lanes(std::uint32_t slot) const {
    return reinterpret_cast<T*>(registers + slot);
  }
  // Returns a predicate register as a mask of the lanes where it is true, or the complement of the
  // mask.
  Mask predicate(std::uint32_t slot, bool negated = false) const {
    return *reinterpret_cast<const Mask*>(registers + slot) ^ (negated ? kFull : 0);
  }
  // Writes only the lanes of `mask`.
  void set_predicate(std::uint32_t slot, Mask value, Mask mask) const {
    Mask& d = *reinterpret_cast<Mask*>(registers + slot);
    d = (d & ~mask) | (value & mask);
  }

  // Stops the lanes here until Cta::wake() is called for the same event. Then they run the
  // instruction again.
  void suspend(Wait what) {
    pause.blocked = pause.again = true;
    pause.wait = what;
  }
};

// Whether the warp has a group that does not wait for anything.
inline bool can_run(const Warp& warp) {
  for (const Group& group : warp.groups) {
    if (group.state == GroupState::kRunning) return true;
  }
  return false;
}

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_MACHINE_WARP_H_
