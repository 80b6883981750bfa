// Blocks write neighbouring bytes and halves, and read what is next to what others write.
// EXPECT nothing
// LAUNCH grid=4 block=64
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned char* bytes = reinterpret_cast<unsigned char*>(const_cast<unsigned*>(in));
  unsigned short* halves = reinterpret_cast<unsigned short*>(out);
  const unsigned i = threadIdx.x * 4 + blockIdx.x;
  bytes[2 * i] = bytes[2 * i + 1];
  halves[i] = bytes[2 * i];
  if (blockIdx.x == 0) reinterpret_cast<uint4*>(out + 2048)[threadIdx.x] = uint4{1, 2, 3, 4};
  if (blockIdx.x == 1) out[2048 + 4 * 64 + threadIdx.x] = 1;
}
