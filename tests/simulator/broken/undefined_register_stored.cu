// Lanes behind the end store a value that they never got, as the others do.
// EXPECT uninitialised read
// PROVEN nothing
// LAUNCH block=64

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned values[64];
  unsigned value;
  if (threadIdx.x < 40) value = in[threadIdx.x];
  values[threadIdx.x] = value;  // FAULT
  __syncthreads();
  if (threadIdx.x < 40) out[threadIdx.x] = values[39 - threadIdx.x];
}
