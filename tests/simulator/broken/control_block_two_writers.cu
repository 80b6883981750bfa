// Two warps store at the same places, one after the other.
// EXPECT nothing
// LAUNCH block=64

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  if (threadIdx.x < 32) out[threadIdx.x % 32] = in[threadIdx.x] + 1;
  __syncthreads();
  if (threadIdx.x >= 32) out[threadIdx.x % 32] = in[threadIdx.x] + 1;
}
