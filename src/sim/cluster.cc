#include "sim/cluster.h"

#include "sim/context.h"

namespace annulus::sim {

Cluster::Cluster() = default;
Cluster::~Cluster() = default;

SharedPlace cluster_place(const Context& context, std::uint32_t address, int lane) {
  const std::uint32_t rank = address >> kRankShift;
  const std::uint32_t offset = (address & ((1u << kRankShift) - 1)) - kSharedBase;
  if (rank == 0) return {context.cluster->ctas[context.rank].get(), offset};
  if (rank > context.cluster->ctas.size()) {
    raise_at(FaultKind::kOutOfBounds, lane,
             "shared::cluster address {:#x} of CTA {}; the cluster has {}", address, rank - 1,
             context.cluster->ctas.size());
  }
  return {context.cluster->ctas[rank - 1].get(), offset};
}

void check_started(const Context& context, const Context& cta, int lane) {
  if (!context.checked || &context == &cta) return;
  const ClusterClocks& clocks = context.cluster->clocks;
  bool live = false;
  bool known = false;
  for (const Warp& warp : cta.warps) {
    live |= warp.live != 0;
    const ClusterClocks::Time& time =
        clocks
            .known(context.agent())[cta.first_agent + static_cast<ClusterClocks::Agent>(warp.index)]
            .order;
    known |= time.all > 0 || time.lanes != 0;
  }
  if (!known) {
    raise_at(FaultKind::kSharedRace, lane,
             "shared memory of CTA {} of the cluster is used before anything says that the CTA has "
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

void check_remote_seen(const Context& context) {
  const ClusterClocks& clocks = context.cluster->clocks;
  for (const Context::Remote& remote : context.remote) {
    bool seen = false;
    for (const Warp& warp : context.warps) {
      seen |= clocks.before(remote.agent, remote.clock, remote.lane,
                            context.first_agent + static_cast<ClusterClocks::Agent>(warp.index), 0);
    }
    if (seen) continue;
    Context& by = *remote.by;
    context.cluster->running = &by;
    by.warp = &by.warps[remote.agent - by.first_agent];
    by.pc = remote.pc;
    raise_at(FaultKind::kUnwaited, remote.lane,
             "CTA {} of the cluster may have exited when its shared memory is used here; it has to "
             "wait for this, with barrier.cluster say",
             context.rank);
  }
}

}  // namespace annulus::sim
