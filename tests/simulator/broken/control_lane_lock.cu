// Every lane takes a lock in a loop that only the lock's owner leaves, in global and in shared memory.
// Lanes that wait give way to the owner, and what the lock guards is ordered.
// EXPECT nothing
// LAUNCH grid=2 block=64
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned lock;
  __shared__ unsigned total;
  unsigned* lock_of_all = const_cast<unsigned*>(in);
  unsigned* total_of_all = lock_of_all + 40;
  if (threadIdx.x == 0) lock = total = 0;
  __syncthreads();
  while (atomicExch(&lock, 1) == 1) {
  }
  __threadfence_block();
  total += 1;
  __threadfence_block();
  atomicExch(&lock, 0);
  while (atomicExch(lock_of_all, 1u) == 1) {
  }
  __threadfence();
  *total_of_all += 1;
  __threadfence();
  atomicExch(lock_of_all, 0u);
  __syncthreads();
  if (total != 64) __trap();
  out[blockIdx.x * 64 + threadIdx.x] = total;
}
