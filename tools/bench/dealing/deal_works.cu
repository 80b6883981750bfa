// The kernels of the wgmma families, with waiting in place of attention. Producer, consumers and
// transposers deal and take works as in the kernels that ship (kernels/wgmma/tile_scheduler.cuh,
// find_work), and steps pass through a ring of stages. One warp of a cluster waits for the cycles
// that the host has computed.
//
// In the place of Q there are floats: the cycles of a work, of a tile and of one poll, and then a
// factor of slowness for each cluster. In the place of LSE, which is all 0 at first, the kernel
// writes the cycles that each cluster has waited, and then 1 for each tile row of each head that a
// cluster has taken.

#include "kernels/wgmma/wgmma_forward.cu"

namespace annulus::kernels {

// Waits on the simulator's virtual clock. A load whose value another CTA's store could change
// counts as 200 instructions there.
class Waiter {
 public:
  __device__ __forceinline__ explicit Waiter(const float* costs) : costs_(costs) {}
  __device__ __forceinline__ void wait(float cycles) {
    cycles_ += cycles;
    while (waited_ < cycles_) {
      *static_cast<const volatile float*>(costs_);
      waited_ += costs_[2];
    }
  }
  __device__ __forceinline__ float cycles() const { return cycles_; }

 private:
  const float* const costs_;
  float cycles_ = 0;
  float waited_ = 0;
};

template <typename Shape>
__device__ __forceinline__ unsigned stage_barriers(unsigned shared, unsigned stage) {
  using Layout = WgmmaLayout<Shape>;
  return shared + Layout::kStageBarriers + stage * Layout::kStageBarrierBytes;
}

template <typename Shape>
__device__ __forceinline__ void produce_steps(const AttentionParams& params, const WorkParams& work,
                                              unsigned shared) {
  RingPlace<Shape::kStages> place;
  TileSchedulerProducer<Shape> scheduler(shared, work);
#pragma unroll 1
  for (int index = scheduler.first(); index < work.count; index = scheduler.next(index)) {
    const int steps = steps_of<Shape::kBlocks>(find_work<Shape>(params, work, index).row.count);
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      const unsigned barriers = stage_barriers<Shape>(shared, place.stage);
      ptx::wait(barriers + ptx::kBarrierBytes, place.parity ^ 1);
      ptx::arrive(barriers);
      place.advance();
    }
  }
}

// All consumer warps and transposers take every number. One warp of the CTA takes the steps, and
// waits for their cycles if the CTA has rank 0 in its cluster.
template <typename Shape>
__device__ __forceinline__ void consume_steps(const AttentionParams& params, const WorkParams& work,
                                              unsigned shared, bool takes_steps) {
  const float* const costs = static_cast<const float*>(params.q);
  const int cluster = cluster_number<Shape>();
  const bool counts = takes_steps && rank_in_cluster<Shape>() == 0;
  const float slowness = costs[3 + cluster];
  int* const taken_rows = reinterpret_cast<int*>(params.lse) + cluster_count<Shape>();
  RingPlace<Shape::kStages> place;
  Waiter waiter(costs);
  TileSchedulerConsumer<Shape> scheduler(shared, work);
#pragma unroll 1
  for (int index = scheduler.first(); index < work.count; index = scheduler.next(index)) {
    if (!takes_steps) continue;
    const auto now = find_work<Shape>(params, work, index);
    const int tiles = now.row.count;
    if (counts) {
      waiter.wait(costs[0] * slowness);
      if (threadIdx.x % 32 == 0) {
        const int head = now.batch * params.heads + now.head;
        atomicAdd(taken_rows + head * params.tiles.row_tiles + now.row.row, 1);
      }
    }
#pragma unroll 1
    for (int tile = 0; tile < tiles; tile += Shape::kBlocks) {
      const unsigned barriers = stage_barriers<Shape>(shared, place.stage);
      ptx::wait(barriers, place.parity);
      const int left = tiles - tile;
      const int taken = left < Shape::kBlocks ? left : Shape::kBlocks;
      if (counts) waiter.wait(static_cast<float>(taken) * costs[1] * slowness);
      if (threadIdx.x % 32 == 0) ptx::arrive(barriers + ptx::kBarrierBytes);
      place.advance();
    }
  }
  if (counts && threadIdx.x % 32 == 0) params.lse[cluster] = waiter.cycles();
}

template <typename Shape>
__device__ __forceinline__ void deal(const AttentionParams& params, const WorkParams& work) {
  using Layout = WgmmaLayout<Shape>;
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  const unsigned shared = ptx::shared_address(shared_memory);
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < Shape::kStages; ++stage) {
      ptx::init_barrier(stage_barriers<Shape>(shared, stage), 1);
      ptx::init_barrier(stage_barriers<Shape>(shared, stage) + ptx::kBarrierBytes, 1);
    }
    if constexpr (Shape::kDrawsWork) {
      ptx::init_barrier(shared + Layout::kWorkFull, 1);
      ptx::init_barrier(shared + Layout::kWorkFree, work_readers<Shape>());
    }
    ptx::publish_barriers();
  }
  sync_all<Shape>();
  const unsigned warp = ptx::uniform(threadIdx.x / 32);
  if (warp == 0) {
    if (ptx::elect()) produce_steps<Shape>(params, work, shared);
  } else if (warp >= 4 || Layout::kTransposes) {
    consume_steps<Shape>(params, work, shared, warp == 4);
  }
  if constexpr (Shape::kCluster > 1) ptx::sync_cluster();
}

template <typename Shape, typename Mask, typename ScoreMod = tile::NoScoreMod>
__global__ void __launch_bounds__((Shape::kConsumers + 1) * 128)
    deal_works(const __grid_constant__ AttentionParams params, const __grid_constant__ TensorMaps,
               const __grid_constant__ WorkParams work) {
  deal<Shape>(params, work);
}

template <typename Shape, typename Mask, typename ScoreMod = tile::NoScoreMod>
__global__ void __cluster_dims__(Shape::kCluster) __launch_bounds__((Shape::kConsumers + 1) * 128)
    deal_works_to_clusters(const __grid_constant__ AttentionParams params,
                           const __grid_constant__ TensorMaps,
                           const __grid_constant__ WorkParams work) {
  deal<Shape>(params, work);
}

}  // namespace annulus::kernels
