#include "simulator/machine/arrivals.h"

#include "simulator/machine/cluster.h"
#include "simulator/machine/cta.h"

namespace annulus::simulator {

void Arrivals::release(const Warp& warp, ClusterClocks::Lanes lanes) {
  Cta& cta = *warp.cta;
  cta.block_shadow.settle(warp.index);
  // Lanes that have exited make no more accesses, so their accesses are released too.
  cta.cluster->clocks.release(open.shared, warp.agent, lanes | ~warp.live, lanes == warp.live);
  GlobalView& global = cta.global;
  if (global.order != nullptr) global.order->arrive(global.clocks, warp.index, open.global);
}

void Arrivals::acquire(const Warp& warp) const {
  Cta& cta = *warp.cta;
  cta.cluster->clocks.acquire(over.shared, warp.agent);
  GlobalView& global = cta.global;
  if (global.order != nullptr) global.order->leave(global.clocks, warp.index, over.global);
}

void Arrivals::release_ended(const Warp& warp, ClusterClocks::Lanes lanes) {
  warp.cta->cluster->clocks.release_ended(open.shared, warp.agent, lanes | ~warp.live,
                                          lanes == warp.live);
}

void Arrivals::acquire_ended(const Warp& warp) const {
  warp.cta->cluster->clocks.acquire_ended(over.shared, warp.agent);
}

void Arrivals::end_phase() {
  ClusterClocks::join(over.shared, open.shared);
  BlockOrder::join(over.global, open.global);
  open.shared.clear();
  open.global = {};
}

}  // namespace annulus::simulator
