// An index is beyond the block's shared memory.
// EXPECT out of bounds
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned tile[32];
  tile[threadIdx.x + in[1]] = threadIdx.x;   // FAULT
  __syncthreads();
  out[threadIdx.x] = tile[31 - threadIdx.x];
}
