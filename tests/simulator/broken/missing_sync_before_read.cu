// A tile is read before a barrier has ordered it behind its writers.
// EXPECT shared memory race
// LAUNCH block=128
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned tile[128];
  tile[threadIdx.x] = 0;
  __syncthreads();
  tile[threadIdx.x] = in[threadIdx.x];             // FAULT
  out[threadIdx.x] = tile[threadIdx.x ^ 64];       // FAULT
}
