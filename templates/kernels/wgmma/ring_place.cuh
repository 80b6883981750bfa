#ifndef ANNULUS_KERNELS_WGMMA_RING_PLACE_CUH_
#define ANNULUS_KERNELS_WGMMA_RING_PLACE_CUH_

namespace annulus::kernels {

// A place in the ring of stages: the number of the buffer, and the parity of the current phase of
// its barriers. All warps start at stage 0 and advance once for each step, so they agree without
// communication. A reader waits for `parity`; a writer waits for `parity ^ 1`, which a fresh
// barrier passes at once (ptx/mbarrier.cuh).
template <int kStages>
struct RingPlace {
  unsigned stage = 0;
  unsigned parity = 0;
  __device__ __forceinline__ void advance() {
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

}  // namespace annulus::kernels

#endif  // ANNULUS_KERNELS_WGMMA_RING_PLACE_CUH_
