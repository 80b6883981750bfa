// The lane that draws the last ticket of its warp reads what the others wrote before they drew theirs,
// in shared and in global memory, and takes the counter back.
// EXPECT nothing
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned values[32];
  __shared__ unsigned drawn;
  unsigned* next = const_cast<unsigned*>(in);
  if (threadIdx.x == 0) drawn = 0;
  __syncwarp();
  values[threadIdx.x] = in[threadIdx.x + 1];
  __threadfence_block();
  const bool last = atomicAdd(&drawn, 1) == 31;
  __threadfence_block();
  if (last) {
    drawn = 0;
    for (int i = 0; i < 32; ++i) out[i] = values[i];
  }
  __syncwarp();
  out[32 + threadIdx.x] = threadIdx.x;
  __threadfence();
  const bool last_of_global = atomicAdd(next, 1u) == 31;
  __threadfence();
  if (last_of_global) {
    *next = 0;
    for (int i = 0; i < 32; ++i) out[64 + i] = out[32 + i];
  }
}
