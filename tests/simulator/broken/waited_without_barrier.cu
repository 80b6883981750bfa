// Every thread waits for its own copies, then reads its neighbour's, which needs a barrier too.
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
  stage[threadIdx.x] = make_uint4(0, 0, 0, 0);
  __syncthreads();
  copy16(&stage[threadIdx.x], in + threadIdx.x);   // FAULT
  commit();
  wait<0>();
  out[threadIdx.x] = stage[threadIdx.x ^ 64];      // FAULT
}
