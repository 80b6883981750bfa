// A barrier does not wait for threads that have exited.
// EXPECT nothing
// LAUNCH block=128
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned tile[128];
  if (threadIdx.x >= 70) {
    out[threadIdx.x] = 1;
    return;
  }
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = tile[69 - threadIdx.x];
}
