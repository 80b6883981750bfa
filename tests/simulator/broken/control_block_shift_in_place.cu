// Words move down by one in place: all are read, and then all are written.
// EXPECT nothing
// LAUNCH block=128

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  out[threadIdx.x] = in[threadIdx.x] + 1;
  if (threadIdx.x == 0) out[128] = 7;
  __syncthreads();
  const unsigned next = out[threadIdx.x + 1];
  __syncthreads();
  out[threadIdx.x] = next;
}
