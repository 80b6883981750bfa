// Lanes of a warp exchange words through global memory, with __syncwarp in between.
// EXPECT nothing

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  out[threadIdx.x] = in[threadIdx.x] + 1;
  __syncwarp();
  out[32 + threadIdx.x] = out[threadIdx.x ^ 1];
}
