// A bulk copy, which is of another proxy, reads what stmatrix wrote, without a proxy fence.
// EXPECT missing fence
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(16) u32 rows[32];
  const u32 at = shared_address(rows) + threadIdx.x % 8 * 16;
  asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" ::"r"(at), "r"(in[threadIdx.x])
               : "memory");
  __syncwarp();
  if (threadIdx.x == 0) {
    store(out, rows, 128);  // FAULT
    commit_stores();
    wait_stores_read<0>();
  }
}
