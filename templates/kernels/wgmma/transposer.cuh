#ifndef ANNULUS_KERNELS_WGMMA_TRANSPOSER_CUH_
#define ANNULUS_KERNELS_WGMMA_TRANSPOSER_CUH_

// The transposers of wgmma_forward, for 8-bit elements: the other three warps of the producer's
// warpgroup transpose each tile of V (tile/transpose.cuh) from the buffer that the copies fill to
// the buffer that the products read.

#include "kernels/wgmma/tile_scheduler.cuh"
#include "kernels/wgmma/work.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/tensor_copy.cuh"
#include "tile/transpose.cuh"

namespace annulus::kernels {

// All work of warp `warp` of kTransposers, by all lanes of the warp. It computes the same works and
// steps as the producer. A segment without a row has no tiles (find_tile_row sets count to 0), and
// neither does work without steps, so no condition is needed for either.
template <typename Shape>
__device__ __forceinline__ void transpose_values(const AttentionParams& params,
                                                 const WorkParams& work, unsigned shared,
                                                 unsigned warp) {
  using Layout = WgmmaLayout<Shape>;
  const unsigned lane = threadIdx.x % 32;
  RingPlace<Shape::kStages> place;
  TileSchedulerConsumer<Shape> scheduler(shared, work);
  for (int index = scheduler.first(); index < work.count; index = scheduler.next(index)) {
    const int steps = steps_of<Shape::kBlocks>(find_work<Shape>(params, work, index).row.count);
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      const unsigned barriers =
          shared + Layout::kStageBarriers + place.stage * Layout::kStageBarrierBytes;
      ptx::wait(barriers + 2 * ptx::kBarrierBytes, place.parity);
      ptx::wait(barriers + Layout::kOperandFree * ptx::kBarrierBytes, place.parity ^ 1);
      tile::transpose_bytes<Shape::kColumns, Shape::kDimV, kTransposers>(
          shared + Layout::kValues + place.stage * Layout::Values::kBytes,
          shared + Layout::kOperands + place.stage * Layout::kOperandBytes, warp, lane);
      // The products read through the asynchronous proxy, so each lane fences what it wrote before
      // the warp arrives. The buffer of the copies is released to all CTAs of the cluster, because
      // all of them copy into it. The result belongs to one CTA.
      ptx::fence_shared_writes();
      __syncwarp();
      arrive_everywhere<Shape>(barriers + 3 * ptx::kBarrierBytes, lane);
      if (lane == 0) ptx::arrive(barriers + Layout::kOperandFull * ptx::kBarrierBytes);
      place.advance();
    }
  }
}

}  // namespace annulus::kernels

#endif  // ANNULUS_KERNELS_WGMMA_TRANSPOSER_CUH_
