// The kernel reads the last byte of all addresses, behind which they begin again at 0.
// EXPECT out of bounds
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  const auto* last = reinterpret_cast<const volatile unsigned char*>(~0ull);
  out[threadIdx.x] = in[threadIdx.x] + *last;  // FAULT
}
