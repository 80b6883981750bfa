// A computed index (0 ... 31) is beyond a thread's own array.
// EXPECT out of bounds
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned own[16];
#pragma unroll
  for (unsigned i = 0; i < 16; ++i) own[i] = in[i];
  out[threadIdx.x] = own[in[threadIdx.x]];   // FAULT
}
