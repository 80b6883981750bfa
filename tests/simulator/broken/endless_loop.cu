// The kernel waits for a word that no thread changes.
// EXPECT timeout | deadlock
// LAUNCH block=32
// ANYLINE
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  while (*const_cast<const volatile unsigned*>(in) != 99) {
  }
  out[threadIdx.x] = in[threadIdx.x];
}
