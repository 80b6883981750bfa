// The last block adds up what the others wrote, without the fence in front of the ticket.
// EXPECT global memory race
// LAUNCH grid=6 block=64
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned* tickets = const_cast<unsigned*>(in);
  unsigned* partial = tickets + 64;
  __shared__ bool last;
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = blockIdx.x;  // FAULT
    last = atomicAdd(tickets, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  unsigned sum = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) sum += partial[i];  // FAULT
  out[threadIdx.x] = sum;
}
