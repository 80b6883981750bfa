// A CTA reads what another one wrote to global memory before it arrived here, behind a wait in the
// scope of the cluster.
// EXPECT nothing
// LAUNCH grid=2 block=32
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void __cluster_dims__(2) broken(const u32* in, u32* out) {
  hand_over<wait_cluster>(const_cast<u32*>(in), out);
}
