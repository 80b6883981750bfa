// Copies of single boxes, and where shared memory begins.

#include "params/wgmma_params.h"
#include "ptx/cluster.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/memory.cuh"
#include "ptx/stmatrix.cuh"
#include "ptx/tensor_copy.cuh"
#include "ptx/warpgroup.cuh"
#include "tile/panel.cuh"

namespace annulus::kernels {

// out[CTA] = how far the dynamic shared memory starts behind a multiple of 1024. Its last word is
// written and read, which shows that all of it exists.
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

// out = the box of 64 rows at (row, head, batch), in the order that it has in shared memory.
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

// Stores 64 x 128 elements whose bits are 128 row + column + 1 in boxes of 64 columns, waits until
// they have been read, overwrites them in shared memory and exits.
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

}  // namespace annulus::kernels
