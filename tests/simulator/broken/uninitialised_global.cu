// The output is accumulated into before anything cleared it.
// EXPECT uninitialised read
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  out[threadIdx.x] += in[threadIdx.x];             // FAULT
}
