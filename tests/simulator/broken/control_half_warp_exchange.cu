// Half of a warp exchanges through shared memory by itself: __syncwarp for its lanes is enough.
// EXPECT nothing
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ volatile unsigned tile[16];
  unsigned value = in[threadIdx.x];
  if (threadIdx.x < 16) {
    tile[threadIdx.x] = value;
    __syncwarp(0x0000ffff);
    value = tile[threadIdx.x ^ 5];
    __syncwarp(0x0000ffff);
    tile[threadIdx.x] = value + 1;
    __syncwarp(0x0000ffff);
    value += tile[threadIdx.x ^ 3];
  }
  out[threadIdx.x] = value;
}
