#ifndef ANNULUS_PTX_VARIANTS_CUH_
#define ANNULUS_PTX_VARIANTS_CUH_

// Experiments: macros that the specialised source may define as 1 before the kernel's #include
// (jit::KernelSpec::defines), so that a program can measure the kernels with one thing changed.
// Shipped kernels define none of them.

#ifndef ANNULUS_TRAP_LATE_WAITS
#define ANNULUS_TRAP_LATE_WAITS 0
#endif
#ifndef ANNULUS_RELEASE_TO_CLUSTER
#define ANNULUS_RELEASE_TO_CLUSTER 0
#endif
#ifndef ANNULUS_NO_PIN
#define ANNULUS_NO_PIN 0
#endif

namespace annulus::ptx {

enum : bool {
  // A wait for an mbarrier traps after 2^26 failed tries instead of waiting without end.
  kTrapLateWaits = ANNULUS_TRAP_LATE_WAITS,
  // Arrivals at another CTA's mbarrier have release semantics at cluster scope, which costs a fence
  // of the device before each (ptx/mbarrier.cuh).
  kReleaseToCluster = ANNULUS_RELEASE_TO_CLUSTER,
  // ptxas may move exponentials below the wait that follows them (ptx::pin).
  kNoPin = ANNULUS_NO_PIN,
};

}  // namespace annulus::ptx

#endif  // ANNULUS_PTX_VARIANTS_CUH_
