// Blocks raise a counter without an atomic.
// EXPECT global memory race
// LAUNCH grid=4 block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  if (threadIdx.x == 0) const_cast<unsigned*>(in)[3] += 1;  // FAULT
  out[blockIdx.x * 32 + threadIdx.x] = 0;
}
