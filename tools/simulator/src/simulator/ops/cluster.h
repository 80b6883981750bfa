#ifndef ANNULUS_SIMULATOR_OPS_CLUSTER_H_
#define ANNULUS_SIMULATOR_OPS_CLUSTER_H_

#include "simulator/decode/decoder.h"

namespace annulus::simulator {

// Decodes barrier.cluster, a form of the opcode barrier.
void decode_cluster_barrier(Decoder& decoder);

// Decodes ld.shared::cluster and st.shared::cluster, whose operands memory.cc has taken already.
void decode_cluster_access(Decoder& decoder, bool store);

// The same for the lanes whose generic address leads into the shared memory of a CTA of the
// cluster.
template <bool kStore>
void access_cluster(Warp& warp, const Inst& inst, Mask mask);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_OPS_CLUSTER_H_
