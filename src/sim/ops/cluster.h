#ifndef ANNULUS_SIM_OPS_CLUSTER_H_
#define ANNULUS_SIM_OPS_CLUSTER_H_

#include "sim/decode.h"

namespace annulus::sim {

// barrier.cluster, a form of the opcode barrier.
void decode_cluster_barrier(Decoder& decoder);

// ld.shared::cluster and st.shared::cluster, once the operands have been taken (ops/memory.cc).
void decode_cluster_access(Decoder& decoder, bool store);

}  // namespace annulus::sim

#endif  // ANNULUS_SIM_OPS_CLUSTER_H_
