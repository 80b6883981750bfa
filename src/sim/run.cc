#include "sim/run.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "sim/cluster.h"

namespace annulus::sim {

std::string lanes_text(Mask mask) { return fmt::format("{:#010x}", mask); }

namespace {

bool stands(const Group& group) {
  return group.state == GroupState::kWaiting || group.state == GroupState::kBlocked;
}

}  // namespace

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

namespace {

// Merges groups that stand at the same place; returns the running one with the lowest pc.
Group* choose(Warp& warp) {
  std::vector<Group>& groups = warp.groups;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (stands(groups[i])) continue;
    for (std::size_t j = i + 1; j < groups.size();) {
      const bool same =
          groups[j].pc == groups[i].pc && groups[j].depth == groups[i].depth &&
          !stands(groups[j]) &&
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

void check_registers(Context& context, std::uint8_t watch, Mask mask) {
  if ((watch & kWatchMatrix) != 0 && mask != 0) touch_matrix_registers(context, context.pc);
  if ((watch & kWatchWritten) == 0) return;
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
  context.cluster->copies.check_exit(context, mask);
  check_matrix_exit(context);
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
  complete_cluster_barrier(*context.cluster);  // who has left is not waited for
  const bool last = std::all_of(context.warps.begin(), context.warps.end(),
                                [](const Warp& other) { return other.live == 0; });
  if (!last) return;
  check_products_issued(context);
  context.cluster->copies.check_end(*context.cluster, context);
  if (context.checked) check_remote_seen(context);
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
  std::uint32_t granted = budget;
  while (budget > 0) {
    Group* group = choose(warp);
    if (group == nullptr) break;
    const bool alone = warp.groups.size() == 1;
    // Where the running group may meet another one.
    std::uint32_t limit = kNoSlot;
    for (const Group& other : warp.groups) {
      if (&other != group && !stands(other) && other.pc > group->pc) {
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
      if (Checked && inst.watch != 0) check_registers(context, inst.watch, mask);
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
            context.blocked = context.again = context.yield = false;
            group->pc = pc;
            inst.run[Checked](context, inst, mask);
            if (context.yield) {
              granted -= budget;  // what is left of the turn is given up
              budget = 0;
            }
            if (context.again && mask != group_mask) {
              // The lanes whose predicate is false do not wait.
              group->pc = pc + 1;
              group->mask &= ~mask;
              warp.groups.push_back(*group);
              group = &warp.groups.back();
              group->pc = pc;
              group->mask = mask;
            }
            if (context.blocked) {
              group->state = context.again ? GroupState::kBlocked : GroupState::kWaiting;
              group->wait = context.wait;
              if (context.again) {
                // It will be counted when it runs again.
                --by_class[static_cast<std::size_t>(inst.kind)];
                lanes -= static_cast<std::uint64_t>(std::popcount(mask));
              }
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
      if (Checked && (inst.watch & kWatchWritten) != 0) {
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

}  // namespace

bool barrier_complete(const Context& context, const NamedBarrier& barrier) {
  if (barrier.expected != 0) return barrier.arrived >= barrier.expected;
  std::uint32_t live = 0;
  for (const Warp& warp : context.warps) live += warp.live != 0 ? kLanes : 0;
  return barrier.arrived >= live;
}

namespace {

// Whether anything can still happen that nobody does: all warps wait, or test mbarriers again and
// again to no end.
bool idle(const Cluster& cluster, std::size_t ready) {
  if (ready == 0) return true;
  // Effects that land late do so when every warp has had its turn several times.
  constexpr std::uint64_t kPatience = 8;
  return cluster.events == cluster.polled_events && cluster.polls > kPatience * ready;
}

void check_limits(const Cluster& cluster, const Context& context, const LaunchRequest& request,
                  std::size_t ready) {
  if (request.max_warp_instructions != 0 && context.executed > request.max_warp_instructions) {
    raise_at(FaultKind::kTimeout, -1, "the CTA has run {} warp instructions, {} are allowed",
             context.executed, request.max_warp_instructions);
  }
  constexpr std::uint64_t kPolls = 4096;
  if (cluster.events == cluster.polled_events && cluster.polls > kPolls * ready) {
    raise_at(FaultKind::kDeadlock, -1,
             "{} tests of mbarriers in a row found no phase over, and nothing else happened",
             cluster.polls);
  }
}

void land(Cluster& cluster, Warp& warp, Context& context) {
  if (!warp.copies.empty()) warp.copies.land_some(context);
  cluster.copies.land_some(cluster);
  if (!context.warpgroups.empty()) compute_some(context);
}

}  // namespace

void run_cluster(Cluster& cluster, const LaunchRequest& request, std::uint64_t cluster_index,
                 const abi::SimulatorOptions& options) {
  start_cluster(cluster, request, cluster_index, options);
  Context& first = *cluster.ctas.front();
  struct Ready {
    Context* context;
    Warp* warp;
  };
  std::vector<Ready> ready;
  while (true) {
    ready.clear();
    bool alive = false;
    for (const auto& cta : cluster.ctas) {
      for (Warp& warp : cta->warps) {
        alive |= warp.live != 0;
        if (can_run(warp)) ready.push_back({cta.get(), &warp});
      }
    }
    if (!alive) break;
    if (idle(cluster, ready.size()) && cluster.copies.land_one(cluster)) continue;
    if (ready.empty()) stuck(cluster);
    const auto [context, warp] = ready[first.dice.below(static_cast<std::uint32_t>(ready.size()))];
    cluster.running = context;
    const std::uint32_t quantum =
        options.quantum != 0 ? options.quantum : 1 + first.dice.below(1000);
    if (context->checked) {
      run_warp<true>(*context, *warp, quantum);
    } else {
      run_warp<false>(*context, *warp, quantum);
    }
    if (context->landing == 0) land(cluster, *warp, *context);
    cluster.running = context;
    check_limits(cluster, *context, request, ready.size());
  }
  for (const auto& cta : cluster.ctas) ++cta->counts.ctas;
}

}  // namespace annulus::sim
