// Halves of a warp use their own member masks in their own branches, then meet again.
// EXPECT nothing
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned value = in[threadIdx.x];
  if (threadIdx.x < 16) {
    value += __shfl_xor_sync(0x0000ffff, value, 8);
    __syncwarp(0x0000ffff);
  } else {
    value *= __shfl_down_sync(0xffff0000, value, 1, 16);
    __syncwarp(0xffff0000);
  }
  __syncthreads();
  out[threadIdx.x] = value + __reduce_add_sync(0xffffffff, value);
}
