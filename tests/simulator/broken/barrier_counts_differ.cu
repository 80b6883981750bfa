// The warps disagree on how many threads the barrier is for.
// EXPECT barrier misuse | deadlock
// LAUNCH block=128
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  if (threadIdx.x < 64) {
    asm volatile("bar.sync 1, 128;" ::: "memory"); // FAULT
  } else {
    asm volatile("bar.sync 1, 64;" ::: "memory");  // FAULT
  }
  out[threadIdx.x] = in[threadIdx.x];
}
