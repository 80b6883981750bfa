// Some lanes of a warp return before a barrier. CUDA C++ lets __syncthreads wait for the threads
// that have not exited.
// EXPECT nothing
// LAUNCH block=64
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned room[64];
  out[threadIdx.x] = 0;
  if (in[threadIdx.x] >= 41) return;
  room[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = room[40 - threadIdx.x];
}
