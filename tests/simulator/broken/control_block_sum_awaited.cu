// All threads add to a word, and one reads the sum behind a barrier.
// EXPECT nothing
// LAUNCH block=128

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  if (threadIdx.x == 0) out[0] = 1;
  __syncthreads();
  atomicAdd(&out[0], in[threadIdx.x] + 1);
  __syncthreads();
  if (threadIdx.x == 0) out[1] = out[0];
}
