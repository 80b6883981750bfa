// A 16-byte load has an address that is only a multiple of 4.
// EXPECT misaligned address
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  uint4 four = *reinterpret_cast<const uint4*>(in + threadIdx.x);   // FAULT
  out[threadIdx.x] = four.x + four.w;
}
