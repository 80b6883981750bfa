// Fences between threads (PTX ISA 9.0, section 9.7.13.4). Proxy fences are in proxy_fence.h.

#include <atomic>

#include "simulator/ops/handlers.h"
#include "simulator/ops/proxy_fence.h"

namespace annulus::simulator {
namespace {

// A fence with the scope of the block or the cluster.
void fence_block(Warp& warp, const Inst&, Mask) { warp.cta->block_shadow.settle(warp.index); }

void no_effect(Warp&, const Inst&, Mask) {}

// Blocks run on several threads of the host. The host's processor may let a load pass an earlier
// store to another address, which fence.sc forbids. All accesses of a warp are made by one thread.
template <bool kChecked>
void fence_blocks(Warp& warp, const Inst&, Mask) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!kChecked) return;
  Cta& cta = *warp.cta;
  cta.block_shadow.settle(warp.index);
  if (cta.global.order != nullptr) cta.global.order->fence(cta.global.clocks, warp.index);
}

}  // namespace

// The warps of a CTA take turns on one thread. So a fence between them changes no value, and only
// matters to the search for races. A fence between blocks is also a fence of the host's memory.
void decode_fence(Decoder& decoder) {
  if (decoder.has("proxy") || decoder.has("mbarrier_init")) return decode_proxy_fence(decoder);
  decoder.inst().kind = Class::kBarrier;
  if (decoder.has("cta") || decoder.has("cluster")) return decoder.handler(no_effect, fence_block);
  decoder.program().orders_blocks = true;
  decoder.handler(fence_blocks<false>, fence_blocks<true>);
}

}  // namespace annulus::simulator
