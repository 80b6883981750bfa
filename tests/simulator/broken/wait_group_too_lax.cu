// Two groups are in flight and the second is read after a wait that leaves one open.
// EXPECT access to bytes in flight
// LAUNCH block=32
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
  __shared__ uint4 stages[2][32];
  copy16(&stages[0][threadIdx.x], in + threadIdx.x);
  commit();
  copy16(&stages[1][threadIdx.x], in + 32 + threadIdx.x);
  commit();
  wait<1>();
  out[threadIdx.x] = stages[1][threadIdx.x];       // FAULT
}
