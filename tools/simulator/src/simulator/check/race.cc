#include "simulator/check/race.h"

#include <fmt/core.h>

#include <utility>

#include "simulator/program/fault_location.h"
#include "simulator/program/lanes.h"
#include "simulator/program/program.h"

namespace annulus::simulator {
namespace {

static_assert(Program::kMaxSites <= kStampSite);

std::string name_of(const Operation& operation) {
  return fmt::format("{} on {}", operation.what, operation.where);
}

// Stores the place that a stamp names: block, warp and lane, and the line if the module is still
// loaded.
void place_at(Fault& fault, const Operation& kernel, Stamp stamp) {
  const std::uint64_t warp = (stamp & kStampWarps) >> kStampWarpShift;
  const std::uint64_t block = warp >> kernel.warp_bits;
  fault.block[0] = static_cast<std::uint32_t>(block % kernel.grid[0]);
  fault.block[1] = static_cast<std::uint32_t>(block / kernel.grid[0] % kernel.grid[1]);
  fault.block[2] = static_cast<std::uint32_t>(block / kernel.grid[0] / kernel.grid[1]);
  fault.warp = static_cast<int>(warp & ((std::uint64_t{1} << kernel.warp_bits) - 1));
  fault.lane = static_cast<int>((stamp >> kStampLaneShift) & 31);
  if (kernel.what.starts_with("kernel ")) fault.kernel = kernel.what.substr(7);
  const auto loaded = kernel.module.lock();
  const std::size_t site = stamp & kStampSite;
  if (loaded == nullptr || site == 0 || site >= kernel.program->sites.size()) return;
  locate(fault, *kernel.program, kernel.program->sites[site]);
}

// " in block (1,0,0), warp 2, lane 3 at file:7 (PTX line 30)", or nothing for a copy.
std::string place_text(const Racer& racer) {
  if (racer.stamp == 0) return {};
  Fault at;
  place_at(at, *racer.operation, racer.stamp);
  std::string text = fmt::format(" in block ({},{},{}), warp {}, lane {}", at.block[0], at.block[1],
                                 at.block[2], at.warp, at.lane);
  if (at.line > 0) text += fmt::format(" at {}:{}", at.file, at.line);
  if (at.ptx_line > 0) text += fmt::format(" (PTX line {})", at.ptx_line);
  return text;
}

std::string bytes_text(const RacePlace& place) {
  return fmt::format("{} bytes at global address {:#x} (byte {} of an allocation of {} bytes)",
                     place.bytes, place.address, place.address - place.allocation_begin,
                     place.allocation_end - place.allocation_begin);
}

}  // namespace

Fault unordered_operations(const Racer& now, const Racer& before, const RacePlace& place) {
  const bool in_turn = before.operation->serial < now.operation->serial;
  const Racer& first = in_turn ? before : now;
  const Racer& second = in_turn ? now : before;
  Fault fault;
  fault.kind = !writes(second.kind)  ? FaultKind::kMissingWait
               : !writes(first.kind) ? FaultKind::kEarlyReuse
                                     : FaultKind::kUnorderedWrites;
  fault.detail = fmt::format(
      "{} {} {}{}, which {} {}{}, and nothing orders the two: record an event on {} after the "
      "earlier one and let {} wait for it before the later one (cuEventRecord, cuStreamWaitEvent), "
      "or "
      "synchronise the host in between",
      name_of(*second.operation), verb(second.kind), bytes_text(place), place_text(second),
      name_of(*first.operation), verb(first.kind), place_text(first), first.operation->where,
      second.operation->where);
  fault.other = before.operation;
  const bool in_kernel = now.operation->program != nullptr;
  if (before.stamp != 0 && !in_kernel) place_at(fault, *before.operation, before.stamp);
  return fault;
}

Fault unordered_blocks(const Racer& now, const Racer& before, const RacePlace& place) {
  Fault fault;
  fault.kind = FaultKind::kGlobalRace;
  fault.detail = fmt::format(
      "a block {} {}, which another block of the launch {}{}, and nothing orders the two: give "
      "each "
      "block bytes of its own, or let one release them (a fence of the device, then an atomic) and "
      "the other acquire them (an atomic, then a fence)",
      verb(now.kind), bytes_text(place), verb(before.kind), place_text(before));
  return fault;
}

Fault unordered_lanes(const LaneAccess& now, const LaneAccess& before, const Program& program,
                      std::uint64_t address) {
  const bool same_warp = now.warp == before.warp;
  std::string who = before.lane < kLanes ? fmt::format("lane {}", before.lane) : "several lanes";
  who += same_warp ? " of the same warp" : fmt::format(" of warp {} of the block", before.warp);
  std::string where;
  if (before.site != 0 && before.site < program.sites.size()) {
    Fault at;
    locate(at, program, program.sites[before.site]);
    if (at.line > 0) where += fmt::format(" at {}:{}", at.file, at.line);
    if (at.ptx_line > 0) where += fmt::format(" (PTX line {})", at.ptx_line);
  }
  Fault fault;
  fault.kind = FaultKind::kGlobalRace;
  fault.detail = fmt::format(
      "a lane {} global address {:#x}, which {} {}{}, and nothing orders the two: put {} in "
      "between, or make both atomic",
      verb(now.kind), address, who, verb(before.kind), where,
      same_warp ? "bar.warp.sync (__syncwarp) or a barrier of the block"
                : "a barrier of the block (__syncthreads)");
  return fault;
}

Fault used_after_free(const Operation* freer, const Operation& user, const char* what,
                      std::uint64_t address) {
  Fault fault;
  fault.kind = FaultKind::kFreedInUse;
  fault.detail = fmt::format(
      "{} {} global address {:#x}, of memory that {} has freed, and nothing orders the two; wait "
      "for "
      "{} before the memory is freed",
      name_of(user), what, address, freer != nullptr ? name_of(*freer) : "the host", user.where);
  return fault;
}

Fault freed_in_use(const Operation* freer, const char* call, const Racer& user,
                   const RacePlace& place) {
  Fault fault;
  fault.kind = FaultKind::kFreedInUse;
  const std::string who = freer != nullptr ? name_of(*freer) : call;
  fault.detail = fmt::format(
      "{} frees memory that may still be in use: {} {} {}{}, and nothing orders the two; wait for "
      "{} first",
      who, name_of(*user.operation), verb(user.kind), bytes_text(place), place_text(user),
      user.operation->where);
  fault.other = user.operation;
  if (user.stamp != 0) place_at(fault, *user.operation, user.stamp);
  return fault;
}

}  // namespace annulus::simulator
