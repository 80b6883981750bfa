// A volatile flag between two fences orders two blocks.
// EXPECT nothing
// LAUNCH grid=2 block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  volatile unsigned* flag = const_cast<unsigned*>(in);
  unsigned* data = const_cast<unsigned*>(in) + 32;
  if (blockIdx.x == 0) {
    data[threadIdx.x] = 5;
    __threadfence();
    __syncwarp();
    if (threadIdx.x == 0) *flag = 7;
  } else {
    while (*flag != 7) {
    }
    __threadfence();
    out[threadIdx.x] = data[threadIdx.x];
  }
}
