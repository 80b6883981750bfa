// A pipeline of three stages with the barriers it needs and no more: one per tile.
// EXPECT nothing
// LAUNCH grid=2 block=128 in=32768
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
  __shared__ uint4 stages[3][128];
  unsigned sum = 0;
  for (unsigned tile = 0; tile < 2; ++tile) {
    copy16(&stages[tile][threadIdx.x], in + tile * 128 + threadIdx.x);
    commit();
  }
#pragma unroll 1
  for (unsigned tile = 0; tile < 16; ++tile) {
    wait<1>();
    __syncthreads();
    if (tile + 2 < 16) copy16(&stages[(tile + 2) % 3][threadIdx.x], in + (tile + 2) * 128 + threadIdx.x);
    commit();
    sum = sum * 3 + stages[tile % 3][threadIdx.x ^ 96].x;
  }
  out[blockIdx.x * 128 + threadIdx.x] = make_uint4(sum, 0, 0, 0);
}
