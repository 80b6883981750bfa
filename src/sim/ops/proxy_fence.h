#ifndef ANNULUS_SIM_OPS_PROXY_FENCE_H_
#define ANNULUS_SIM_OPS_PROXY_FENCE_H_

#include "sim/decode.h"

namespace annulus::sim {

// fence.proxy and fence.mbarrier_init, forms of the opcode fence.
void decode_proxy_fence(Decoder& decoder);

}  // namespace annulus::sim

#endif  // ANNULUS_SIM_OPS_PROXY_FENCE_H_
