// One thread gives a sum its first value while others add to it already.
// EXPECT global memory race | uninitialised read
// LAUNCH block=128

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  if (threadIdx.x == 0) out[0] = 1;  // FAULT

  atomicAdd(&out[0], in[threadIdx.x] + 1);  // FAULT
}
