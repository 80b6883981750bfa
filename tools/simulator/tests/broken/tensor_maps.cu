// Copies of boxes by tensor maps.
//
// ARCH sm_90a
#include "broken/ptx/hopper.cuh"

// KERNEL tensor_box_between_chunks
// A box begins at an element that is not at a multiple of 16 bytes in its row.
// EXPECT invalid operand
// LAUNCH map=1
extern "C" __global__ void broken(const u32* in, u32* out, const __grid_constant__ TensorMap map) {
  __shared__ alignas(1024) u32 tile[256];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
    expect(bar, 1024);
    load_box(tile, map, -3, 2, bar);  // FAULT
  }
  __syncthreads();
  wait(bar, 0);
  out[threadIdx.x] = tile[threadIdx.x];
}

// KERNEL tensor_box_stored_before_0
// A box begins at a negative coordinate and is stored. Only loads may have such coordinates.
// EXPECT invalid operand
// LAUNCH map=1
extern "C" __global__ void broken(const u32* in, u32* out, const __grid_constant__ TensorMap map) {
  __shared__ alignas(1024) u32 tile[256];
  for (int i = 0; i < 8; ++i) tile[32 * i + threadIdx.x] = i;
  fence_async();
  __syncwarp();
  if (threadIdx.x == 0) {
    store_box(map, 0, -3, tile);  // FAULT
    commit_stores();
    wait_stores<0>();
  }
}

// KERNEL tensor_box_misaligned
// A box does not start at a multiple of 128 bytes.
// EXPECT misaligned address
// LAUNCH map=1
extern "C" __global__ void broken(const u32* in, u32* out, const __grid_constant__ TensorMap map) {
  __shared__ alignas(1024) u32 room[10 * 32];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
    expect(bar, 1024);
    load_box(room + 16, map, 0, 0, bar);  // FAULT
  }
  __syncthreads();
  wait(bar, 0);
  out[threadIdx.x] = room[threadIdx.x + 16];
}

// KERNEL tensor_clipped_bytes
// At the edge of the tensor the kernel does not expect the bytes outside of it, half of the box's
// 1024. These bytes are counted too.
// EXPECT deadlock
// LAUNCH block=64 map=1
extern "C" __global__ void broken(const u32* in, u32* out, const __grid_constant__ TensorMap map) {
  __shared__ alignas(1024) u32 tile[256];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    expect(bar, 512);
    load_box(tile, map, 0, 124, bar);
  }
  wait(bar, 0);  // FAULT
  out[threadIdx.x] = tile[threadIdx.x];
}

// KERNEL tensor_map_of_nothing
// The bytes that are passed as a tensor map are not a tensor map.
// EXPECT invalid operand
extern "C" __global__ void broken(const TensorMap* in, u32* out) {
  __shared__ alignas(128) u32 tile[256];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
    expect(bar, 1024);
    load_box(tile, *in, 0, 0, bar);  // FAULT
  }
  __syncthreads();
  wait(bar, 0);
  out[threadIdx.x] = tile[threadIdx.x];
}

// KERNEL tensor_rank_differs
// The tensor map has two dimensions and the instruction has one.
// EXPECT invalid operand
// LAUNCH map=1
extern "C" __global__ void broken(const u32* in, u32* out, const __grid_constant__ TensorMap map) {
  __shared__ alignas(1024) u32 room[8 * 32];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
    expect(bar, 1024);
    load_line(room, map, 0, bar);  // FAULT
  }
  __syncthreads();
  wait(bar, 0);
  out[threadIdx.x] = room[threadIdx.x];
}

// KERNEL control_tensor_edges
// Boxes reach over every edge of the tensor. All their bytes are counted, with zeros outside.
// EXPECT nothing
// LAUNCH block=64 map=1
extern "C" __global__ void broken(const u32* in, u32* out, const __grid_constant__ TensorMap map) {
  __shared__ alignas(1024) u32 tile[256];
  __shared__ u64 bar;
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
  }
  __syncthreads();
  u32 total = 0;
#pragma unroll 1
  for (int i = 0; i < 6; ++i) {
    if (threadIdx.x == 0) {
      expect(bar, 1024);
      load_box(tile, map, i * 8 - 20, i * 25 - 4, bar);
    }
    wait(bar, i & 1);
    total = total * 3 + tile[threadIdx.x * 4 + i % 4];
    __syncthreads();
  }
  out[threadIdx.x] = total;
}
