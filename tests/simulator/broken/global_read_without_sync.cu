// A block reads what another has written, with nothing in between.
// EXPECT global memory race
// LAUNCH grid=3 block=64
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned* data = const_cast<unsigned*>(in);
  data[blockIdx.x * 64 + threadIdx.x] = blockIdx.x;  // FAULT
  __syncthreads();
  const unsigned next = (blockIdx.x + 1) % gridDim.x;
  out[blockIdx.x * 64 + threadIdx.x] = data[next * 64 + threadIdx.x];  // FAULT
}
