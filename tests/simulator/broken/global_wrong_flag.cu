// A block waits for the flag of one neighbour and reads the data of another.
// EXPECT global memory race
// LAUNCH grid=3 block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned* flags = const_cast<unsigned*>(in);
  unsigned* data = flags + 64;
  if (blockIdx.x < 2) {
    data[blockIdx.x * 32 + threadIdx.x] = 5;  // FAULT
    __threadfence();
    __syncwarp();
    if (threadIdx.x == 0) atomicExch(flags + 8 + blockIdx.x, 100u);
  } else {
    while (atomicAdd(flags + 8, 0u) != 100) {
    }
    __threadfence();
    out[threadIdx.x] = data[32 + threadIdx.x];  // FAULT
  }
}
