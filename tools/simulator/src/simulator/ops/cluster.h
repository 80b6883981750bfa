#ifndef ANNULUS_SIMULATOR_OPS_CLUSTER_H_
#define ANNULUS_SIMULATOR_OPS_CLUSTER_H_

#include "simulator/decode/decoder.h"

namespace annulus::simulator {

// Decodes barrier.cluster, a form of the opcode barrier.
void decode_cluster_barrier(Decoder& decoder);

// Decodes ld.shared::cluster and st.shared::cluster. memory.cc has read their operands already.
void decode_cluster_access(Decoder& decoder, bool store);

// Executes such an access for the lanes whose generic address is in the shared memory of a CTA of
// the cluster.
template <bool kStore>
void access_cluster(Warp& warp, const Inst& inst, Mask mask);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_OPS_CLUSTER_H_
