// The last tile has fewer rows than threads, and nothing keeps the rest from reading on.
// EXPECT out of bounds
// LAUNCH grid=3 block=128 in=1200
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
  out[row] = in[row] + 1;                          // FAULT
}
