// Lanes store the same word at one place.
// EXPECT nothing

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  out[threadIdx.x / 2] = in[threadIdx.x / 2] + 1;
}
