// The loop of the CUDA Programming Guide that makes any operation atomic begins here with a volatile load.
// EXPECT nothing
// LAUNCH block=64

extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned long long best;
  if (threadIdx.x == 0) best = 0;
  __syncthreads();
  const unsigned long long mine = in[threadIdx.x];
  unsigned long long old = *static_cast<volatile unsigned long long*>(&best);
  unsigned long long assumed;
  do {
    assumed = old;
    old = atomicCAS(&best, assumed, assumed > mine ? assumed : mine);
  } while (assumed != old);
  __syncthreads();
  out[threadIdx.x] = static_cast<unsigned>(best);
}
