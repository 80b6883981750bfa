// Two blocks write the same value to one element, which is still a race.
// EXPECT global memory race
// LAUNCH grid=2 block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  if (threadIdx.x == 5) out[7] = in[1];  // FAULT
}
