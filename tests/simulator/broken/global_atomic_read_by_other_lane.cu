// Lanes count in global memory by atomics, and a lane of the same warp reads it with nothing in between.
// EXPECT global memory race
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned* counts = const_cast<unsigned*>(in);
  atomicAdd(&counts[threadIdx.x % 4], 1u);  // FAULT
  if (threadIdx.x == 0) out[0] = counts[3];  // FAULT
}
