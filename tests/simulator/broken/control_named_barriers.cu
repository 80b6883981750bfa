// Producer and consumer warps pass a buffer to each other with bar.arrive and bar.sync.
// EXPECT nothing
// LAUNCH block=64
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned box[32];
  unsigned lane = threadIdx.x & 31;
  unsigned sum = 0;
#pragma unroll 1
  for (unsigned turn = 0; turn < 6; ++turn) {
    if (threadIdx.x < 32) {
      box[lane] = in[lane + turn];
      asm volatile("bar.arrive 1, 64;" ::: "memory");
      asm volatile("bar.sync 2, 64;" ::: "memory");
    } else {
      asm volatile("bar.sync 1, 64;" ::: "memory");
      sum += box[lane ^ 5];
      asm volatile("bar.arrive 2, 64;" ::: "memory");
    }
  }
  out[threadIdx.x] = sum;
}
