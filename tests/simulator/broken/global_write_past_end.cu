// One element too many is written.
// EXPECT out of bounds
// LAUNCH block=32 out=124
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  out[threadIdx.x] = in[threadIdx.x];              // FAULT
}
