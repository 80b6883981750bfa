#ifndef ANNULUS_RING_PACK_H_
#define ANNULUS_RING_PACK_H_

// The kernel that packs a rank's K and V into the buffer that travels.

#include "jit/kernel_cache.h"
#include "ring/plan.h"

namespace annulus::ring {

jit::KernelSpec pack_spec(jit::Arch arch);

// Queues the copy of K and V of `operands`, whose shapes are those of `problem`, to `to`. Allocates
// nothing and does not wait. Requires: the shard has keys.
void pack(const device::Function& kernel, const Problem& problem, const Operands& operands,
          const PackedShard& shard, void* to, abi::CUstream stream);

}  // namespace annulus::ring

#endif  // ANNULUS_RING_PACK_H_
