// Two warps store different words at the same places.
// EXPECT global memory race
// LAUNCH block=64

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  out[threadIdx.x % 32] = in[threadIdx.x] + 1;  // FAULT
}
