// Every thread uses only its own element, so no barrier is needed, however often it comes back.
// EXPECT nothing
// LAUNCH block=128
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned tile[128];
  for (unsigned i = 0; i < 4; ++i) {
    tile[threadIdx.x] = in[threadIdx.x + i];
    out[threadIdx.x + 128 * i] = tile[threadIdx.x];
  }
}
