// Copies by cp.async.bulk from shared into global memory, and their groups.
//
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

// KERNEL bulk_store_by_all_lanes
// All lanes of a warp execute the same bulk store. Each store is a copy, and no order connects
// them. CUTLASS does so with tensor stores, and the hardware performs them once.
// EXPECT access to bytes in flight
// PROVEN nothing
// LAUNCH block=64
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[64];
  tile[threadIdx.x] = in[threadIdx.x];
  fence_async();
  __syncthreads();
  if (threadIdx.x < 32) {
    store(out, tile, 256);  // FAULT
    commit_stores();
    wait_stores<0>();
  }
}

// KERNEL bulk_store_exit
// The thread exits while its store may still read.
// EXPECT unwaited asynchronous effect
// PROVEN nothing
// LAUNCH block=64
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[64];
  tile[threadIdx.x] = in[threadIdx.x];
  fence_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    store(out, tile, 256);
    commit_stores();
    wait_stores_read<1>();
  }
}  // FAULT

// KERNEL bulk_store_loaded_again_too_early
// A bulk copy loads what another bulk copy stored. Its thread has waited only until the source of
// the store was read.
// EXPECT access to bytes in flight
// LAUNCH block=32
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[64];
  __shared__ u64 bar;
  tile[threadIdx.x] = in[threadIdx.x] + 1;
  tile[32 + threadIdx.x] = in[threadIdx.x] + 1;
  fence_async();
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
  }
  __syncwarp();
  if (threadIdx.x == 0) {
    store(out, tile, 256);
    commit_stores();
    wait_stores_read<0>();
    expect(bar, 256);
    load(tile, out, 256, bar);  // FAULT
    wait_stores<0>();
  }
  wait(bar, 0);
  out[64 + threadIdx.x] = tile[threadIdx.x];
}

// KERNEL bulk_store_over_unread
// A bulk copy overwrites global memory that another warp has not read yet.
// EXPECT global memory race | access to bytes in flight
// LAUNCH block=64
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[64];
  out[threadIdx.x] = in[threadIdx.x] + 2;
  tile[threadIdx.x] = in[threadIdx.x] + 1;
  fence_async();
  fence_async_global();
  __syncthreads();
  if (threadIdx.x >= 32) out[64 + threadIdx.x] = out[threadIdx.x];  // FAULT
  if (threadIdx.x == 0) {
    store(out, tile, 256);  // FAULT
    commit_stores();
    wait_stores<0>();
  }
}

// KERNEL bulk_store_read_back
// A thread reads the target of its bulk store, and has waited only until the source was read.
// EXPECT access to bytes in flight
// LAUNCH block=64
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[64];
  tile[threadIdx.x] = in[threadIdx.x];
  fence_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    store(out, tile, 256);
    commit_stores();
    wait_stores_read<0>();
    out[64] = out[3];  // FAULT
    wait_stores<0>();
  }
}

// KERNEL bulk_store_read_by_another_warp
// A warp reads the target of a bulk store, and only the thread that issued the store has waited for
// it.
// EXPECT global memory race | access to bytes in flight
// LAUNCH block=64
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[64];
  out[threadIdx.x] = 1;
  tile[threadIdx.x] = in[threadIdx.x] + 1;
  fence_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    store(out, tile, 256);  // FAULT
    commit_stores();
    wait_stores<0>();
  }
  if (threadIdx.x >= 32) out[64 + threadIdx.x] = out[threadIdx.x];  // FAULT
}

// KERNEL bulk_store_source_reused
// The staging buffer is filled again before the store has read it.
// EXPECT shared memory race
// LAUNCH block=64
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[64];
  for (u32 i = 0; i < 3; ++i) {
    tile[threadIdx.x] = in[i * 64 + threadIdx.x];  // FAULT
    fence_async();
    __syncthreads();
    if (threadIdx.x == 0) {
      store(out + i * 64, tile, 256);
      commit_stores();
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) wait_stores_read<0>();
}

// KERNEL bulk_store_without_barrier
// The staged tile is stored by a thread that does not wait for the others.
// EXPECT shared memory race | uninitialised read
// LAUNCH block=64
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[64];
  tile[threadIdx.x] = in[threadIdx.x];  // FAULT
  fence_async();
  if (threadIdx.x == 0) {
    store(out, tile, 256);  // FAULT
    commit_stores();
    wait_stores_read<0>();
  }
}

// KERNEL bulk_store_without_fence
// The staged tile is stored after a barrier, with no proxy fence.
// EXPECT missing fence
// LAUNCH block=64
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[64];
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) {
    store(out, tile, 256);  // FAULT
    commit_stores();
    wait_stores_read<0>();
  }
}

// KERNEL control_bulk_store_loaded_again
// A bulk copy loads what another bulk copy stored, after the wait for the store.
// EXPECT nothing
// LAUNCH block=32
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[64];
  __shared__ u64 bar;
  tile[threadIdx.x] = in[threadIdx.x] + 1;
  tile[32 + threadIdx.x] = in[threadIdx.x] + 1;
  fence_async();
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
  }
  __syncwarp();
  if (threadIdx.x == 0) {
    store(out, tile, 256);
    commit_stores();
    wait_stores<0>();
    expect(bar, 256);
    load(tile, out, 256, bar);
  }
  wait(bar, 0);
  out[64 + threadIdx.x] = tile[threadIdx.x];
}

// KERNEL control_bulk_store_read_back
// A thread reads the target of its bulk store, after the wait for the store.
// EXPECT nothing
// LAUNCH block=64
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[64];
  tile[threadIdx.x] = in[threadIdx.x];
  fence_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    store(out, tile, 256);
    commit_stores();
    wait_stores<0>();
    out[64] = out[3];
    wait_stores<0>();
  }
}

// KERNEL control_bulk_store_read_by_another_warp
// A warp reads the target of a bulk store, after the wait of the issuing thread and a barrier.
// EXPECT nothing
// LAUNCH block=64
extern "C" __global__ void broken(const u32* in, u32* out) {
  __shared__ alignas(128) u32 tile[64];
  out[threadIdx.x] = 1;
  tile[threadIdx.x] = in[threadIdx.x] + 1;
  fence_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    store(out, tile, 256);
    commit_stores();
    wait_stores<0>();
  }
  __syncthreads();
  if (threadIdx.x >= 32) out[64 + threadIdx.x] = out[threadIdx.x];
}
