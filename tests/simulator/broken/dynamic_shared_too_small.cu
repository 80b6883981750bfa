// The launch gives less dynamic shared memory than the kernel uses.
// EXPECT out of bounds
// LAUNCH block=64 shared=128
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  extern __shared__ unsigned tile[];
  tile[threadIdx.x] = in[threadIdx.x];             // FAULT
  __syncthreads();
  out[threadIdx.x] = tile[63 - threadIdx.x];
}
