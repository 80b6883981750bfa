// Two warps write different values to the same words.
// EXPECT shared memory race
// LAUNCH block=64
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned tile[32];
  tile[threadIdx.x & 31] = in[threadIdx.x];        // FAULT
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x & 31];
}
