#ifndef ANNULUS_PTX_VARIANTS_CUH_
#define ANNULUS_PTX_VARIANTS_CUH_

// Experiments: what the specialised source may define as 1 in front of the kernel's #include
// (jit::KernelSpec::defines), so that a program can measure the kernels with one thing changed.
// None is defined in what ships.

#ifndef ANNULUS_TRAP_LATE_WAITS
#define ANNULUS_TRAP_LATE_WAITS 0
#endif
#ifndef ANNULUS_RELEASE_TO_CLUSTER
#define ANNULUS_RELEASE_TO_CLUSTER 0
#endif
#ifndef ANNULUS_NO_TURNS
#define ANNULUS_NO_TURNS 0
#endif
#ifndef ANNULUS_NO_PIN
#define ANNULUS_NO_PIN 0
#endif
#ifndef ANNULUS_DRAW_WORK
#define ANNULUS_DRAW_WORK 0
#endif
#ifndef ANNULUS_TWO_RESIDENT
#define ANNULUS_TWO_RESIDENT 0
#endif

namespace annulus::ptx {

enum : bool {
  // A wait for an mbarrier traps after 2^26 failed tries instead of going on for ever.
  kTrapLateWaits = ANNULUS_TRAP_LATE_WAITS,
  // Arrivals at another CTA's mbarrier release to the whole cluster, behind a fence of the device.
  kReleaseToCluster = ANNULUS_RELEASE_TO_CLUSTER,
  // Consumers of wgmma_forward start their products whenever they can.
  kNoTurns = ANNULUS_NO_TURNS,
  // ptxas may move powers below the wait that follows them.
  kNoPin = ANNULUS_NO_PIN,
  // CTAs of wgmma_forward, which are in no cluster, draw their next work from a counter.
  kDrawWork = ANNULUS_DRAW_WORK,
  // Two CTAs of one consumer each share a multiprocessor.
  kTwoResident = ANNULUS_TWO_RESIDENT,
};

}  // namespace annulus::ptx

#endif  // ANNULUS_PTX_VARIANTS_CUH_
