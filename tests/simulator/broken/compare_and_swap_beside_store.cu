// A warp sets the word while another one is in its loop of compare and swap.
// EXPECT shared memory race
// LAUNCH block=64

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  if (threadIdx.x >= 32) {
    unsigned old = sum;  // FAULT
    unsigned assumed;
    do {
      assumed = old;
      old = atomicCAS(&sum, assumed, assumed + in[threadIdx.x]);  // FAULT
    } while (assumed != old);
  }
  if (threadIdx.x == 0) sum = in[0];  // FAULT
  __syncthreads();
  out[threadIdx.x] = sum;
}
