// The last block adds up what the others wrote, with a fence before the ticket and one behind it.
// EXPECT nothing
// LAUNCH grid=6 block=128
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned* tickets = const_cast<unsigned*>(in);
  unsigned* partial = tickets + 64;
  __shared__ bool last;
  partial[blockIdx.x * 128 + threadIdx.x] = 1;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(tickets, 1u) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  unsigned sum = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) sum += partial[i * 128 + threadIdx.x];
  out[threadIdx.x] = sum;
  if (threadIdx.x == 0) *tickets = 0;
}
