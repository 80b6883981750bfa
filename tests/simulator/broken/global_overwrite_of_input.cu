// A block overwrites what all others read.
// EXPECT global memory race
// LAUNCH grid=4 block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  out[blockIdx.x * 32 + threadIdx.x] = in[threadIdx.x];             // FAULT
  if (blockIdx.x == 2) const_cast<unsigned*>(in)[threadIdx.x] = 1;  // FAULT
}
