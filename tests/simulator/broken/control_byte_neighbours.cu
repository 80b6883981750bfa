// Threads of different warps write neighbouring bytes and halves of one word, which is no race.
// EXPECT nothing
// LAUNCH block=128
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned char bytes[128];
  __shared__ unsigned short halves[128];
  unsigned place = (threadIdx.x & 31) * 4 + threadIdx.x / 32;
  bytes[place] = in[threadIdx.x];
  halves[place] = in[threadIdx.x];
  unsigned own = bytes[place] + halves[place];
  __syncthreads();
  out[threadIdx.x] = own + bytes[threadIdx.x] + halves[127 - threadIdx.x];
}
