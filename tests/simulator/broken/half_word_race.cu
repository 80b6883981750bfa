// The writers of a 16-bit element and of the whole word around it are not ordered.
// EXPECT shared memory race
// LAUNCH block=64
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned tile[32];
  unsigned lane = threadIdx.x & 31;
  if (threadIdx.x < 32) {
    reinterpret_cast<unsigned short*>(tile)[lane * 2 + 1] = in[lane];   // FAULT
  } else {
    tile[lane] = in[lane];                         // FAULT
  }
  __syncthreads();
  out[threadIdx.x] = tile[lane];
}
