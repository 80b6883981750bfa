// The source lane of a shuffle takes no part in it, so the result is undefined.
// EXPECT invalid operand
// FAST nothing
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned value = in[threadIdx.x];
  if (threadIdx.x < 16) value = __shfl_sync(0x0000ffff, value, 20);   // FAULT
  out[threadIdx.x] = value;
}
