// Steps between two buffers in global memory, of which each has a barrier.
// EXPECT nothing
// LAUNCH block=64

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  out[threadIdx.x] = in[threadIdx.x] + 1;
  for (unsigned step = 0; step < 3; ++step) {
    __syncthreads();
    const unsigned other = out[step % 2 * 64 + 63 - threadIdx.x];
    out[(step + 1) % 2 * 64 + threadIdx.x] = other + step + 1;
  }
}
