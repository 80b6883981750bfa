// A lock in shared memory is taken and released by atomics, so what it guards is ordered.
// EXPECT nothing
// LAUNCH block=64
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned lock;
  __shared__ unsigned total;
  if (threadIdx.x == 0) lock = total = 0;
  __syncthreads();
  if ((threadIdx.x & 31) == 0) {
    while (atomicCAS(&lock, 0, 1) != 0) {
    }
    __threadfence_block();
    total += in[threadIdx.x + 1];
    __threadfence_block();
    atomicExch(&lock, 0);
  }
  __syncthreads();
  out[threadIdx.x] = total;
}
