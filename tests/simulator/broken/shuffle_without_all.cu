// The mask names lanes that wait somewhere else.
// EXPECT divergent barrier | deadlock
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned value = in[threadIdx.x];
  if (value & 1) {
    value = __shfl_xor_sync(0xffffffff, value, 1); // FAULT
    out[threadIdx.x] = value;
  } else {
    __syncwarp(0xffffffff);                        // FAULT
    out[threadIdx.x] = value + 1;
  }
}
