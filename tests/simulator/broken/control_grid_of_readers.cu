// All blocks read all of the input, and each writes and reads bytes of its own.
// EXPECT nothing
// LAUNCH grid=7 block=96
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned sum = 0;
  for (unsigned i = threadIdx.x; i < 1024; i += 96) sum += in[i];
  unsigned* own = out + blockIdx.x * 96;
  own[threadIdx.x] = sum;
  __syncthreads();
  const unsigned other = own[95 - threadIdx.x];
  __syncthreads();
  own[threadIdx.x] = other;
}
