// Two halves of a warp, in different branches, write and read the same words.
// EXPECT shared memory race
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ volatile unsigned tile[16];
  if (threadIdx.x < 16) tile[threadIdx.x] = 0;
  __syncwarp();
  if (in[threadIdx.x] < 16) {
    tile[threadIdx.x] = in[threadIdx.x] + 1;       // FAULT
  } else {
    out[threadIdx.x] = tile[threadIdx.x - 16];     // FAULT
  }
}
