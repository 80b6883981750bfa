// Three warps arrive, and the fourth waits for them and reads what they wrote.
// EXPECT nothing
// LAUNCH block=128

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  if (threadIdx.x < 96) {
    out[threadIdx.x] = in[threadIdx.x] + 1;
    asm volatile("bar.arrive 1, 128;" ::: "memory");
  } else {
    asm volatile("bar.sync 1, 128;" ::: "memory");
    out[512 + threadIdx.x] = out[threadIdx.x - 96];
  }
}
