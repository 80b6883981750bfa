// Half of a warp calls the barrier.
// EXPECT divergent barrier | deadlock
// LAUNCH block=64
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned value = in[threadIdx.x];
  if ((threadIdx.x & 31) < 16) {
    __syncthreads();                               // FAULT
    value += 1;
  } else {
    while (*const_cast<const volatile unsigned*>(in) == 12345) value += 2;
    asm volatile("bar.sync 1, 64;" ::: "memory");  // FAULT
  }
  out[threadIdx.x] = value;
}
