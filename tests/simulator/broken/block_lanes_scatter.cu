// Lanes store different words at one place. Which of them stays is open, and some programs do not mind.
// EXPECT global memory race
// PROVEN nothing

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  out[threadIdx.x / 2] = in[threadIdx.x] + 1;  // FAULT
}
