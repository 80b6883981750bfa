// Lanes count by atomics, and a lane of the same warp reads the counts with nothing in between.
// EXPECT shared memory race
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned counts[4];
  if (threadIdx.x < 4) counts[threadIdx.x] = 0;
  __syncwarp();
  atomicAdd(&counts[in[threadIdx.x] % 4], 1);  // FAULT
  if (threadIdx.x == 0) out[0] = counts[0] + counts[1] + counts[2] + counts[3];  // FAULT
}
