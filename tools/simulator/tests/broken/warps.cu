// Instructions of whole warps: shuffles, elections, matrices.

// KERNEL shuffle_is_no_barrier
// A shuffle brings the lanes together, but does not order their memory accesses.
// EXPECT shared memory race
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ volatile unsigned tile[32];
  tile[threadIdx.x] = 0;
  __syncwarp();
  tile[threadIdx.x] = in[threadIdx.x] + 1;         // FAULT
  unsigned next = __shfl_xor_sync(0xffffffff, in[threadIdx.x], 1);
  out[threadIdx.x] = tile[next];                   // FAULT
}

// KERNEL shuffle_outside_mask
// Lanes call a shuffle whose member mask does not name them.
// EXPECT invalid operand
// FAST nothing
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  out[threadIdx.x] = __shfl_sync(0x0000ffff, in[threadIdx.x], 3);   // FAULT
}

// KERNEL shuffle_reads_outside
// The source lane of a shuffle does not take part in it, so the result is undefined.
// EXPECT invalid operand
// FAST nothing
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned value = in[threadIdx.x];
  if (threadIdx.x < 16) value = __shfl_sync(0x0000ffff, value, 20);   // FAULT
  out[threadIdx.x] = value;
}

// KERNEL shuffle_without_all
// The mask names lanes that wait somewhere else.
// EXPECT divergent barrier | deadlock
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned value = in[threadIdx.x];
  if (value & 1) {
    value = __shfl_xor_sync(0xffffffff, value, 1); // FAULT
    out[threadIdx.x] = value;
  } else {
    __syncwarp(0xffffffff);                        // FAULT
    out[threadIdx.x] = value + 1;
  }
}

// KERNEL elect_by_half
// Half of a warp executes elect.sync for the whole warp, while the others wait somewhere else.
// EXPECT divergent barrier | deadlock
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  u32 value = in[threadIdx.x];
  if (value & 1) {
    if (elect()) value += 7;  // FAULT
    out[threadIdx.x] = value;
  } else {
    __syncwarp(0xffffffff);  // FAULT
    out[threadIdx.x] = value + 1;
  }
}

// KERNEL mma_in_divergent_code
// A part of a warp executes mma.sync, which needs a whole warp.
// EXPECT divergent barrier | deadlock
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  float d0 = 0, d1 = 0, d2 = 0, d3 = 0;
  unsigned a = in[threadIdx.x];
  if (a & 2) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %4}, {%4}, {%0, %1, %2, %3};"  // FAULT
                 : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) : "r"(a));   // FAULT
    out[threadIdx.x] = d0 + d1 + d2 + d3;
  } else {
    __syncwarp();                                  // FAULT
    out[threadIdx.x] = a;
  }
}

// KERNEL stmatrix_without_fence
// A bulk copy, which uses another proxy, reads words of stmatrix without a proxy fence.
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

// KERNEL wmma_addresses_differ
// The lanes pass different addresses to wmma.load, as they would to ldmatrix.
// EXPECT invalid operand
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned a, b, c, d;
  asm volatile("wmma.load.a.sync.aligned.row.m16n16k8.global.tf32 {%0, %1, %2, %3}, [%4];"  // FAULT
               : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(in + 8 * threadIdx.x));   // FAULT
  out[threadIdx.x] = a + b + c + d;
}

// KERNEL wmma_first_row_misaligned
// A fragment of f16 has 32 bytes, and the address of the matrix's first row is not a multiple of
// that.
// EXPECT misaligned address
// PROVEN nothing
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned sum;
  asm volatile("{ .reg .b32 a<8>;\n"                                                         // FAULT
               "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {a0, a1, a2, a3, a4, a5, a6, a7}, [%1];\n"  // FAULT
               "add.u32 %0, a0, a7; }" : "=r"(sum) : "l"(in + 4));                         // FAULT
  out[threadIdx.x] = sum;
}

// KERNEL wmma_global_race
// Two warps store tiles that overlap in a row, with no barrier in between.
// EXPECT global memory race
// LAUNCH block=64
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  const unsigned warp = threadIdx.x / 32;
  const float x = in[warp + 1];
  asm volatile("wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%0], {%1, %1, %1, %1, %1, %1, %1, %1}, 16;"  // FAULT
               : : "l"(out + 240 * warp), "f"(x) : "memory");                                // FAULT
}

// KERNEL wmma_misaligned_row
// The rows of a matrix are 5 words apart, and so do not start at multiples of 16 bytes.
// EXPECT misaligned address
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned a, b, c, d;
  asm volatile("wmma.load.b.sync.aligned.col.m16n16k8.tf32 {%0, %1, %2, %3}, [%4], 5;"  // FAULT
               : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(in));   // FAULT
  out[threadIdx.x] = a + b + c + d;
}

// KERNEL wmma_past_end
// The last row of a matrix is past the end of its allocation.
// EXPECT out of bounds
// LAUNCH block=32 in=512
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned a, b, c, d;
  asm volatile("wmma.load.a.sync.aligned.row.m16n16k8.global.tf32 {%0, %1, %2, %3}, [%4], 12;"  // FAULT
               : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(in));   // FAULT
  out[threadIdx.x] = a + b + c + d;
}

// KERNEL wmma_without_syncwarp
// A warp loads a matrix that its lanes have just written, with no barrier in between.
// EXPECT shared memory race
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ __align__(32) unsigned tile[128];
  for (unsigned i = threadIdx.x; i < 128; i += 32) tile[i] = in[i];
  unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(tile));
  unsigned a, b, c, d;
  asm volatile("wmma.load.a.sync.aligned.row.m16n16k8.shared.tf32 {%0, %1, %2, %3}, [%4];"  // FAULT
               : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(address) : "memory");   // FAULT
  out[threadIdx.x] = a + b + c + d;
}

// KERNEL control_divergent_halves
// Halves of a warp use their own member masks in their own branches, then meet again.
// EXPECT nothing
// LAUNCH block=32
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  unsigned value = in[threadIdx.x];
  if (threadIdx.x < 16) {
    value += __shfl_xor_sync(0x0000ffff, value, 8);
    __syncwarp(0x0000ffff);
  } else {
    value *= __shfl_down_sync(0xffff0000, value, 1, 16);
    __syncwarp(0xffff0000);
  }
  __syncthreads();
  out[threadIdx.x] = value + __reduce_add_sync(0xffffffff, value);
}

// KERNEL control_partial_warp
// In a block of 48 threads the second warp is half full, and lanes exit early. A member mask may
// name lanes that have no thread or have exited; only the others are waited for.
// EXPECT nothing
// LAUNCH block=48
extern "C" __global__ void broken(const unsigned* in, unsigned* out) {
  __shared__ unsigned tile[48];
  unsigned value = in[threadIdx.x];
  tile[threadIdx.x] = value;
  __syncwarp();
  value += tile[threadIdx.x ^ 1];
  value += __shfl_xor_sync(0xffffffff, value, 8);
  value += __popc(__ballot_sync(0xffffffff, value & 1));
  if (__all_sync(0xffffffff, value < 1000)) value += 3;
  out[threadIdx.x] = value;
  if ((threadIdx.x & 3) == 3) return;
  value += __reduce_add_sync(0xffffffff, value) + __match_any_sync(0xffffffff, value & 1);
  __syncthreads();
  out[threadIdx.x] = value + __popc(__activemask());
}

// KERNEL control_elected_mask_in_register
// The mask of elect.sync is in a register that is not used again, so the result may get the same
// slot.
// EXPECT nothing
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

extern "C" __global__ void broken(const u32* in, u32* out) {
  u32 leader, elected;
  asm volatile(
      "{\n.reg .pred p;\n.reg .b32 mask;\nmov.u32 mask, %2;\nelect.sync %0|p, mask;\n"
      "selp.u32 %1, 1, 0, p;\n}"
      : "=r"(leader), "=r"(elected)
      : "r"(in[0] - 1));
  out[threadIdx.x] = __popc(__ballot_sync(0xffffffff, elected)) + (leader < 32);
}
