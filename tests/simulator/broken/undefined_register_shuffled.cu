// Lanes behind the end give others a value that they never got, which those drop.
// EXPECT uninitialised read
// PROVEN nothing
// LAUNCH block=32

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned value;
  if (threadIdx.x < 20) value = in[threadIdx.x];
  const unsigned next = __shfl_down_sync(0xffffffff, value, 1);  // FAULT
  if (threadIdx.x < 19) out[threadIdx.x] = next;
}
