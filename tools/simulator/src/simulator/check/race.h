#ifndef ANNULUS_SIMULATOR_CHECK_RACE_H_
#define ANNULUS_SIMULATOR_CHECK_RACE_H_

// Makes the faults for races in global memory, with their kinds and messages.

#include <cstdint>
#include <optional>

#include "simulator/check/access_kind.h"
#include "simulator/check/access_plane.h"
#include "simulator/check/operation.h"
#include "simulator/fault/fault.h"

namespace annulus::simulator {

struct Program;

// One of the two accesses that race.
struct Racer {
  OperationPointer operation;
  AccessKind kind{};
  Stamp stamp = 0;  // 0: a copy or fill, or the access that is being made
};

struct RacePlace {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t allocation_begin = 0;
  std::uint64_t allocation_end = 0;
};

// Two operations touch the same bytes, and no order connects them. The kind of the fault follows
// from the order in which they were submitted, which is the order that the author had in mind:
//
//   kMissingWait      the second reads what the first writes
//   kEarlyReuse       the second writes what the first reads
//   kUnorderedWrites  both write
//
// If a copy races with a kernel, the fault's place is the stamp of `before`. An access by a kernel
// that is being made gets its place from its instruction.
Fault unordered_operations(const Racer& now, const Racer& before, const RacePlace& place);

// Two blocks of one launch touch the same bytes, and no order connects them.
Fault unordered_blocks(const Racer& now, const Racer& before, const RacePlace& place);

// One of two accesses within a block.
struct LaneAccess {
  AccessKind kind{};
  int warp = 0;
  int lane = 0;  // ClusterClocks::kSeveral and the like if it is not a single lane
  std::uint32_t site = 0;
};
// Two warps of a block, or two lanes of a warp, touch the same bytes, with no barrier in between.
Fault unordered_lanes(const LaneAccess& now, const LaneAccess& before, const Program& program,
                      std::uint64_t address);

// An operation uses memory that `freer` (null: the host) has freed, and no order connects the two.
Fault used_after_free(const Operation* freer, const Operation& user, const char* what,
                      std::uint64_t address);

// An allocation is freed while `user` may still use it. `freer` is null for the host.
Fault freed_in_use(const Operation* freer, const char* call, const Racer& user,
                   const RacePlace& place);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_CHECK_RACE_H_
