// Three of four warps meet, and the fourth reads what they wrote.
// EXPECT global memory race | uninitialised read
// LAUNCH block=128

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  if (threadIdx.x < 96) {
    out[threadIdx.x] = in[threadIdx.x] + 1;  // FAULT
    asm volatile("bar.sync 1, 96;" ::: "memory");
    out[256 + threadIdx.x] = out[95 - threadIdx.x];
  } else {
    out[512 + threadIdx.x] = out[threadIdx.x - 96];  // FAULT
  }
}
