// The producer announces a full box, and fills it again without waiting for it to be emptied.
// EXPECT shared memory race
// LAUNCH block=64
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned box[32];
  unsigned lane = threadIdx.x & 31;
  if (threadIdx.x < 32) {
    box[lane] = in[lane];                          // FAULT
    asm volatile("bar.arrive 1, 64;" ::: "memory");
    box[lane] = in[lane + 32];                     // FAULT
  } else {
    asm volatile("bar.sync 1, 64;" ::: "memory");
    out[lane] = box[lane ^ 3];                     // FAULT
  }
}
