// Neighbouring halves are fine, but two blocks share one of them.
// EXPECT global memory race
// LAUNCH grid=2 block=32
extern "C" __global__ void broken(const unsigned*, unsigned* out) {
  unsigned short* halves = reinterpret_cast<unsigned short*>(out);
  halves[blockIdx.x * 31 + threadIdx.x] = 1;  // FAULT
}
