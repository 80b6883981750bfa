// Lanes of a warp exchange words through global memory with no __syncwarp.
// EXPECT global memory race

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  out[threadIdx.x] = in[threadIdx.x] + 1;

  out[32 + threadIdx.x] = out[threadIdx.x ^ 1];  // FAULT
}
