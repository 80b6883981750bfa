// A lock is taken and released by atomics between fences, so what it guards is ordered.
// EXPECT nothing
// LAUNCH grid=5 block=64
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned* lock = const_cast<unsigned*>(in);
  unsigned* total = lock + 40;
  if (threadIdx.x == 0) {
    while (atomicCAS(lock, 0u, 1u) != 0) {
    }
    __threadfence();
    *total += blockIdx.x;
    __threadfence();
    atomicExch(lock, 0u);
  }
  out[blockIdx.x * 64 + threadIdx.x] = 1;
}
