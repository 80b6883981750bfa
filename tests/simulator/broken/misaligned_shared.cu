// An access to shared memory is not aligned to its size.
// EXPECT misaligned address
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ __align__(16) unsigned tile[64];
  tile[threadIdx.x] = in[threadIdx.x];
  tile[threadIdx.x + 32] = in[threadIdx.x];
  __syncthreads();
  uint2 two = *reinterpret_cast<const uint2*>(tile + threadIdx.x);  // FAULT
  out[threadIdx.x] = two.x + two.y;
}
