// A thread reads an element of its own array that no turn of the loop wrote.
// EXPECT uninitialised read
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned own[16];
#pragma unroll 1
  for (unsigned i = 0; i < 8; ++i) own[in[i] % 16] = i;
  out[threadIdx.x] = own[in[threadIdx.x] % 16];   // FAULT
}
