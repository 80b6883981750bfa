// The next tile is copied into a stage that other warps may still read.
// EXPECT shared memory race | access to bytes in flight
// LAUNCH block=128
__device__ __forceinline__ void copy16(void* to, const void* from) {
  unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}
__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kLeft>
__device__ __forceinline__ void wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

extern "C" __global__ void broken(const uint4* in, uint4* out) {
  __shared__ uint4 stage[128];
  copy16(&stage[threadIdx.x], in + threadIdx.x);
  commit();
  wait<0>();
  __syncthreads();
  uint4 first = stage[threadIdx.x ^ 32];           // FAULT
  copy16(&stage[threadIdx.x], in + 128 + threadIdx.x);   // FAULT
  commit();
  wait<0>();
  __syncthreads();
  uint4 second = stage[threadIdx.x ^ 32];
  out[threadIdx.x] = make_uint4(first.x, first.y, second.z, second.w);
}
