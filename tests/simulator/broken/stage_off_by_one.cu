// The reader of a double buffer takes the stage that is being filled.
// EXPECT access to bytes in flight
// LAUNCH block=64
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
  __shared__ uint4 stages[2][64];
  unsigned sum = 0;
  copy16(&stages[0][threadIdx.x], in + threadIdx.x);
  commit();
#pragma unroll 1
  for (unsigned tile = 0; tile < 4; ++tile) {
    if (tile + 1 < 4) copy16(&stages[(tile + 1) & 1][threadIdx.x], in + (tile + 1) * 64 + threadIdx.x);
    commit();
    wait<1>();
    __syncthreads();
    sum += stages[(tile + 1) & 1][threadIdx.x].x;  // FAULT
    __syncthreads();
  }
  wait<0>();
  out[threadIdx.x] = make_uint4(sum, 0, 0, 0);
}
