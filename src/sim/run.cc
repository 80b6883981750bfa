#include "sim/run.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace annulus::sim {

namespace {

std::string lanes_text(Mask mask) { return fmt::format("{:#010x}", mask); }

Mask wanted(const Context& context, const Warp& warp, const Inst& inst, Mask mask) {
  // A barrier does not wait for threads that have left; mma and the like need all 32.
  if (inst.flow == Flow::kBarrier) return warp.live;
  if (inst.meeting == Meeting::kWarp) return context.warp_lanes(warp.index);
  const auto* members = context.lanes<std::uint32_t>(inst.members);
  Mask all = 0;
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    if (((members[lane] >> lane) & 1) == 0) {
      raise_at(FaultKind::kInvalidOperand, lane, "the member mask {} does not name the lane itself",
               lanes_text(members[lane]));
    }
    all |= members[lane];
  }
  // Those that have left, or never were, are not waited for.
  return all & warp.live;
}

// Merges groups that stand at the same place; returns the running one with the lowest pc.
Group* choose(Warp& warp) {
  std::vector<Group>& groups = warp.groups;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].state == GroupState::kWaiting) continue;
    for (std::size_t j = i + 1; j < groups.size();) {
      const bool same =
          groups[j].pc == groups[i].pc && groups[j].depth == groups[i].depth &&
          groups[j].state != GroupState::kWaiting &&
          std::equal(groups[i].returns.begin(), groups[i].returns.begin() + groups[i].depth,
                     groups[j].returns.begin());
      if (!same) {
        ++j;
        continue;
      }
      groups[i].mask |= groups[j].mask;
      groups[i].state = GroupState::kRunning;
      groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(j));
    }
  }
  Group* best = nullptr;
  for (Group& group : groups) {
    if (group.state == GroupState::kRunning && (best == nullptr || group.pc < best->pc)) {
      best = &group;
    }
  }
  return best;
}

void check_registers(const Context& context, Mask mask) {
  for (const RegisterUse& use : context.program->reads[context.pc]) {
    const Mask missing = mask & ~context.warp->written[use.watched];
    if (missing != 0) {
      raise_at(FaultKind::kUninitialized, lowest_lane(missing),
               "a register is read that no instruction wrote on this path");
    }
  }
}

void copy_frame(Context& context, const std::uint32_t* move, Mask mask) {
  Warp& warp = *context.warp;
  const std::uint32_t stride = context.program->info.local_bytes;
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint32_t>(lowest_lane(rest));
    const std::size_t from = lane * stride + move[0];
    const std::size_t to = lane * stride + move[1];
    std::memmove(&warp.local[to], &warp.local[from], move[2]);
    std::memmove(&warp.local_written[to], &warp.local_written[from], move[2]);
  }
}

void split(Warp& warp, Group& group, Mask away, std::uint32_t pc) {
  Group other = group;
  other.mask = away;
  other.pc = pc;
  group.mask &= ~away;
  warp.groups.push_back(other);  // `group` is dangling from here on
}

void exit_lanes(Context& context, Warp& warp, Group& group, Mask mask) {
  if (warp.copies.pending(mask)) {
    raise(FaultKind::kUnwaited,
          "a thread exits while cp.async copies that it issued have not been waited for",
          lowest_lane(mask));
  }
  warp.live &= ~mask;
  group.mask &= ~mask;
  for (Group& other : warp.groups) {
    if (other.state == GroupState::kParked) other.state = GroupState::kRunning;
  }
  std::erase_if(warp.groups, [](const Group& other) { return other.mask == 0; });
  if (warp.live == 0) {
    for (NamedBarrier& barrier : context.barriers) {
      if (barrier.open && barrier_complete(context, barrier)) complete_barrier(context, barrier);
    }
  }
}

// Runs `warp` for up to `budget` instructions or until none of its groups can go on.
template <bool Checked>
void run_warp(Context& context, Warp& warp, std::uint32_t budget) {
  context.warp = &warp;
  context.registers = warp.registers;
  const Program& program = *context.program;
  const Inst* code = program.code.data();
  auto& by_class = context.counts.by_class;
  std::uint64_t lanes = 0;
  const std::uint32_t granted = budget;
  while (budget > 0) {
    Group* group = choose(warp);
    if (group == nullptr) break;
    const bool alone = warp.groups.size() == 1;
    // Where the running group may meet another one.
    std::uint32_t limit = kNoSlot;
    for (const Group& other : warp.groups) {
      if (&other != group && other.state != GroupState::kWaiting && other.pc > group->pc) {
        limit = std::min(limit, other.pc);
      }
    }
    std::uint32_t pc = group->pc;
    const Mask group_mask = group->mask;
    bool regroup = false;
    while (!regroup && budget > 0) {
      const Inst& inst = code[pc];
      Mask mask = group_mask;
      if (inst.guard != kNoSlot) {
        mask &= context.predicate(inst.guard, inst.guard_negated);
      }
      context.pc = pc;
      if (inst.meeting != Meeting::kNone && mask != 0) {
        const Mask all = wanted(context, warp, inst, mask);
        if ((all & ~mask) != 0) {
          if ((all & ~group_mask) == 0) {
            raise_at(FaultKind::kDivergentBarrier, lowest_lane(mask),
                     "its predicate is false for lanes {} that have to take part",
                     lanes_text(all & ~mask));
          }
          if (inst.meeting == Meeting::kWarp && (all & ~warp.live) != 0) {
            raise_at(FaultKind::kDivergentBarrier, lowest_lane(mask),
                     "lanes {} of the warp have exited; all have to take part",
                     lanes_text(all & ~warp.live));
          }
          group->pc = pc;
          group->state = GroupState::kParked;
          break;
        }
      }
      --budget;
      ++by_class[static_cast<std::size_t>(inst.kind)];
      lanes += static_cast<std::uint64_t>(std::popcount(mask));
      if (Checked && inst.check_registers) check_registers(context, mask);
      switch (inst.flow) {
        case Flow::kPlain:
          if (mask != 0) inst.run[Checked](context, inst, mask);
          ++pc;
          break;
        case Flow::kBranch:
          if (mask == group_mask) {
            pc = inst.target;
            regroup = !alone;
          } else if (mask == 0) {
            ++pc;
          } else {
            group->pc = pc + 1;
            split(warp, *group, mask, inst.target);
            group = nullptr;
            regroup = true;
          }
          break;
        case Flow::kBarrier:
          if (mask != 0) {
            context.blocked = false;
            group->pc = pc;
            inst.run[Checked](context, inst, mask);
            if (context.blocked) {
              group->state = GroupState::kWaiting;
              group = nullptr;
              regroup = true;
              break;
            }
          }
          ++pc;
          break;
        case Flow::kCall:
          if (mask != 0) {
            if (mask != group_mask) {
              group->pc = pc + 1;
              split(warp, *group, mask, pc);
              group = &warp.groups.back();
              regroup = true;
            }
            if (group->depth == kMaxCallDepth) {
              raise(FaultKind::kUnsupported, "calls nest deeper than 16, or recursion");
            }
            const auto arguments = static_cast<std::uint32_t>(inst.imm >> 32);
            for (std::uint32_t i = 0; i < arguments; i += 3) {
              copy_frame(context, &program.slots[inst.aux + i], mask);
            }
            group->returns[group->depth++] = pc;
            group->pc = inst.target;
            if (mask != group_mask) {
              group = nullptr;
            } else {
              pc = inst.target;
              regroup = !alone;
            }
          } else {
            ++pc;
          }
          break;
        case Flow::kReturn:
          if (mask == 0) {
            ++pc;
          } else if (group->depth > 0) {
            if (mask != group_mask) {
              group->pc = pc + 1;
              split(warp, *group, mask, pc);
              group = &warp.groups.back();
            }
            const std::uint32_t call = group->returns[--group->depth];
            const Inst& caller = code[call];
            const auto arguments = static_cast<std::uint32_t>(caller.imm >> 32);
            const auto all = static_cast<std::uint32_t>(caller.imm & 0xffffffff);
            for (std::uint32_t i = arguments; i < all; i += 3) {
              copy_frame(context, &program.slots[caller.aux + i], mask);
            }
            group->pc = call + 1;
            group = nullptr;
            regroup = true;
          } else {
            group->pc = pc + 1;
            exit_lanes(context, warp, *group, mask);
            group = nullptr;
            regroup = true;
          }
          break;
        case Flow::kExit:
          if (mask != 0) {
            group->pc = pc + 1;
            exit_lanes(context, warp, *group, mask);
            group = nullptr;
            regroup = true;
          } else {
            ++pc;
          }
          break;
      }
      if (Checked && inst.check_registers) {
        for (std::uint32_t watched : program.writes[context.pc]) warp.written[watched] |= mask;
      }
      if (group != nullptr) {
        group->pc = pc;
        if (!alone && pc >= limit) regroup = true;
      }
    }
  }
  context.counts.lanes += lanes;
  context.executed += granted - budget;
}

bool can_run(const Warp& warp) {
  return std::any_of(warp.groups.begin(), warp.groups.end(),
                     [](const Group& group) { return group.state == GroupState::kRunning; });
}

// Nobody can go on. Says why, at the place of a warp that waits.
[[noreturn]] void stuck(Context& context) {
  for (Warp& warp : context.warps) {
    for (const Group& group : warp.groups) {
      if (group.state != GroupState::kParked) continue;
      context.warp = &warp;
      context.pc = group.pc;
      raise_at(FaultKind::kDivergentBarrier, lowest_lane(group.mask),
               "lanes {} wait here for lanes of their warp that are elsewhere or gone (live: {})",
               lanes_text(group.mask), lanes_text(warp.live));
    }
  }
  for (std::size_t id = 0; id < context.barriers.size(); ++id) {
    const NamedBarrier& barrier = context.barriers[id];
    if (!barrier.open || barrier.waiters.empty()) continue;
    context.warp = &context.warps[static_cast<std::size_t>(barrier.waiters.front().warp)];
    context.pc = barrier.waiters.front().inst;
    raise_at(FaultKind::kDeadlock, lowest_lane(barrier.waiters.front().mask),
             "barrier {} has {} of {} threads and no warp can go on", id, barrier.arrived,
             barrier.expected != 0 ? std::to_string(barrier.expected) : std::string("all"));
  }
  raise(FaultKind::kDeadlock, "no warp can go on");
}

}  // namespace

bool barrier_complete(const Context& context, const NamedBarrier& barrier) {
  if (barrier.expected != 0) return barrier.arrived >= barrier.expected;
  std::uint32_t live = 0;
  for (const Warp& warp : context.warps) live += warp.live != 0 ? kLanes : 0;
  return barrier.arrived >= live;
}

void run_cta(Context& context, const LaunchRequest& request, std::uint64_t cta_index,
             const abi::SimulatorOptions& options) {
  start_cta(context, request, cta_index, options);
  const bool checked = options.checked != 0;
  std::vector<std::uint32_t> ready;
  while (true) {
    ready.clear();
    bool alive = false;
    for (std::uint32_t i = 0; i < context.warp_count; ++i) {
      alive |= context.warps[i].live != 0;
      if (can_run(context.warps[i])) ready.push_back(i);
    }
    if (!alive) break;
    if (ready.empty()) stuck(context);
    Warp& warp = context.warps[ready[context.dice.below(static_cast<std::uint32_t>(ready.size()))]];
    const std::uint32_t quantum =
        options.quantum != 0 ? options.quantum : 1 + context.dice.below(1000);
    if (checked) {
      run_warp<true>(context, warp, quantum);
    } else {
      run_warp<false>(context, warp, quantum);
    }
    if (context.landing == 0 && !warp.copies.empty()) warp.copies.land_some(context);
    if (request.max_warp_instructions != 0 && context.executed > request.max_warp_instructions) {
      raise_at(FaultKind::kTimeout, -1, "the CTA has run {} warp instructions, {} are allowed",
               context.executed, request.max_warp_instructions);
    }
  }
  ++context.counts.ctas;
}

}  // namespace annulus::sim
