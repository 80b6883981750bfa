#include "simulator/run/deadlock.h"

#include <algorithm>
#include <string>

#include "simulator/machine/cta.h"
#include "simulator/run/run_warp.h"

namespace annulus::simulator {
namespace {

// Makes this the place of the next fault that is thrown.
void stand_at(Cluster& cluster, Warp& warp, std::uint32_t pc) {
  cluster.running = &warp;
  warp.pc = pc;
}

// Throws for a group that waits for lanes of its warp which will never arrive, because they are
// elsewhere or have exited. Lanes that wait for something themselves do not count.
void report_parked(Cluster& cluster, Cta& cta) {
  for (Warp& warp : cta.warps) {
    for (const Group& group : warp.groups) {
      if (group.state != GroupState::kParked) continue;
      stand_at(cluster, warp, group.pc);
      Mask missing = wanted(warp, cta.program->code[group.pc], group.mask) & ~group.mask;
      for (const Group& other : warp.groups) {
        if (other.state == GroupState::kBlocked || other.state == GroupState::kWaiting) {
          missing &= ~other.mask;
        }
      }
      if (missing == 0) continue;
      raise_at(FaultKind::kDivergentBarrier, lowest_lane(group.mask),
               "lanes {} wait here for lanes of their warp that cannot arrive (lanes that have not "
               "exited: {})",
               lanes_text(group.mask), lanes_text(warp.live));
    }
  }
}

const Group* running_group(const Warp& warp) {
  const auto found = std::ranges::find(warp.groups, GroupState::kRunning, &Group::state);
  return found == warp.groups.end() ? nullptr : &*found;
}

std::string awaited(const Cta& cta, const Group& group) {
  const Wait& wait = group.wait;
  switch (wait.kind) {
    case Wait::kMbarrier: {
      const Mbarrier* mbarrier = cta.mbarriers.find(wait.key);
      return mbarrier == nullptr ? std::string("an mbarrier") : Mbarriers::describe(*mbarrier);
    }
    case Wait::kRegisters:
      return fmt::format("{} registers per thread, and {} of the CTA are free", wait.detail,
                         cta.register_pool.free);
    case Wait::kMatrix:
      return "products of its warpgroup that not every warp has issued";
    case Wait::kCluster:
      return "the barrier of the cluster";
    case Wait::kNone:
      break;
  }
  return "nothing";
}

// Throws if groups wait for an event. The message names everything that is waited for. Its place is
// the first warp that waits.
void report_blocked(Cluster& cluster) {
  std::string all;
  Warp* first = nullptr;
  const Group* first_group = nullptr;
  for (const auto& cta : cluster.ctas) {
    for (Warp& warp : cta->warps) {
      for (const Group& group : warp.groups) {
        if (group.state != GroupState::kBlocked) continue;
        if (first == nullptr) {
          first = &warp;
          first_group = &group;
        }
        if (!all.empty()) all += "; ";
        all += cluster.ctas.size() == 1 ? std::string() : fmt::format("CTA {} ", cta->rank);
        all += fmt::format("warp {} for {}", warp.index, awaited(*cta, group));
      }
    }
  }
  if (first == nullptr) return;
  stand_at(cluster, *first, first_group->pc);
  raise_at(FaultKind::kDeadlock, lowest_lane(first_group->mask),
           "no warp can continue; these wait: {}", all);
}

// Throws for a barrier at which threads wait for other threads.
void report_barrier(Cluster& cluster, Cta& cta) {
  for (std::size_t id = 0; id < cta.barriers.size(); ++id) {
    const NamedBarrier& barrier = cta.barriers[id];
    if (!barrier.open || barrier.waiters.empty()) continue;
    const NamedBarrier::Waiter& waiter = barrier.waiters.front();
    stand_at(cluster, cta.warps[static_cast<std::size_t>(waiter.warp)], waiter.inst);
    raise_at(FaultKind::kDeadlock, lowest_lane(waiter.mask),
             "barrier {} has {} of {} threads and no warp can continue", id, barrier.arrived,
             barrier.expected != 0 ? std::to_string(barrier.expected) : std::string("all"));
  }
}

}  // namespace

// The most direct cause is reported first: lanes that part of a warp waits for, then events, then
// barriers, whose missing threads may be among those that wait for events.
void report_deadlock(Cluster& cluster) {
  for (const auto& cta : cluster.ctas) report_parked(cluster, *cta);
  report_blocked(cluster);
  for (const auto& cta : cluster.ctas) report_barrier(cluster, *cta);
  raise(FaultKind::kDeadlock, "no warp can continue");
}

std::string waits_text(const Cta& cta) {
  constexpr std::size_t kNamed = 4;
  std::string text;
  std::size_t named = 0;
  const auto add = [&](const Warp& warp, const std::string& what) {
    if (++named > kNamed) return;
    text += fmt::format("{}warp {} {}", named == 1 ? "" : "; ", warp.index, what);
  };
  for (const Warp& warp : cta.warps) {
    for (const Group& group : warp.groups) {
      if (group.state == GroupState::kRunning) {
        add(warp, fmt::format("runs at PTX line {}", cta.program->instructions[group.pc]->line));
      } else if (group.state == GroupState::kBlocked) {
        add(warp, "waits for " + awaited(cta, group));
      }
    }
  }
  for (std::size_t id = 0; id < cta.barriers.size(); ++id) {
    const NamedBarrier& barrier = cta.barriers[id];
    if (!barrier.open || barrier.waiters.empty()) continue;
    text += fmt::format("{}barrier {} has {} of {} threads", text.empty() ? "" : "; ", id,
                        barrier.arrived,
                        barrier.expected != 0 ? std::to_string(barrier.expected) : "all");
  }
  if (named > kNamed) text += fmt::format("; {} more groups of lanes", named - kNamed);
  return text;
}

void report_polls(const std::vector<Cluster*>& clusters, std::uint64_t unstarted) {
  constexpr std::size_t kNamed = 4;
  std::string polling;
  std::size_t named = 0;
  std::size_t ctas = 0;
  for (Cluster* cluster : clusters) {
    for (const auto& cta : cluster->ctas) {
      ctas += 1;
      for (Warp& warp : cta->warps) {
        const Group* group = running_group(warp);
        if (group == nullptr) continue;
        if (named == 0) stand_at(*cluster, warp, group->pc);
        if (++named > kNamed) continue;
        polling += fmt::format("{}block ({}, {}, {}) warp {} at PTX line {}",
                               named == 1 ? "" : "; ", cta->index[0], cta->index[1], cta->index[2],
                               warp.index, cta->program->instructions[group->pc]->line);
      }
    }
  }
  if (named > kNamed) polling += fmt::format("; {} more warps", named - kNamed);
  std::string others = "no CTA is left that has not started";
  if (unstarted != 0) {
    others = fmt::format(
        "{} more CTAs have not started, because no more than these fit on the device at a time",
        unstarted);
  }
  const Warp& first = *clusters.front()->running;
  raise_at(
      FaultKind::kDeadlock, lowest_lane(running_group(first)->mask),
      "{} CTAs are resident, and their only warps that can continue poll memory that no thread "
      "will write: {}; {}",
      ctas, polling, others);
}

}  // namespace annulus::simulator
