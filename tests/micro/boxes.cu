// Copies of single boxes, and the begin of shared memory.

#include "params/wgmma_params.h"
#include "ptx/cluster.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/memory.cuh"
#include "ptx/stmatrix.cuh"
#include "ptx/tensor_copy.cuh"
#include "ptx/warpgroup.cuh"
#include "tile/panel.cuh"

namespace annulus::kernels {

// out[CTA] is the distance from a multiple of 1024 to the begin of dynamic shared memory. The last
// word is written and read, which shows that all of it exists.
__device__ __forceinline__ void write_base(unsigned bytes, unsigned* out) {
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  const unsigned base = ptx::shared_address(shared_memory);
  ptx::store_shared(base + bytes - 4, base & 1023);
  out[blockIdx.x] = ptx::load_shared(base + bytes - 4);
}
__global__ void __launch_bounds__(32, 1) shared_base(unsigned bytes, unsigned* out) {
  if (threadIdx.x == 0) write_base(bytes, out);
}
__global__ void __cluster_dims__(2) __launch_bounds__(32, 1)
    shared_base_of_cluster(unsigned bytes, unsigned* out) {
  if (threadIdx.x == 0) write_base(bytes, out);
}

// out is the box of 64 rows at (row, head, batch), in its order in shared memory.
__global__ void __launch_bounds__(128, 1) copy_box(const __grid_constant__ TensorMap map, int row,
                                                   int head, int batch, ptx::Words4* out) {
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  const unsigned box = ptx::shared_address(shared_memory);
  const unsigned full = box + 8192;
  if (threadIdx.x == 0) {
    ptx::init_barrier(full, 1);
    ptx::publish_barriers();
    ptx::prefetch_map(&map);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::arrive_expecting(full, 8192);
    ptx::load_box(box, &map, full, {0, row, head, batch});
  }
  ptx::wait(full, 0);
  for (unsigned i = threadIdx.x; i < 512; i += 128) out[i] = ptx::load_shared_16(box + i * 16);
}

// Stores 64 x 128 elements whose bits are 128 row + column + 1 in boxes of 64 columns. Waits until
// they have been read, overwrites them in shared memory, and exits.
__global__ void __launch_bounds__(128, 1) store_box(const __grid_constant__ TensorMap map) {
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  using Panels = tile::Panels<64, 128>;
  const unsigned staging = ptx::shared_address(shared_memory);
  const unsigned warp = threadIdx.x / 32;
  const unsigned lane = threadIdx.x % 32;
  for (unsigned d = 0; d < 8; ++d) {
    unsigned words[4];
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned row = warp * 16 + i % 2 * 8 + lane / 4;
      const unsigned low = row * 128 + d * 16 + i / 2 * 8 + lane % 4 * 2 + 1;
      words[i] = low | (low + 1) << 16;
    }
    ptx::store_matrices(staging + Panels::chunk(warp * 16 + lane % 16, 2 * d + lane / 16), words[0],
                        words[1], words[2], words[3]);
  }
  ptx::fence_shared_writes();
  __syncthreads();
  if (warp == 0 && ptx::elect()) {
    for (int panel = 0; panel < 2; ++panel) {
      ptx::store_box(&map, staging + panel * Panels::kPanelBytes, {panel * 64, 0, 0, 0});
    }
    ptx::commit_stores();
    ptx::wait_stores_read();
  }
  __syncthreads();
  for (unsigned at = threadIdx.x * 16; at < Panels::kBytes; at += 128 * 16) {
    ptx::store_shared_16(staging + at, {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff});
  }
}

// Copies rows into a tile of 64 rows and 128 columns as chunk_wgmma_forward does. Lane i of a warp
// starts the boxes i, i + 32, ... of `box_rows` rows, one after the other, in both panels. `at` has
// the row, head and batch of each box. Rows that no box covers keep bits of 1. out is the tile by
// rows.
__global__ void __launch_bounds__(128, 1) copy_rows(const __grid_constant__ TensorMap map,
                                                    int box_rows, const int* at, ptx::Words4* out) {
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  using Panels = tile::Panels<64, 128>;
  const unsigned tile = ptx::shared_address(shared_memory);
  const unsigned full = tile + Panels::kBytes;
  if (threadIdx.x == 0) {
    ptx::init_barrier(full, 1);
    ptx::publish_barriers();
  }
  for (unsigned byte = threadIdx.x * 16; byte < Panels::kBytes; byte += 128 * 16) {
    ptx::store_shared_16(tile + byte, {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff});
  }
  ptx::fence_shared_writes();
  __syncthreads();
  if (threadIdx.x < 32) {
    const int boxes = 64 / box_rows;
    const int box_bytes = box_rows * Panels::kRowBytes;
    if (threadIdx.x == 0) {
      ptx::arrive_expecting(full, static_cast<unsigned>(boxes * box_bytes * Panels::kCount));
    }
    __syncwarp();
#pragma unroll 1
    for (int box = static_cast<int>(threadIdx.x); box < boxes; box += 32) {
      for (int panel = 0; panel < Panels::kCount; ++panel) {
        ptx::load_box(
            tile + static_cast<unsigned>(panel * Panels::kPanelBytes + box * box_bytes), &map, full,
            {panel * Panels::kPanelColumns, at[3 * box], at[3 * box + 1], at[3 * box + 2]});
      }
    }
  }
  ptx::wait(full, 0);
  for (unsigned i = threadIdx.x; i < 64 * 16; i += 128) {
    out[i] = ptx::load_shared_16(tile + Panels::chunk(i / 16, i % 16));
  }
}

// Each CTA copies `steps` tiles of 128 rows and 128 columns, with two copies in flight, in boxes of
// `box_rows` rows that the lanes of one warp start. clocks[CTA] has the clocks until the first tile
// has arrived, and the clocks of the other steps. wrong[CTA] is the number of words of the last two
// tiles that differ from `truth`.
__global__ void __launch_bounds__(32, 1)
    copy_steps(const __grid_constant__ TensorMap map, int box_rows, int prefetch, int steps,
               int tiles, const unsigned* truth, long long* clocks, unsigned* wrong) {
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  using Panels = tile::Panels<128, 128>;
  const unsigned buffers = ptx::shared_address(shared_memory);
  const unsigned barriers = buffers + 2 * Panels::kBytes;
  if (threadIdx.x == 0) {
    ptx::init_barrier(barriers, 1);
    ptx::init_barrier(barriers + ptx::kBarrierBytes, 1);
    ptx::publish_barriers();
    if (prefetch != 0) ptx::prefetch_map(&map);
  }
  __syncwarp();
  // This is longer than a prefetch takes.
  const long long begin = clock64() + 4000;
  while (clock64() < begin) {
  }
  const auto tile_of = [&](int step) { return (static_cast<int>(blockIdx.x) * 7 + step) % tiles; };
  const auto start = [&](int step) {
    const unsigned full = barriers + static_cast<unsigned>(step % 2 * ptx::kBarrierBytes);
    const unsigned buffer = buffers + static_cast<unsigned>(step % 2 * Panels::kBytes);
    if (threadIdx.x == 0) ptx::arrive_expecting(full, Panels::kBytes);
    __syncwarp();
#pragma unroll 1
    for (int row = static_cast<int>(threadIdx.x) * box_rows; row < 128; row += 32 * box_rows) {
      for (int panel = 0; panel < Panels::kCount; ++panel) {
        ptx::load_box(
            buffer + static_cast<unsigned>(panel * Panels::kPanelBytes + row * Panels::kRowBytes),
            &map, full, {panel * Panels::kPanelColumns, tile_of(step) * 128 + row, 0, 0});
      }
    }
  };
  long long first = 0;
  start(0);
  start(1);
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    ptx::wait(barriers + static_cast<unsigned>(step % 2 * ptx::kBarrierBytes),
              static_cast<unsigned>(step / 2 & 1));
    if (step == 0) first = clock64();
    if (step + 2 < steps) start(step + 2);
  }
  const long long end = clock64();
  unsigned differ = 0;
  for (int step = steps - 2; step < steps; ++step) {
    for (unsigned i = threadIdx.x; i < 128 * 64; i += 32) {
      const unsigned chunk = Panels::chunk(i / 64, i % 64 / 4) + i % 4 * 4;
      differ += ptx::load_shared(buffers + static_cast<unsigned>(step % 2 * Panels::kBytes) +
                                 chunk) != truth[tile_of(step) * 128 * 64 + static_cast<int>(i)];
    }
  }
  atomicAdd(wrong + blockIdx.x, differ);
  if (threadIdx.x == 0) {
    clocks[2 * blockIdx.x] = first - begin;
    clocks[2 * blockIdx.x + 1] = end - first;
  }
}

}  // namespace annulus::kernels
