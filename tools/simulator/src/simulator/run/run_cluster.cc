#include "simulator/run/run_cluster.h"

#include <algorithm>
#include <vector>

#include "simulator/machine/cta.h"
#include "simulator/ops/wgmma.h"
#include "simulator/run/cta_init.h"
#include "simulator/run/deadlock.h"
#include "simulator/run/run_warp.h"

namespace annulus::simulator {
namespace {

// Fills `ready` with the warps that can run. Returns false if all lanes of all CTAs have exited.
bool find_ready(const Cluster& cluster, std::vector<Warp*>& ready) {
  ready.clear();
  bool alive = false;
  for (const auto& cta : cluster.ctas) {
    for (Warp& warp : cta->warps) {
      alive |= warp.live != 0;
      if (can_run(warp)) ready.push_back(&warp);
    }
  }
  return alive;
}

// Whether no warp makes progress: all warps wait, or they only test mbarriers. Then only a copy
// that lands can change anything.
bool idle(const Cluster& cluster, std::size_t ready) {
  if (ready == 0) return true;
  // A warp ends its turn when its test fails, so this is about 8 turns of every ready warp. So
  // copies that land late stay late, which makes a missing wait visible. But they land long before
  // the kPolls of check_limits, at which the kernel is reported as a deadlock.
  constexpr std::uint64_t kPatience = 8;
  return cluster.events == cluster.polled_events && cluster.polls > kPatience * ready;
}

void check_limits(const Cluster& cluster, const Cta& cta, const LaunchRequest& request,
                  std::size_t ready) {
  if (request.max_warp_instructions != 0 && cta.executed > request.max_warp_instructions) {
    raise_at(FaultKind::kTimeout, -1,
             "block ({}, {}, {}) has run {} warp instructions, but the option limit allows {}: {}",
             cta.index[0], cta.index[1], cta.index[2], cta.executed, request.max_warp_instructions,
             waits_text(cta));
  }
  constexpr std::uint64_t kPolls = 4096;
  if (cluster.events == cluster.polled_events && cluster.tests > kPolls * ready) {
    raise_at(FaultKind::kDeadlock, -1,
             "{} tests of mbarriers in a row found no phase over, and nothing else happened",
             cluster.tests);
  }
}

// Lets one copy take effect that a warp may wait for. Returns false if there is none.
bool land_one(Cluster& cluster) {
  if (cluster.copies.land_one(cluster)) return true;
  for (const auto& cta : cluster.ctas) {
    for (Warp& warp : cta->warps) {
      cluster.running = &warp;
      if (warp.copies.land_one(warp)) return true;
    }
  }
  return false;
}

// Lets some of the operations under way take effect, after the turn of a warp.
void land(Cluster& cluster, Warp& warp) {
  if (!warp.copies.empty()) warp.copies.land_some(warp);
  cluster.copies.land_some(cluster);
  if (!warp.cta->warpgroups.empty()) compute_some(*warp.cta);
}

}  // namespace

void end_cluster(Cluster& cluster) {
  for (const auto& cta : cluster.ctas) ++cta->counts.ctas;
}

bool run_turn(Cluster& cluster, const LaunchRequest& request, const abi::SimulatorOptions& options,
              std::vector<Warp*>& ready) {
  do {
    if (!find_ready(cluster, ready)) return false;
  } while (idle(cluster, ready.size()) && land_one(cluster));
  if (ready.empty()) report_deadlock(cluster);
  Xoshiro256& random = cluster.ctas.front()->random;
  Warp& warp = *ready[random.below(static_cast<std::uint32_t>(ready.size()))];
  Cta& cta = *warp.cta;
  cluster.running = &warp;
  const std::uint32_t quantum = options.quantum != 0 ? options.quantum : 1 + random.below(1000);
  if (cta.checked) {
    run_warp<true>(warp, quantum);
  } else {
    run_warp<false>(warp, quantum);
  }
  if (cta.landing == 0) land(cluster, warp);
  cluster.running = &warp;
  check_limits(cluster, cta, request, ready.size());
  return true;
}

void run_cluster(Cluster& cluster, const LaunchRequest& request, std::uint64_t cluster_index,
                 const abi::SimulatorOptions& options) {
  start_cluster(cluster, request, cluster_index, options);
  std::vector<Warp*> ready;
  while (run_turn(cluster, request, options, ready)) {
  }
  end_cluster(cluster);
}

}  // namespace annulus::simulator
