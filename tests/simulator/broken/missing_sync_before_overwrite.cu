// A tile is overwritten while another warp may still read the turn before.
// EXPECT shared memory race
// LAUNCH block=128
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned tile[128];
  unsigned sum = 0;
#pragma unroll 1
  for (unsigned turn = 0; turn < 4; ++turn) {
    tile[threadIdx.x] = in[threadIdx.x + turn];    // FAULT
    __syncthreads();
    sum += tile[threadIdx.x ^ 32];                 // FAULT
  }
  out[threadIdx.x] = sum;
}
