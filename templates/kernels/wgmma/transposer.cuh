#ifndef ANNULUS_KERNELS_WGMMA_TRANSPOSER_CUH_
#define ANNULUS_KERNELS_WGMMA_TRANSPOSER_CUH_

// The part of wgmma_forward of the producer's other three warps, for 8-bit elements: they turn each
// tile of V round (tile/transpose.cuh), from the buffer that the copies fill to the one that the
// products read.

#include "kernels/wgmma/tile_scheduler.cuh"
#include "kernels/wgmma/work.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/tensor_copy.cuh"
#include "tile/transpose.cuh"

namespace annulus::kernels {

// By all lanes of warp `warp` of kTransposers.
template <typename Shape>
__device__ __forceinline__ void transpose_values(const AttentionParams& params,
                                                 const WorkParams& work, unsigned shared,
                                                 unsigned warp) {
  using Layout = WgmmaLayout<Shape>;
  const unsigned lane = threadIdx.x % 32;
  RingPlace<Shape::kStages> place;
  TileSchedulerConsumer<Shape> scheduler(shared);
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
      // The products read what all lanes wrote, by way of the asynchronous proxy.
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
