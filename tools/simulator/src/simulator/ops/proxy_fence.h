#ifndef ANNULUS_SIMULATOR_OPS_PROXY_FENCE_H_
#define ANNULUS_SIMULATOR_OPS_PROXY_FENCE_H_

#include "simulator/decode/decoder.h"

namespace annulus::simulator {

// Decodes fence.proxy and fence.mbarrier_init, forms of the opcode fence.
void decode_proxy_fence(Decoder& decoder);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_OPS_PROXY_FENCE_H_
