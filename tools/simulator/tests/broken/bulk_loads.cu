// Copies by cp.async.bulk from global into shared memory, and their mbarriers.
//
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

// KERNEL bulk_half_the_bytes
// There are two copies, but only the bytes of one are expected.
// EXPECT access to bytes in flight
// LAUNCH block=64
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[512];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    expect(bar, 1024);
    load(tile, in, 1024, bar);
    load(tile + 256, in + 256, 1024, bar);
  }
  wait(bar, 0);
  out[threadIdx.x] = tile[threadIdx.x] + tile[256 + threadIdx.x];  // FAULT
}

// KERNEL bulk_load_of_another_block_without_fence
// The last block uses a bulk copy to load what all blocks have stored. The kernel has no fence of
// the asynchronous proxy for global memory.
// EXPECT missing fence
// LAUNCH grid=2 block=64
__device__ u32 ticket;

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[128];
  __shared__ u64 bar;
  __shared__ bool last;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
  }
  out[blockIdx.x * 64 + threadIdx.x] = in[threadIdx.x] + 1;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(&ticket, 1) == 1;
    __threadfence();
  }
  __syncthreads();
  if (!last) return;
  if (threadIdx.x == 0) {
    ticket = 0;
    expect(bar, 512);
    load(tile, out, 512, bar);  // FAULT
  }
  wait(bar, 0);
  out[128 + threadIdx.x] = tile[threadIdx.x] + tile[64 + threadIdx.x];
}

// KERNEL bulk_load_of_own_writes_fenced_too_early
// A bulk copy reads global memory that the block wrote after its fence of the asynchronous proxy.
// EXPECT missing fence
// LAUNCH block=64
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[64];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
  }
  fence_async_global();
  out[threadIdx.x] = in[threadIdx.x] + 1;
  __syncthreads();
  if (threadIdx.x == 0) {
    expect(bar, 256);
    load(tile, out, 256, bar);  // FAULT
  }
  wait(bar, 0);
  out[64 + threadIdx.x] = tile[threadIdx.x];
}

// KERNEL bulk_load_of_own_writes_without_barrier
// A bulk copy reads global memory that another warp of the block writes, with no barrier in
// between.
// EXPECT global memory race | missing fence | uninitialised read
// LAUNCH block=64
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[64];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
  }
  __syncthreads();
  out[threadIdx.x] = in[threadIdx.x] + 1;  // FAULT
  fence_async_global();
  __syncwarp();
  if (threadIdx.x == 0) {
    expect(bar, 256);
    load(tile, out, 256, bar);  // FAULT
  }
  wait(bar, 0);
  __syncthreads();
  out[64 + threadIdx.x] = tile[threadIdx.x];
}

// KERNEL bulk_load_of_own_writes_without_fence
// A bulk copy reads global memory that the block wrote, with no fence of the asynchronous proxy.
// EXPECT missing fence
// LAUNCH block=64
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[64];
  __shared__ u64 bar;
  out[threadIdx.x] = in[threadIdx.x] + 1;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    expect(bar, 256);
    load(tile, out, 256, bar);  // FAULT
  }
  wait(bar, 0);
  out[64 + threadIdx.x] = tile[threadIdx.x];
}

// KERNEL bulk_load_source_overwritten
// A thread overwrites global memory that a bulk copy may still read.
// EXPECT access to bytes in flight
// LAUNCH block=64
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[64];
  __shared__ u64 bar;
  out[threadIdx.x] = in[threadIdx.x];
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
  }
  __threadfence();
  fence_async_global();
  __syncthreads();
  if (threadIdx.x == 0) {
    expect(bar, 256);
    load(tile, out, 256, bar);
    out[5] = 7;  // FAULT
  }
  wait(bar, 0);
  out[64 + threadIdx.x] = tile[threadIdx.x];
}

// KERNEL bulk_mbarrier_without_fence
// No fence makes the new mbarrier known to the asynchronous proxy.
// EXPECT missing fence
// PROVEN nothing
// LAUNCH block=64
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[256];
  __shared__ u64 bar;
  if (threadIdx.x == 0) init(bar, 1);
  __syncthreads();
  if (threadIdx.x == 32) {
    expect(bar, 1024);
    load(tile, in, 1024, bar);  // FAULT
  }
  wait(bar, 0);
  out[threadIdx.x] = tile[threadIdx.x];
}

// KERNEL bulk_misaligned
// The addresses of a copy are not aligned to 16 bytes.
// EXPECT misaligned address
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[256];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
    expect(bar, 512);
    load(tile, in + 2, 512, bar);  // FAULT
  }
  __syncthreads();
  wait(bar, 0);
  out[threadIdx.x] = tile[threadIdx.x];
}

// KERNEL bulk_never_waited
// The kernel ends with a copy that no thread waited for.
// EXPECT unwaited asynchronous effect
// LAUNCH block=64
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[256];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
    expect(bar, 1024);
    load(tile, in, 1024, bar);  // FAULT
  }
  out[threadIdx.x] = in[threadIdx.x];
}

// KERNEL bulk_nothing_expected
// A plain arrival is made instead of one that expects bytes, so the phase is over at once.
// EXPECT access to bytes in flight | uninitialised read
// LAUNCH block=64
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[256];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    arrive(bar);
    load(tile, in, 1024, bar);
  }
  wait(bar, 0);
  out[threadIdx.x] = tile[threadIdx.x];  // FAULT
}

// KERNEL bulk_odd_size
// The size of a copy is not a multiple of 16.
// EXPECT invalid operand
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[256];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
    expect(bar, 1000);
    load(tile, in, 1000, bar);  // FAULT
  }
  __syncthreads();
  wait(bar, 0);
  out[threadIdx.x] = tile[threadIdx.x];
}

// KERNEL bulk_over_readers
// The next tile is copied over a tile that may still be read.
// EXPECT shared memory race | access to bytes in flight
// LAUNCH block=64
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[256];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
  }
  __syncthreads();
  for (u32 i = 0; i < 4; ++i) {
    if (threadIdx.x == 0) {
      expect(bar, 1024);
      load(tile, in + 256 * i, 1024, bar);  // FAULT
    }
    wait(bar, i & 1);
    out[i * 64 + threadIdx.x] = tile[threadIdx.x * 4];  // FAULT
  }
}

// KERNEL bulk_over_stores
// A copy overwrites words of ordinary stores, after a barrier but without a proxy fence.
// EXPECT missing fence
// LAUNCH block=64
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[256];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
  }
  for (u32 i = threadIdx.x; i < 256; i += 64) tile[i] = 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    expect(bar, 1024);
    load(tile, in, 1024, bar);  // FAULT
  }
  wait(bar, 0);
  out[threadIdx.x] = tile[threadIdx.x * 4];
}

// KERNEL bulk_past_end
// The copy reaches beyond the allocation.
// EXPECT out of bounds
// LAUNCH in=4096
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[256];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
    expect(bar, 1024);
    load(tile, in + 1024 - 128, 1024, bar);  // FAULT
  }
  __syncthreads();
  wait(bar, 0);
  out[threadIdx.x] = tile[threadIdx.x];
}

// KERNEL bulk_read_before_wait
// The target of the copy is read while the copy may be under way.
// EXPECT access to bytes in flight
// LAUNCH block=64
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[256];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
    expect(bar, 1024);
    load(tile, in, 1024, bar);
  }
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x];  // FAULT
  wait(bar, 0);
}

// KERNEL bulk_shared_past_end
// The copy reaches beyond shared memory.
// EXPECT out of bounds
// LAUNCH shared=1024
extern "C" __global__ void broken(const u32* in, u32* out) {
  extern __shared__ __align__(128) u32 tile[];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
    expect(bar, 2048);
    load(tile, in, 2048, bar);  // FAULT
  }
  __syncthreads();
  wait(bar, 0);
  out[threadIdx.x] = tile[threadIdx.x];
}

// KERNEL bulk_too_many_bytes
// More bytes are expected than ever arrive.
// EXPECT deadlock
// LAUNCH block=64
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[256];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    expect(bar, 2048);
    load(tile, in, 1024, bar);
  }
  wait(bar, 0);  // FAULT
  out[threadIdx.x] = tile[threadIdx.x];
}

// KERNEL control_bulk_load_fenced_by_issuer
// A bulk copy reads global memory that the block wrote, after a barrier and a fence by the copying
// thread.
// EXPECT nothing
// LAUNCH block=64
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[64];
  __shared__ u64 bar;
  out[threadIdx.x] = in[threadIdx.x] + 1;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    fence_async_global();
    expect(bar, 256);
    load(tile, out, 256, bar);
  }
  wait(bar, 0);
  out[64 + threadIdx.x] = tile[threadIdx.x];
}

// KERNEL control_bulk_load_of_another_block
// The last block uses a bulk copy to load what all blocks have stored. Each thread that stored has
// executed a fence of the asynchronous proxy.
// EXPECT nothing
// LAUNCH grid=2 block=64
__device__ u32 ticket;

extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[128];
  __shared__ u64 bar;
  __shared__ bool last;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
  }
  out[blockIdx.x * 64 + threadIdx.x] = in[threadIdx.x] + 1;
  fence_async_global();
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(&ticket, 1) == 1;
    __threadfence();
  }
  __syncthreads();
  if (!last) return;
  if (threadIdx.x == 0) {
    ticket = 0;
    expect(bar, 512);
    load(tile, out, 512, bar);
  }
  wait(bar, 0);
  out[128 + threadIdx.x] = tile[threadIdx.x] + tile[64 + threadIdx.x];
}

// KERNEL control_bulk_load_of_own_writes
// A bulk copy reads global memory that the block wrote, after a fence by each thread and a barrier.
// EXPECT nothing
// LAUNCH block=64
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[64];
  __shared__ u64 bar;
  out[threadIdx.x] = in[threadIdx.x] + 1;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
  }
  fence_async_global();
  __syncthreads();
  if (threadIdx.x == 0) {
    expect(bar, 256);
    load(tile, out, 256, bar);
  }
  wait(bar, 0);
  out[64 + threadIdx.x] = tile[threadIdx.x];
}

// KERNEL control_bulk_load_source_overwritten
// A thread overwrites global memory that a bulk copy has read, after the wait for the copy.
// EXPECT nothing
// LAUNCH block=64
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[64];
  __shared__ u64 bar;
  out[threadIdx.x] = in[threadIdx.x];
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
  }
  __threadfence();
  fence_async_global();
  __syncthreads();
  if (threadIdx.x == 0) {
    expect(bar, 256);
    load(tile, out, 256, bar);
  }
  wait(bar, 0);
  if (threadIdx.x == 0) out[5] = 7;
  out[64 + threadIdx.x] = tile[threadIdx.x];
}

// KERNEL control_bulk_pipeline
// One thread copies tiles into three stages. Two warps read them, and bulk stores write their sums
// from two buffers in turn.
// EXPECT nothing
// LAUNCH grid=2 block=96
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 stages[3][64];
  __shared__ alignas(128) u32 staging[2][64];
  __shared__ u64 full[3], empty[3];
  if (threadIdx.x == 0) {
    for (int i = 0; i < 3; ++i) {
      init(full[i], 1);
      init(empty[i], 2);
    }
    fence_init();
  }
  __syncthreads();
  const u32 thread = threadIdx.x - 32;
  u32 total = 0;
#pragma unroll 1
  for (u32 tile = 0; tile < 11; ++tile) {
    const u32 stage = tile % 3;
    const u32 parity = tile / 3 & 1;
    if (threadIdx.x < 32) {
      if (!elect()) continue;
      wait(empty[stage], parity ^ 1);
      expect(full[stage], 256);
      load(stages[stage], in + 64 * tile, 256, full[stage]);
      continue;
    }
    wait(full[stage], parity);
    total = total * 3 + stages[stage][thread ^ 37];
    __syncwarp();
    if (elect()) arrive(empty[stage]);
    u32* buffer = staging[tile & 1];
    if (thread == 0) wait_stores_read<1>();
    sync_some<64>(1);
    buffer[thread] = total;
    fence_async();
    sync_some<64>(1);
    if (thread == 0) {
      store(out + (blockIdx.x * 11 + tile) * 64, buffer, 256);
      commit_stores();
    }
  }
  if (thread == 0) wait_stores_read<0>();
}
