// Words move down by one in place, and a warp may overwrite the word that the one before it has yet to read.
// EXPECT global memory race
// LAUNCH block=128

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  out[threadIdx.x] = in[threadIdx.x] + 1;
  if (threadIdx.x == 0) out[128] = 7;
  __syncthreads();
  const unsigned next = out[threadIdx.x + 1];  // FAULT
  __syncwarp();
  out[threadIdx.x] = next;  // FAULT
}
