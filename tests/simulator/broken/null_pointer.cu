// The kernel uses a pointer that was never set.
// EXPECT out of bounds
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  const unsigned* none = reinterpret_cast<const unsigned*>(static_cast<unsigned long long>(in[0]));
  out[threadIdx.x] = none[threadIdx.x];            // FAULT
}
