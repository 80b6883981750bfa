// A warp tells another by a volatile flag that words in global memory are ready.
// EXPECT nothing
// LAUNCH block=64

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  volatile unsigned* const flag = out + 128;
  if (threadIdx.x == 0) *flag = 1;
  __syncthreads();
  if (threadIdx.x < 32) {
    out[threadIdx.x] = in[threadIdx.x] + 1;
    __threadfence_block();
    __syncwarp();
    if (threadIdx.x == 0) *flag = 2;
  } else {
    while (*flag != 2) {
    }
    __threadfence_block();
    out[threadIdx.x] = out[threadIdx.x - 32];
  }
}
