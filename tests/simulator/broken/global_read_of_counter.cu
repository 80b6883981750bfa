// A block reads by a plain load what other blocks update by atomics.
// EXPECT global memory race
// LAUNCH grid=4 block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned* counter = const_cast<unsigned*>(in);
  if (threadIdx.x == 0) atomicAdd(counter, 1u);   // FAULT
  out[blockIdx.x * 32 + threadIdx.x] = *counter;  // FAULT
}
