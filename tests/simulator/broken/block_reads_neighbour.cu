// A warp reads what the other wrote to global memory, with no barrier in between.
// EXPECT global memory race | uninitialised read
// LAUNCH block=64

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  out[threadIdx.x] = in[threadIdx.x] + 1;                      // FAULT

  out[64 + threadIdx.x] = out[(threadIdx.x + 32) % 64];        // FAULT
}
