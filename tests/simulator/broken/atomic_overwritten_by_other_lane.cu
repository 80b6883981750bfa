// Lanes count by atomics, and a lane of the same warp sets the word with nothing in between.
// EXPECT shared memory race
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned total;
  if (threadIdx.x == 0) total = 0;
  __syncwarp();
  atomicAdd(&total, in[threadIdx.x]);  // FAULT
  if (threadIdx.x == 0) total = 100;  // FAULT
  __syncwarp();
  out[threadIdx.x] = total;
}
