// Matrix products of a warpgroup, and its registers (setmaxnreg).
//
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

// KERNEL wgmma_base_offset
// In the descriptor the pattern starts 128 bytes later than the tile does.
// EXPECT invalid operand
// LAUNCH block=128
extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  prepare(tile, in[0]);
  out[threadIdx.x] = product(describe(tile), describe(tile + 64 * 32) | 1ull << 49);  // FAULT
}

// KERNEL wgmma_base_offset_without_swizzle
// The descriptor has a base offset but no swizzle, so there is no pattern that could start there.
// EXPECT invalid operand
// LAUNCH block=128
extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  prepare(tile, in[0]);
  out[threadIdx.x] = product((describe(tile) & ~(3ull << 62)) | 2ull << 49, describe(tile + 64 * 32));  // FAULT
}

// KERNEL wgmma_by_96_threads
// The CTA has no complete warpgroup.
// EXPECT invalid operand
// LAUNCH block=96
extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  prepare(tile, in[0]);
  out[threadIdx.x] = product(describe(tile), describe(tile + 64 * 32));  // FAULT
}

// KERNEL wgmma_by_half_a_warp
// Half of the lanes of a warp take another branch.
// EXPECT divergent barrier | deadlock
// LAUNCH block=128
extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  prepare(tile, in[0]);
  float d[8] = {};
  pin(d);
  fence_registers();
  if (threadIdx.x != 5) multiply(d, describe(tile), describe(tile + 64 * 32), true);  // FAULT
  commit_products();
  wait_products<0>();
  pin(d);
  out[threadIdx.x] = sum(d);
}

// KERNEL wgmma_by_three_warps
// One warp of the warpgroup does not issue the product.
// EXPECT deadlock | divergent barrier
// LAUNCH block=128
extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  prepare(tile, in[0]);
  float d[8] = {};
  pin(d);
  fence_registers();
  if (threadIdx.x < 96) {
    multiply(d, describe(tile), describe(tile + 64 * 32), true);  // FAULT
    commit_products();
    wait_products<0>();  // FAULT
  }
  pin(d);
  out[threadIdx.x] = sum(d);
}

// KERNEL wgmma_descriptors_differ
// Each warp describes a different B.
// EXPECT invalid operand
// LAUNCH block=128
extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[128 * 32];
  for (u32 i = threadIdx.x; i < 128 * 32; i += 128) tile[i] = in[0];
  fence_async();
  __syncthreads();
  const u32* b = tile + 64 * 32 + threadIdx.x / 32 * 16 * 32;
  out[threadIdx.x] = product(describe(tile), describe(b));  // FAULT
}

// KERNEL wgmma_exit
// The warps exit while a product is under way.
// EXPECT unwaited asynchronous effect
// LAUNCH block=128
extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  prepare(tile, in[0]);
  float d[8] = {};
  pin(d);
  fence_registers();
  multiply(d, describe(tile), describe(tile + 64 * 32), true);
  commit_products();
  out[threadIdx.x] = 1;
}  // FAULT

// KERNEL wgmma_fragment_overwritten
// The fragment of A is changed before the product is over.
// EXPECT access to a register in flight
// LAUNCH block=128
extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  prepare(tile, in[0]);
  float d[8] = {};
  u32 a[4] = {in[1], in[2], in[3], in[4]};
  pin(d);
  fence_registers();
  asm volatile("" : "+r"(a[0]), "+r"(a[1]), "+r"(a[2]), "+r"(a[3]));
  multiply(d, a, describe(tile + 64 * 32), true);
  commit_products();
  asm volatile("mov.b32 %0, 7;" : "+r"(a[0]));  // FAULT
  wait_products<0>();
  pin(d);
  out[threadIdx.x] = sum(d) + a[0];
}

// KERNEL wgmma_lanes_differ
// The lanes of a warp describe different matrices.
// EXPECT invalid operand
// LAUNCH block=128
extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  prepare(tile, in[0]);
  out[threadIdx.x] = product(describe(tile) + (threadIdx.x & 1) * 2, describe(tile + 64 * 32));  // FAULT
}

// KERNEL wgmma_never_committed
// A wait covers only committed groups, and the product is in none.
// EXPECT access to a register in flight
// LAUNCH block=128
extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  prepare(tile, in[0]);
  float d[8] = {};
  pin(d);
  fence_registers();
  multiply(d, describe(tile), describe(tile + 64 * 32), true);
  wait_products<0>();
  out[threadIdx.x] = sum(d);  // FAULT
  commit_products();
  wait_products<0>();
}

// KERNEL wgmma_operand_overwritten
// An operand is overwritten after a barrier, but before the product is over.
// EXPECT shared memory race
// LAUNCH block=128
extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  prepare(tile, in[0]);
  float d[8] = {};
  pin(d);
  fence_registers();
  multiply(d, describe(tile), describe(tile + 64 * 32), true);
  commit_products();
  __syncthreads();
  if (threadIdx.x < 32) tile[64 * 32 + threadIdx.x] = 0;  // FAULT
  wait_products<0>();
  pin(d);
  out[threadIdx.x] = sum(d);
}

// KERNEL wgmma_other_instruction
// One warp adds the product and the others subtract it, which is another instruction.
// EXPECT invalid operand
// LAUNCH block=128
#define MULTIPLY(sign)                                                                           \
  asm volatile(                                                                                  \
      "{\n.reg .pred p;\nsetp.ne.b32 p, %10, 0;\n"                                              \
      "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7}, "  \
      "%8, %9, p, " sign ", 1, 0, 0;\n}"                                                         \
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),      \
        "+f"(d[7])                                                                               \
      : "l"(describe(tile)), "l"(describe(tile + 64 * 32)), "r"(1))

extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  prepare(tile, in[0]);
  float d[8] = {};
  pin(d);
  fence_registers();
  if (threadIdx.x < 32) {
    MULTIPLY("1");  // FAULT
  } else {
    MULTIPLY("-1");  // FAULT
  }
  commit_products();
  wait_products<0>();
  pin(d);
  out[threadIdx.x] = sum(d);
}

// KERNEL wgmma_own_stores_without_fence
// Like wgmma_without_barrier, but one warp does not fence the words that it wrote.
// EXPECT missing fence | shared memory race | uninitialised read
// LAUNCH block=128
extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  fill(tile, in[0]);
  if (threadIdx.x / 32 != 2) fence_async();
  out[threadIdx.x] = product(describe(tile), describe(tile + 64 * 32));  // FAULT
}

// KERNEL wgmma_past_end
// B begins in the last rows of shared memory.
// EXPECT out of bounds
// LAUNCH block=128
extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  prepare(tile, in[0]);
  out[threadIdx.x] = product(describe(tile), describe(tile + 72 * 32));  // FAULT
}

// KERNEL wgmma_released_by_one_warp
// One warp waits and then signals that the tile is free. If a wait covers only the warp's own part
// of a product, the other parts may still be read, or be issued later.
// EXPECT shared memory race | access to bytes in flight
// LAUNCH block=256
// WITH products=2
extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  __shared__ u64 full, empty;
  if (threadIdx.x == 0) {
    init(full, 1);
    init(empty, 1);
    fence_init();
  }
  __syncthreads();
  float d[8] = {};
  for (u32 i = 0; i < 3; ++i) {
    if (threadIdx.x < 128) {
      if (threadIdx.x != 0) continue;
      wait(empty, (i & 1) ^ 1);
      expect(full, 80 * 128);
      load(tile, in, 80 * 128, full);  // FAULT
    } else {
      wait(full, i & 1);
      pin(d);
      fence_registers();
      multiply(d, describe(tile), describe(tile + 64 * 32), true);  // FAULT
      commit_products();
      wait_products<0>();
      pin(d);
      if (threadIdx.x == 128) arrive(empty);
    }
  }
  if (threadIdx.x >= 128) out[threadIdx.x] = sum(d);
}

// KERNEL wgmma_reserved_bits
// A reserved bit of the descriptor is set.
// EXPECT invalid operand
// LAUNCH block=128
extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  prepare(tile, in[0]);
  out[threadIdx.x] = product(describe(tile) | 1ull << 14, describe(tile + 64 * 32));  // FAULT
}

// KERNEL wgmma_result_not_waited_for
// The accumulators are read before the product is over.
// EXPECT access to a register in flight
// LAUNCH block=128
extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  prepare(tile, in[0]);
  float d[8] = {};
  pin(d);
  fence_registers();
  multiply(d, describe(tile), describe(tile + 64 * 32), true);
  commit_products();
  out[threadIdx.x] = sum(d);  // FAULT
  wait_products<0>();
}

// KERNEL wgmma_rows_of_another_warp
// After its own wait, a warp overwrites rows of A that the next warp reads, possibly later.
// EXPECT shared memory race
// LAUNCH block=128
// WITH products=2
extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  prepare(tile, in[0]);
  out[threadIdx.x] = product(describe(tile), describe(tile + 64 * 32));  // FAULT
  u32* rows = tile + (threadIdx.x / 32 + 1) % 4 * 16 * 32;
  for (u32 i = threadIdx.x % 32; i < 16 * 32; i += 32) rows[i] = i;  // FAULT
}

// KERNEL wgmma_scale_differs
// Every second lane requests to add to D.
// EXPECT invalid operand
// LAUNCH block=128
extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  prepare(tile, in[0]);
  out[threadIdx.x] = product(describe(tile), describe(tile + 64 * 32), threadIdx.x & 1);  // FAULT
}

// KERNEL wgmma_scale_differs_between_warps
// Two warps request to add to D, the others to replace it.
// EXPECT invalid operand
// LAUNCH block=128
extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  prepare(tile, in[0]);
  out[threadIdx.x] = product(describe(tile), describe(tile + 64 * 32), threadIdx.x & 64);  // FAULT
}

// KERNEL wgmma_wait_orders_lanes
// All lanes of a warp read the tile and wait for a product. One of them signals that the tile is
// free, with no __syncwarp in between. DeepGEMM relies on the wait, which all lanes execute
// together, as a proof that all of them have read.
// EXPECT shared memory race
// PROVEN nothing
// LAUNCH block=256
extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  __shared__ u64 full, empty;
  if (threadIdx.x == 0) {
    init(full, 1);
    init(empty, 4);
    fence_init();
  }
  __syncthreads();
  float d[8] = {};
  float scale = 0;
  for (u32 i = 0; i < 3; ++i) {
    if (threadIdx.x < 128) {
      if (threadIdx.x != 0) continue;
      wait(empty, (i & 1) ^ 1);
      expect(full, 80 * 128);
      load(tile, in, 80 * 128, full);  // FAULT
    } else {
      wait(full, i & 1);
      scale += static_cast<float>(tile[threadIdx.x]);
      pin(d);
      fence_registers();
      multiply(d, describe(tile), describe(tile + 64 * 32), true);
      commit_products();
      wait_products<0>();
      pin(d);
      if (threadIdx.x % 32 == 0) arrive(empty);
    }
  }
  if (threadIdx.x >= 128) out[threadIdx.x] = sum(d) + scale;
}

// KERNEL wgmma_wait_too_lax
// The wait leaves one group in flight, whose result is then read.
// EXPECT access to a register in flight
// LAUNCH block=128
extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  prepare(tile, in[0]);
  float first[8] = {}, second[8] = {};
  pin(first);
  pin(second);
  fence_registers();
  multiply(first, describe(tile), describe(tile + 64 * 32), true);
  commit_products();
  multiply(second, describe(tile), describe(tile + 64 * 32), true);
  commit_products();
  wait_products<1>();
  out[threadIdx.x] = sum(first);
  out[128 + threadIdx.x] = sum(second);  // FAULT
  wait_products<0>();
}

// KERNEL wgmma_without_barrier
// All four warps write the operands, and no barrier follows.
// EXPECT shared memory race | uninitialised read
// PROVEN nothing
// LAUNCH block=128
extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  fill(tile, in[0]);  // FAULT
  fence_async();
  out[threadIdx.x] = product(describe(tile), describe(tile + 64 * 32));  // FAULT
}

// KERNEL wgmma_without_fence
// There is no wgmma.fence between the zeros of the accumulators and the product.
// EXPECT missing fence
// LAUNCH block=128
extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  prepare(tile, in[0]);
  float d[8] = {};
  pin(d);
  multiply(d, describe(tile), describe(tile + 64 * 32), true);  // FAULT
  commit_products();
  wait_products<0>();
  pin(d);
  out[threadIdx.x] = sum(d);
}

// KERNEL wgmma_without_proxy_fence
// The operands are written by ordinary stores, and no proxy fence follows.
// EXPECT missing fence
// LAUNCH block=128
extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  fill(tile, in[0]);
  __syncthreads();
  out[threadIdx.x] = product(describe(tile), describe(tile + 64 * 32));  // FAULT
}

// KERNEL wgmma_without_second_fence
// The accumulators are scaled between two products, with no wgmma.fence afterwards.
// EXPECT missing fence
// LAUNCH block=128
extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  prepare(tile, in[0]);
  float d[8] = {};
  pin(d);
  fence_registers();
  multiply(d, describe(tile), describe(tile + 64 * 32), true);
  commit_products();
  wait_products<0>();
  pin(d);
#pragma unroll
  for (int i = 0; i < 8; ++i) d[i] *= 0.5f;
  pin(d);
  multiply(d, describe(tile), describe(tile + 64 * 32), true);  // FAULT
  commit_products();
  wait_products<0>();
  pin(d);
  out[threadIdx.x] = sum(d);
}

// KERNEL setmaxnreg_dec_raises
// setmaxnreg.dec requests more registers than the warp has.
// EXPECT invalid operand
// LAUNCH block=384
extern "C" __global__ void __launch_bounds__(384, 1) broken(const u32* in, u32* out) {
  fewer_registers<240>();  // FAULT
  out[threadIdx.x] = in[threadIdx.x];
}

// KERNEL setmaxnreg_differs
// The warps of a warpgroup request different numbers of registers.
// EXPECT invalid operand
// LAUNCH block=256
extern "C" __global__ void __launch_bounds__(256, 1) broken(const u32* in, u32* out) {
  if (threadIdx.x < 64) {
    fewer_registers<40>();  // FAULT
  } else if (threadIdx.x < 128) {
    fewer_registers<48>();  // FAULT
  } else {
    more_registers<240>();
  }
  out[threadIdx.x] = in[threadIdx.x];
}

// KERNEL setmaxnreg_too_many
// Three warpgroups request more registers than the CTA has.
// EXPECT deadlock
// LAUNCH block=384
extern "C" __global__ void __launch_bounds__(384, 1) broken(const u32* in, u32* out) {
  if (threadIdx.x < 128) {
    fewer_registers<40>();
  } else {
    more_registers<240>();  // FAULT
  }
  out[threadIdx.x] = in[threadIdx.x];
}

// KERNEL control_wgmma_own_rows
// After its own wait, a warp overwrites the rows of A that only it reads. That is correct under
// both readings of the wait.
// EXPECT nothing
// LAUNCH block=128
// WITH products=2
extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  prepare(tile, in[0]);
  out[threadIdx.x] = product(describe(tile), describe(tile + 64 * 32));
  for (u32 i = threadIdx.x % 32; i < 16 * 32; i += 32) tile[threadIdx.x / 32 * 16 * 32 + i] = i;
}

// KERNEL control_wgmma_pipeline
// A producer and two warpgroups of consumers, which take registers from the producer. Products of
// one group are under way while the next group is issued, from shared memory and from registers.
// Every warp signals separately that a stage is free. There are several rounds, with more tiles
// than stages.
// EXPECT nothing
// LAUNCH grid=2 block=384 shared=24576
extern "C" __global__ void __launch_bounds__(384, 1) broken(const u32* in, float* out) {
  extern __shared__ __align__(1024) u32 stages[];  // [2][80 * 32], in 12 KB each
  __shared__ u64 full[2], empty[2];
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; ++i) {
      init(full[i], 1);
      init(empty[i], 8);
    }
    fence_init();
  }
  __syncthreads();
  if (threadIdx.x < 128) {
    fewer_registers<24>();
    if (threadIdx.x >= 32 || !elect()) return;
#pragma unroll 1
    for (u32 tile = 0; tile < 14; ++tile) {
      const u32 stage = tile & 1;
      wait(empty[stage], tile / 2 & 1 ^ 1);
      expect(full[stage], 80 * 128);
      load(stages + stage * 3072, in + tile * 64, 80 * 128, full[stage]);
    }
    // Keeps the CTA from ending before the last copies have been read.
    wait(empty[0], 14 / 2 & 1 ^ 1);
    wait(empty[1], 14 / 2 & 1 ^ 1);
    return;
  }
  more_registers<240>();
  const bool leader = threadIdx.x % 32 == 0;
  float first[8], second[8] = {};
#pragma unroll 1
  for (u32 tile = 0; tile < 14; ++tile) {
    const u32 stage = tile & 1;
    const u32* a = stages + stage * 3072;
    wait(full[stage], tile / 2 & 1);
    fence_registers();
    multiply(first, describe(a), describe(a + 64 * 32), false);
    multiply(first, describe(a) + 2, describe(a + 64 * 32) + 2, true);
    commit_products();
    wait_products<0>();
    pin(first);
    u32 fragment[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(fragment[i]) : "f"(first[2 * i + 1]), "f"(first[2 * i]));
    }
    pin(second);
    fence_registers();
    multiply(second, fragment, describe(a + 64 * 32), true);
    commit_products();
    wait_products<0>();
    pin(second);
    __syncwarp();
    if (leader) arrive(empty[stage]);
  }
  out[blockIdx.x * 256 + threadIdx.x - 128] = sum(second);
}

// KERNEL control_wgmma_released_by_one_warp
// One thread of the warpgroup releases the tile. That is correct if a wait covers whole products.
// EXPECT nothing
// LAUNCH block=256
// WITH products=1
extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 tile[80 * 32];
  __shared__ u64 full, empty;
  if (threadIdx.x == 0) {
    init(full, 1);
    init(empty, 1);
    fence_init();
  }
  __syncthreads();
  float d[8] = {};
  for (u32 i = 0; i < 3; ++i) {
    if (threadIdx.x < 128) {
      if (threadIdx.x != 0) continue;
      wait(empty, (i & 1) ^ 1);
      expect(full, 80 * 128);
      load(tile, in, 80 * 128, full);
    } else {
      wait(full, i & 1);
      pin(d);
      fence_registers();
      multiply(d, describe(tile), describe(tile + 64 * 32), true);
      commit_products();
      wait_products<0>();
      pin(d);
      if (threadIdx.x == 128) arrive(empty);
    }
  }
  if (threadIdx.x >= 128) out[threadIdx.x] = sum(d);
}

// KERNEL control_wgmma_tile_anywhere
// A tile with a swizzle of 128 bytes begins in the middle of its pattern. Its addresses determine
// which row of the pattern each of its rows is.
// EXPECT nothing
// LAUNCH block=128
extern "C" __global__ void broken(const u32* in, float* out) {
  __shared__ alignas(1024) u32 room[84 * 32];
  u32* tile = room + 4 * 32;
  prepare(tile, in[0]);
  out[threadIdx.x] = product(describe(tile), describe(tile + 64 * 32));
}
