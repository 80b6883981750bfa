// A block writes two bytes of what others read in pieces of 16.
// EXPECT global memory race
// LAUNCH grid=3 block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  const uint4 wide = reinterpret_cast<const uint4*>(in)[threadIdx.x];  // FAULT
  reinterpret_cast<uint4*>(out)[blockIdx.x * 32 + threadIdx.x] = wide;  // FAULT
  if (blockIdx.x == 1 && threadIdx.x == 9) {
    reinterpret_cast<unsigned short*>(const_cast<unsigned*>(in))[101] = 3;  // FAULT
  }
}
