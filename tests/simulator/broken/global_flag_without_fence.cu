// There is no fence between the data and the flag.
// EXPECT global memory race
// LAUNCH grid=2 block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned* flag = const_cast<unsigned*>(in);
  unsigned* data = flag + 32;
  if (blockIdx.x == 0) {
    data[threadIdx.x] = 5;  // FAULT
    __syncwarp();
    if (threadIdx.x == 0) atomicExch(flag, 7u);
  } else {
    while (atomicAdd(flag, 0u) != 7) {
    }
    __threadfence();
    out[threadIdx.x] = data[threadIdx.x];  // FAULT
  }
}
