// One warp waits at another barrier than the rest, so no warp can go on.
// EXPECT deadlock
// LAUNCH block=128
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  if (threadIdx.x < 96) {
    asm volatile("bar.sync 1, 128;" ::: "memory"); // FAULT
  } else {
    asm volatile("bar.sync 2, 128;" ::: "memory"); // FAULT
  }
  out[threadIdx.x] = in[threadIdx.x];
}
