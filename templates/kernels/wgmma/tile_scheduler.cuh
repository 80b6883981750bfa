#ifndef ANNULUS_KERNELS_WGMMA_TILE_SCHEDULER_CUH_
#define ANNULUS_KERNELS_WGMMA_TILE_SCHEDULER_CUH_

// Which works a CTA computes: x, x + clusters, x + 2 clusters, ... of cluster x. With the variant
// ptx::kDrawWork the producer draws them from a counter of the module instead, and hands each to
// the other warps by way of shared memory: a word, and two barriers that say whether it is there.

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

// The producer's part, by one thread.
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
    // Every CTA draws once in vain. The last one leaves the counter as the next launch wants it.
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

// The part of every other warp that works, by all its lanes.
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
