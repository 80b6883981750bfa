// A row of stmatrix does not start at a multiple of 16 bytes.
// EXPECT misaligned address
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(16) u32 rows[64];
  const u32 at = threadIdx.x % 8 * 20;
  asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" ::"r"(shared_address(rows) + at), "r"(in[threadIdx.x]) : "memory");  // FAULT
  __syncwarp();
  out[threadIdx.x] = rows[threadIdx.x % 8 * 5];
}
