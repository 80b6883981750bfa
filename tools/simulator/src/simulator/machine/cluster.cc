#include "simulator/machine/cluster.h"

#include "simulator/machine/cta.h"

namespace annulus::simulator {

Cluster::Cluster() = default;
Cluster::~Cluster() = default;

SharedPlace cluster_place(const Warp& warp, std::uint32_t address, int lane) {
  const Cta& cta = *warp.cta;
  const std::uint32_t rank = address >> kRankShift;
  const std::uint32_t offset = (address & ((1u << kRankShift) - 1)) - kSharedBase;
  if (rank == 0) return {warp.cta, offset};
  if (rank > cta.cluster->ctas.size()) {
    raise_at(FaultKind::kOutOfBounds, lane,
             "shared::cluster address {:#x} names CTA {}, but the cluster has {} CTAs", address,
             rank - 1, cta.cluster->ctas.size());
  }
  return {cta.cluster->ctas[rank - 1].get(), offset};
}

void check_started(const Warp& by, const Cta& cta, int lane) {
  if (!by.cta->checked || by.cta == &cta) return;
  const ClusterClocks& clocks = cta.cluster->clocks;
  bool live = false;
  bool known = false;
  for (const Warp& warp : cta.warps) {
    live |= warp.live != 0;
    const ClusterClocks::Known& of_warp = clocks.known(by.agent)[warp.agent];
    for (const ClusterClocks::Time& time : {of_warp.order, of_warp.over}) {
      known |= time.all > 0 || time.lanes != 0;
    }
  }
  if (!known) {
    report_at(
        FaultKind::kSharedRace, lane,
        "shared memory of CTA {} of the cluster is used before it is certain that the CTA has "
        "started; barrier.cluster has to come first",
        cta.rank);
  }
  if (!live) {
    raise_at(FaultKind::kOutOfBounds, lane,
             "shared memory of CTA {} of the cluster is used after its threads have exited",
             cta.rank);
  }
}

void complete_cluster_barrier(Cluster& cluster) {
  for (const auto& cta : cluster.ctas) {
    for (const Warp& warp : cta->warps) {
      if ((warp.live & ~warp.cluster_arrived) != 0) return;
    }
  }
  cluster.barrier.end_phase();
  ++cluster.events;
  for (const auto& cta : cluster.ctas) {
    for (Warp& warp : cta->warps) warp.cluster_arrived = 0;
    cta->wake({Wait::kCluster, 0});
  }
}

void check_remote_seen(const Cta& cta) {
  Cluster& cluster = *cta.cluster;
  for (const Cta::Remote& remote : cta.remote) {
    bool seen = false;
    for (const Warp& warp : cta.warps) {
      seen |= cluster.clocks.before(remote.by->agent, remote.clock, remote.lane, warp.agent, 0);
    }
    if (seen) continue;
    cluster.running = remote.by;
    remote.by->pc = remote.pc;
    report_at(
        FaultKind::kUnwaited, remote.lane,
        "CTA {} of the cluster may have exited when its shared memory is used here; it has to "
        "wait for this access, for example with barrier.cluster",
        cta.rank);
  }
}

}  // namespace annulus::simulator
