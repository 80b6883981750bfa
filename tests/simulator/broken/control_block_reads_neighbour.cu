// A warp reads what the other wrote to global memory, behind a barrier.
// EXPECT nothing
// LAUNCH block=64

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  out[threadIdx.x] = in[threadIdx.x] + 1;
  __syncthreads();
  out[64 + threadIdx.x] = out[(threadIdx.x + 32) % 64];
}
