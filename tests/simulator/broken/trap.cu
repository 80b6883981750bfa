// A check in the kernel fails.
// EXPECT trap
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  if (in[threadIdx.x] == 7) __trap();              // FAULT
  out[threadIdx.x] = in[threadIdx.x];
}
