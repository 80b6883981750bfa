#include "sim/arrivals.h"

#include "sim/cluster.h"
#include "sim/context.h"

namespace annulus::sim {

void Arrivals::release(Context& context, ClusterClocks::Lanes lanes) {
  const Warp& warp = *context.warp;
  context.cluster->clocks.release(open.shared, context.agent(), lanes | ~warp.live,
                                  lanes == warp.live);
  if (context.order != nullptr) context.order->arrive(context.clocks, warp.index, open.global);
}

void Arrivals::acquire(Context& context) const {
  context.cluster->clocks.acquire(over.shared, context.agent());
  if (context.order != nullptr) {
    context.order->leave(context.clocks, context.warp->index, over.global);
  }
}

void Arrivals::end_phase() {
  ClusterClocks::join(over.shared, open.shared);
  BlockOrder::join(over.global, open.global);
  open.shared.clear();
  open.global = {};
}

}  // namespace annulus::sim
