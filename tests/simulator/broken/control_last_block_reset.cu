// Every warp has its fence, one thread draws the ticket behind a barrier, and the last block resets
// the tickets by a plain write.
// EXPECT nothing
// LAUNCH grid=5 block=96
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned* tickets = const_cast<unsigned*>(in);
  unsigned* partial = tickets + 64;
  __shared__ bool last;
  partial[blockIdx.x * 96 + threadIdx.x] = blockIdx.x;
  if (threadIdx.x >= 32) __threadfence();
  if (threadIdx.x < 32) __threadfence();
  __syncthreads();
  if (threadIdx.x == 64) last = atomicAdd(tickets, 1u) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  if (threadIdx.x == 64) *tickets = 0;
  unsigned sum = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) sum += partial[i * 96 + threadIdx.x];
  out[threadIdx.x] = sum;
}
