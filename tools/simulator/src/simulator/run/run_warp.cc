#include "simulator/run/run_warp.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "simulator/machine/cluster.h"
#include "simulator/ops/barrier.h"

namespace annulus::simulator {
namespace {

// Whether the group waits for something other than lanes of its own warp.
bool waits(const Group& group) {
  return group.state == GroupState::kWaiting || group.state == GroupState::kBlocked;
}

bool at_one_place(const Group& a, const Group& b) {
  return a.pc == b.pc && a.depth == b.depth &&
         std::equal(a.returns.begin(), a.returns.begin() + a.depth, b.returns.begin());
}

// Merges groups that are at the same instruction. A group that was parked there runs with the
// others, and is parked again if lanes are still missing.
void merge_groups(Warp& warp) {
  std::vector<Group>& groups = warp.groups;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (waits(groups[i])) continue;
    for (std::size_t j = i + 1; j < groups.size();) {
      if (waits(groups[j]) || !at_one_place(groups[i], groups[j])) {
        ++j;
        continue;
      }
      groups[i].mask |= groups[j].mask;
      groups[i].gives_way &= groups[j].gives_way;
      groups[i].state = GroupState::kRunning;
      groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(j));
    }
  }
}

// Whether group `a` runs before group `b`: its program counter is lower, unless one of them gives
// way.
bool goes_first(const Group& a, const Group& b) {
  return a.gives_way != b.gives_way ? b.gives_way : a.pc < b.pc;
}

void stop_giving_way(Warp& warp) {
  for (Group& group : warp.groups) group.gives_way = false;
  warp.preferred = 0;
}

// The next group to run, out of those that can run, or null.
Group* select_group(Warp& warp) {
  if (warp.groups.size() > 1) merge_groups(warp);
  Group* best = nullptr;
  for (Group& group : warp.groups) {
    if (group.state != GroupState::kRunning) continue;
    if (best == nullptr || goes_first(group, *best)) best = &group;
  }
  if (best != nullptr && best->gives_way) stop_giving_way(warp);
  return best;
}

// The first instruction ahead of the group at which it may meet another group.
std::uint32_t next_convergence(const Warp& warp, const Group& group) {
  std::uint32_t next = kNoSlot;
  for (const Group& other : warp.groups) {
    if (&other != &group && !waits(other) && other.pc > group.pc) next = std::min(next, other.pc);
  }
  return next;
}

// Whether all lanes that the instruction needs are present. `mask` has the lanes of the group whose
// predicate is true. Throws Fault if the missing lanes can never arrive.
bool all_here(const Warp& warp, const Group& group, const Inst& inst, Mask mask) {
  const Mask all = wanted(warp, inst, mask);
  if ((all & ~mask) == 0) return true;
  if ((all & ~group.mask) == 0) {
    raise_at(FaultKind::kDivergentBarrier, lowest_lane(mask),
             "its predicate is false for lanes {} that have to take part", lanes_text(all & ~mask));
  }
  if (inst.convergence == Convergence::kWarp && (all & ~warp.live) != 0) {
    raise_at(FaultKind::kDivergentBarrier, lowest_lane(mask),
             "lanes {} of the warp have exited; all have to take part",
             lanes_text(all & ~warp.live));
  }
  return false;
}

// For checked mode, before an instruction runs: checks registers that may be read before they are
// written, and registers that belong to a matrix product.
void check_registers(Warp& warp, std::uint8_t watch, Mask mask) {
  if ((watch & kWatchMatrix) != 0 && mask != 0) touch_matrix_registers(warp, warp.pc);
  if ((watch & kWatchWritten) == 0) return;
  for (const RegisterUse& use : warp.cta->program->reads[warp.pc]) {
    const Mask missing = mask & ~warp.written[use.watched];
    if (missing != 0 && !(use.passed_on && !warp.cta->strict)) {
      report_at(FaultKind::kUninitialized, lowest_lane(missing),
                "a register is read, but no instruction wrote it on this path");
    }
  }
}

void note_written(Warp& warp, const Inst& inst, Mask mask) {
  const Program& program = *warp.cta->program;
  for (const std::uint32_t watched : program.writes[warp.pc]) warp.written[watched] |= mask;
  const auto defined = [&](std::uint32_t part) {
    return part != kNoSlot ? warp.written[part] : kFull;
  };
  for (const PartMove& move : program.moves[warp.pc]) {
    Mask moved = defined(move.from) & defined(move.also);
    if (move.selects) {
      const Mask chosen = warp.predicate(inst.c, inst.small[0]);
      moved = (defined(move.from) & chosen) | (defined(move.also) & ~chosen);
    }
    warp.written[move.to] = (warp.written[move.to] & ~mask) | (moved & mask);
  }
}

// The effect on the running group of an instruction that changes the control flow.
struct Step {
  std::uint32_t pc = 0;  // the group's next instruction
  bool regroup = false;  // groups have changed or may merge: a group is selected again
  bool gone = false;     // the warp's groups already hold where its lanes continue
  bool yield = false;    // the rest of the turn is given up
  bool again = false;    // the instruction did not happen; the counters count it when it runs again
};

constexpr Step kGone{.regroup = true, .gone = true};

// Makes the lanes `away` of the group a separate group, the last of the warp, which continues at
// `pc`. The other lanes continue after the running instruction. Afterwards `group` is a dangling
// reference.
void split(Warp& warp, Group& group, Mask away, std::uint32_t pc) {
  Group other = group;
  other.mask = away;
  other.pc = pc;
  group.mask &= ~away;
  group.pc = warp.pc + 1;
  warp.groups.push_back(other);
}

// A branch of all lanes may reach the place of another group, so a group is selected again.
Step branch(Warp& warp, Group& group, const Inst& inst, Mask mask) {
  if (mask == group.mask) return {.pc = inst.target, .regroup = warp.groups.size() > 1};
  split(warp, group, mask, inst.target);
  return kGone;
}

// Copies parameters between the frames of caller and callee, in the local memory of each lane.
void copy_frames(Warp& warp, const Inst& call, std::uint32_t begin, std::uint32_t end, Mask mask) {
  const std::uint32_t stride = warp.cta->program->info.local_bytes;
  for (std::uint32_t i = begin; i < end; i += 3) {
    const std::uint32_t* move = &warp.cta->program->slots[call.aux + i];  // from, to, bytes
    for (Mask rest = mask; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<std::uint32_t>(lowest_lane(rest));
      const std::size_t from = lane * stride + move[0];
      const std::size_t to = lane * stride + move[1];
      std::memmove(&warp.local[to], &warp.local[from], move[2]);
      std::memmove(&warp.local_written[to], &warp.local_written[from], move[2]);
    }
  }
}

// Makes the lanes of `mask` a separate group at the running instruction, and returns it.
Group& part(Warp& warp, Group& group, Mask mask) {
  if (mask == group.mask) return group;
  split(warp, group, mask, warp.pc);
  return warp.groups.back();
}

Step call(Warp& warp, Group& group, const Inst& inst, Mask mask) {
  const bool whole = mask == group.mask;
  Group& caller = part(warp, group, mask);
  if (caller.depth == kMaxCallDepth) {
    raise(FaultKind::kUnsupported, "calls nest deeper than 16, or are recursive");
  }
  copy_frames(warp, inst, 0, static_cast<std::uint32_t>(inst.imm >> 32), mask);
  caller.returns[caller.depth++] = warp.pc;
  caller.pc = inst.target;
  if (!whole) return kGone;
  return {.pc = inst.target, .regroup = warp.groups.size() > 1};
}

// Called when the last warp of a CTA has exited. Throws Fault if an operation of the CTA is still
// under way.
void check_end(Warp& warp) {
  Cta& cta = *warp.cta;
  check_products_issued(warp);
  cta.cluster->copies.check_end(*cta.cluster, cta);
  if (cta.checked) check_remote_seen(cta);
}

// Lanes exit. They must have waited for the operations that they issued. From now on nothing waits
// for them: parked groups try again without them, and barriers that lacked only them are complete.
Step exit_lanes(Warp& warp, Group& group, Mask mask) {
  Cta& cta = *warp.cta;
  group.pc = warp.pc + 1;
  warp.copies.land_arrivals(warp, mask);
  if (warp.copies.pending(mask)) {
    report_at(FaultKind::kUnwaited, lowest_lane(mask),
              "a thread exits while cp.async copies that it issued have not been waited for");
    warp.copies.wait(warp, mask, 0, true, cta.checked);
  }
  cta.cluster->copies.check_exit(warp, mask);
  check_matrix_exit(warp);
  warp.live &= ~mask;
  group.mask &= ~mask;
  for (Group& other : warp.groups) {
    if (other.state == GroupState::kParked) other.state = GroupState::kRunning;
  }
  std::erase_if(warp.groups, [](const Group& other) { return other.mask == 0; });
  // Barriers count a warp as a whole as long as any of its lanes has not exited, so only the exit
  // of its last lane can complete one.
  if (warp.live == 0) {
    for (NamedBarrier& barrier : cta.barriers) {
      if (barrier.open && barrier_complete(cta, barrier)) complete_barrier(cta, barrier);
    }
  }
  complete_cluster_barrier(*cta.cluster);
  const bool last = std::all_of(cta.warps.begin(), cta.warps.end(),
                                [](const Warp& other) { return other.live == 0; });
  if (last) check_end(warp);
  return kGone;
}

// Returns from a function to the instruction after its call. A return from the kernel is an exit.
Step return_lanes(Warp& warp, Group& group, Mask mask) {
  if (group.depth == 0) return exit_lanes(warp, group, mask);
  Group& returning = part(warp, group, mask);
  const std::uint32_t call = returning.returns[--returning.depth];
  const Inst& caller = warp.cta->program->code[call];
  copy_frames(warp, caller, static_cast<std::uint32_t>(caller.imm >> 32),
              static_cast<std::uint32_t>(caller.imm & 0xffffffff), mask);
  returning.pc = call + 1;
  return kGone;
}

// Whether an ordered access has to wait. With co-resident clusters it may only be the first access
// of a turn that the cluster has because its clock is the smallest. So all clusters make these
// accesses in the order of their clocks, however long they run at a time. This function and
// begins_ordered() are not inlined, because the loop of run_group, which runs plain instructions,
// would then have one register less.
[[gnu::noinline]] bool waits_for_turn(Warp& warp) {
  Cluster& cluster = *warp.cta->cluster;
  if (!cluster.together) return false;
  if (!std::exchange(warp.ordered_first, false)) {
    cluster.held = true;
    return true;
  }
  cluster.count_poll();
  cluster.tests = 0;
  ++warp.cta->ordered;
  return false;
}

// Runs a handler that may set Warp::pause to make its lanes wait. A group that will run the
// instruction again is split from the lanes whose predicate is false, which continue.
template <bool kChecked>
Step wait_or_pass(Warp& warp, Group& group, const Inst& inst, Mask mask) {
  if (inst.flow == Flow::kOrdered && waits_for_turn(warp)) {
    return {.pc = warp.pc, .yield = true, .again = true};
  }
  Pause& pause = warp.pause;
  pause.blocked = pause.again = pause.yield = false;
  group.pc = warp.pc;
  inst.run[kChecked](warp, inst, mask);
  if (!pause.blocked) return {.pc = warp.pc + 1, .yield = pause.yield};
  Group& waiting = pause.again ? part(warp, group, mask) : group;
  waiting.state = pause.again ? GroupState::kBlocked : GroupState::kWaiting;
  waiting.wait = pause.wait;
  return {.regroup = true, .gone = true, .yield = pause.yield, .again = pause.again};
}

// Whether the turn of the warp of this group begins with an ordered access, and may do so.
[[gnu::noinline]] bool begins_ordered(const Warp& warp, const Group& group) {
  const Inst& inst = warp.cta->program->code[group.pc];
  if (inst.flow != Flow::kOrdered || !warp.cta->cluster->least) return false;
  return inst.guard == kNoSlot ||
         (group.mask & warp.predicate(inst.guard, inst.guard_negated)) != 0;
}

// Requires: `mask`, the lanes that execute the instruction, is not empty.
template <bool kChecked>
Step change_groups(Warp& warp, Group& group, const Inst& inst, Mask mask) {
  switch (inst.flow) {
    case Flow::kBranch:
      return branch(warp, group, inst, mask);
    case Flow::kCall:
      return call(warp, group, inst, mask);
    case Flow::kReturn:
      return return_lanes(warp, group, mask);
    case Flow::kExit:
      return exit_lanes(warp, group, mask);
    case Flow::kBarrier:
    case Flow::kOrdered:
      return wait_or_pass<kChecked>(warp, group, inst, mask);
    case Flow::kPlain:
      break;
  }
  inst.run[kChecked](warp, inst, mask);
  return {.pc = warp.pc + 1};
}

// The rest of a turn, and what was done in it.
struct Turn {
  std::uint32_t budget = 0;  // in instructions
  std::uint32_t granted = 0;
  std::uint32_t attempts = 0;  // instructions among them that did not happen
  std::uint64_t lanes = 0;
  std::uint64_t activity = 0;  // the activity when the running group last began a round of a
                               // polling loop
  bool round = false;          // the group begins another round
  std::uint32_t executed() const { return granted - budget; }
};

std::uint64_t activity(const Warp& warp) {
  return warp.cta->activity() + warp.cta->cluster->events;
}

// The group begins another round of a loop in which it may wait, and the warp has other groups. A
// round in which the warp changed nothing counts more towards the moment at which the group gives
// way.
void note_round(Warp& warp, Group& group, Turn& turn) {
  constexpr std::uint32_t kEnough = 4096;
  constexpr std::uint32_t kIdle = 256;
  const std::uint64_t now = activity(warp);
  warp.spun += std::exchange(turn.activity, now) == now ? kIdle : 1;
  turn.round = false;
  if (warp.spun < kEnough) return;
  warp.spun = 0;
  group.gives_way = true;
}

// Groups of the warp have run this number of instructions. Groups that gave way run again after
// some time, because the others may wait for them too.
void note_run(Warp& warp, std::uint32_t instructions) {
  constexpr std::uint32_t kLong = 4096;
  const auto gives_way = [](const Group& group) { return group.gives_way; };
  if (std::ranges::none_of(warp.groups, gives_way)) {
    warp.preferred = 0;
  } else if ((warp.preferred += instructions) >= kLong) {
    stop_giving_way(warp);
  }
}

// Runs the group until a group has to be selected again: the group has reached the next group
// (`limit`), has changed or waits, or the turn ends.
template <bool kChecked>
void run_group(Warp& warp, Group& group, Turn& turn) {
  const Inst* const code = warp.cta->program->code.data();
  auto& by_class = warp.cta->counts.by_class;
  const std::uint32_t limit = next_convergence(warp, group);
  const Mask group_mask = group.mask;
  std::uint32_t budget = turn.budget;
  std::uint64_t lanes = 0;
  Step step{.pc = group.pc};
  while (!step.regroup && budget > 0) {
    const Inst& inst = code[step.pc];
    Mask mask = group_mask;
    if (inst.guard != kNoSlot) mask &= warp.predicate(inst.guard, inst.guard_negated);
    warp.pc = step.pc;
    // A group that is parked has not run the instruction, so it costs nothing of the turn.
    if (inst.convergence != Convergence::kNone && mask != 0 && !all_here(warp, group, inst, mask)) {
      group.state = GroupState::kParked;
      break;
    }
    --budget;
    ++by_class[static_cast<std::size_t>(inst.kind)];
    lanes += static_cast<std::uint64_t>(std::popcount(mask));
    if (kChecked && inst.watch != 0) check_registers(warp, inst.watch, mask);
    if (inst.flow == Flow::kPlain || mask == 0) {
      if (mask != 0) inst.run[kChecked](warp, inst, mask);
      ++step.pc;
    } else {
      step = change_groups<kChecked>(warp, group, inst, mask);
      if (step.yield) turn.granted -= std::exchange(budget, 0);
      if (step.again) {
        // The counters are exact. The turn still pays for the attempt. So the number of executed
        // instructions, which only the clock and the limit of a launch use, includes each attempt.
        // note_written() below is harmless here: the lanes do nothing else before they run the
        // instruction again.
        ++turn.attempts;
        --by_class[static_cast<std::size_t>(inst.kind)];
        lanes -= static_cast<std::uint64_t>(std::popcount(mask));
      }
    }
    if (kChecked && (inst.watch & kWatchWritten) != 0) note_written(warp, inst, mask);
    if (step.pc >= limit) step.regroup = true;
  }
  turn.budget = budget;
  turn.lanes += lanes;
  if (step.gone) return;
  group.pc = step.pc;
  const Inst& last = code[warp.pc];
  turn.round = last.polls && step.regroup && step.pc == last.target;
}

}  // namespace

Mask wanted(const Warp& warp, const Inst& inst, Mask mask) {
  // A barrier does not wait for lanes that have exited, but mma and similar instructions need all
  // 32 lanes.
  if (inst.flow == Flow::kBarrier) return warp.live;
  if (inst.convergence == Convergence::kWarp) return warp.cta->warp_lanes(warp.index);
  const auto* members = warp.lanes<std::uint32_t>(inst.members);
  Mask all = 0;
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    if (warp.cta->checked && ((members[lane] >> lane) & 1) == 0) {
      raise_at(FaultKind::kInvalidOperand, lane, "the member mask {} does not name the lane itself",
               lanes_text(members[lane]));
    }
    all |= members[lane];
  }
  // Lanes that have exited, or have no thread, are not waited for.
  return all & warp.live;
}

template <bool kChecked>
void run_warp(Warp& warp, std::uint32_t budget) {
  Turn turn{.budget = budget, .granted = budget, .activity = activity(warp)};
  while (turn.budget > 0) {
    Group* const group = select_group(warp);
    if (group == nullptr) break;
    if (turn.budget == turn.granted) warp.ordered_first = begins_ordered(warp, *group);
    const std::uint32_t executed = turn.executed();
    run_group<kChecked>(warp, *group, turn);
    if (turn.round) note_round(warp, *group, turn);
    if (warp.groups.size() > 1) note_run(warp, turn.executed() - executed);
  }
  warp.cta->counts.thread_instructions += turn.lanes;
  warp.cta->executed += turn.executed();
  warp.stood = turn.executed() == turn.attempts;
}

template void run_warp<true>(Warp& warp, std::uint32_t budget);
template void run_warp<false>(Warp& warp, std::uint32_t budget);

}  // namespace annulus::simulator
