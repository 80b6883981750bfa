// Lanes of a warp exchange through shared memory with __syncwarp on both sides, and through
// shuffles, votes and matrices of the whole warp.
// EXPECT nothing
// LAUNCH block=64
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned tile[64];
  unsigned sum = 0;
  for (unsigned i = 0; i < 4; ++i) {
    tile[threadIdx.x] = in[threadIdx.x + i];
    __syncwarp();
    sum += tile[threadIdx.x ^ (i + 1)];
    __syncwarp();
  }
  sum += __shfl_xor_sync(0xffffffff, sum, 16) + __ballot_sync(0xffffffff, sum & 1);
  out[threadIdx.x] = sum;
}
