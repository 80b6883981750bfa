// Rows of a tile that nothing wrote are loaded as a matrix; what is made of them is not used
// (FlashAttention-2 does so for rows behind the end of the sequence).
// EXPECT uninitialised read
// PROVEN nothing
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(16) u32 tile[8 * 4];
  if (threadIdx.x < 16) tile[threadIdx.x] = in[threadIdx.x];
  __syncwarp();
  u32 word;
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
               : "=r"(word)
               : "r"(shared_address(tile + threadIdx.x % 8 * 4)));  // FAULT
  out[threadIdx.x] = threadIdx.x < 16 ? word : 0;
}
