// The writer has its fence, the reader has none.
// EXPECT global memory race
// PROVEN nothing
// LAUNCH grid=2 block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned* flag = const_cast<unsigned*>(in);
  unsigned* data = flag + 32;
  if (blockIdx.x == 0) {
    data[threadIdx.x] = 5;  // FAULT
    __threadfence();
    __syncwarp();
    if (threadIdx.x == 0) atomicExch(flag, 7u);
  } else {
    while (atomicAdd(flag, 0u) != 7) {
    }
    out[threadIdx.x] = data[threadIdx.x];  // FAULT
  }
}
