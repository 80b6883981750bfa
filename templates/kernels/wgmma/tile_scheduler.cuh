#ifndef ANNULUS_KERNELS_WGMMA_TILE_SCHEDULER_CUH_
#define ANNULUS_KERNELS_WGMMA_TILE_SCHEDULER_CUH_

// The tile scheduler: cluster x computes works x, x + clusters, x + 2 clusters, ... (static). With
// the variant ptx::kDrawWork the producer draws works from a counter of the module instead and
// hands each index to the other warps through a word of shared memory with a full and a free
// barrier. All roles of a CTA have to take the same works in the same order.

#include "kernels/wgmma/work.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/memory.cuh"

namespace annulus::kernels {

template <typename Shape>
__device__ __forceinline__ int first_work() {
  return static_cast<int>(blockIdx.x) / Shape::kCluster;
}
template <typename Shape>
__device__ __forceinline__ int work_stride() {
  return static_cast<int>(gridDim.x) / Shape::kCluster;
}

#if ANNULUS_DRAW_WORK
__device__ unsigned drawn_works;  // 0 between launches
#endif

// The producer's side, by one thread.
template <typename Shape>
class TileSchedulerProducer {
  using Layout = WgmmaLayout<Shape>;

 public:
  __device__ __forceinline__ TileSchedulerProducer(unsigned shared, int count)
      : shared_(shared), count_(count) {
    static_assert(!ptx::kDrawWork || Shape::kCluster == 1, "CTAs of a cluster share their works");
  }
  __device__ __forceinline__ int first() {
    if constexpr (ptx::kDrawWork) return draw();
    return first_work<Shape>();
  }
  __device__ __forceinline__ int next(int index) {
    if constexpr (ptx::kDrawWork) return draw();
    return index + work_stride<Shape>();
  }

 private:
  __device__ __forceinline__ int draw() {
    ptx::wait(shared_ + Layout::kWorkFree, parity_ ^ 1);
    parity_ ^= 1;
    unsigned index = 0;
#if ANNULUS_DRAW_WORK
    index = atomicAdd(&drawn_works, 1u);
    // Every CTA draws once more than it gets work, count + CTAs draws in all. The last draw resets
    // the counter for the next launch.
    if (index == static_cast<unsigned>(count_) + gridDim.x - 1) atomicExch(&drawn_works, 0u);
#endif
    ptx::store_shared(shared_ + Layout::kWorkDrawn, index);
    ptx::arrive(shared_ + Layout::kWorkFull);
    return static_cast<int>(index);
  }

  const unsigned shared_;
  const int count_;
  unsigned parity_ = 0;
};

// The side of the other warps (consumers and transposers), by all lanes of a warp.
template <typename Shape>
class TileSchedulerConsumer {
  using Layout = WgmmaLayout<Shape>;

 public:
  __device__ __forceinline__ explicit TileSchedulerConsumer(unsigned shared) : shared_(shared) {}
  __device__ __forceinline__ int first() {
    if constexpr (ptx::kDrawWork) return take();
    return first_work<Shape>();
  }
  __device__ __forceinline__ int next(int index) {
    if constexpr (ptx::kDrawWork) return take();
    return index + work_stride<Shape>();
  }

 private:
  __device__ __forceinline__ int take() {
    ptx::wait(shared_ + Layout::kWorkFull, parity_);
    parity_ ^= 1;
    const unsigned index = ptx::load_shared(shared_ + Layout::kWorkDrawn);
    __syncwarp();
    if (threadIdx.x % 32 == 0) ptx::arrive(shared_ + Layout::kWorkFree);
    return static_cast<int>(index);
  }

  const unsigned shared_;
  unsigned parity_ = 0;
};

}  // namespace annulus::kernels

#endif  // ANNULUS_KERNELS_WGMMA_TILE_SCHEDULER_CUH_
