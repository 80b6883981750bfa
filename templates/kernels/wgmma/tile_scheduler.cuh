#ifndef ANNULUS_KERNELS_WGMMA_TILE_SCHEDULER_CUH_
#define ANNULUS_KERNELS_WGMMA_TILE_SCHEDULER_CUH_

// The tile scheduler: which works a CTA, or the CTAs of a cluster, compute. The first work has the
// cluster's number. The next works are counted off (x, x + clusters, x + 2 clusters, ...), which
// all warps do by themselves. With kDrawsWork, the producer draws them from a counter in global
// memory (WorkParams::next) instead, so the cluster that is free first takes the longest work that
// is left. The other warps read the work's index from a word of shared memory, which has a full and
// a free barrier. Works may be drawn in another order than the order of their indices. That order
// is a table (WorkParams::order), because the producer of a cluster has no registers to compute it.
// The works and the order of their sums are the same in each case, and so are the bits of the
// results.
//
// In a cluster, the producer of rank 0 draws for all CTAs, and stores the number into the shared
// memory of each CTA asynchronously (st.async), which completes the CTA's own full barrier. The
// readers of all CTAs arrive at the free barrier of rank 0.

#include "kernels/wgmma/work.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/memory.cuh"

namespace annulus::kernels {

// The number of clusters in the grid, and the number of the calling CTA's cluster.
template <typename Shape>
__device__ __forceinline__ int cluster_count() {
  return static_cast<int>(gridDim.x) / Shape::kCluster;
}
template <typename Shape>
__device__ __forceinline__ int cluster_number() {
  return static_cast<int>(blockIdx.x) / Shape::kCluster;
}
template <typename Shape>
__device__ __forceinline__ int first_work(const WorkParams& work) {
  if constexpr (Shape::kDrawsWork) return in_order(work, cluster_number<Shape>());
  return cluster_number<Shape>();
}

// The arrivals that free the word: every warp that reads it, and the producers of other CTAs.
template <typename Shape>
__device__ __forceinline__ constexpr int work_readers() {
  return Shape::kCluster *
             (4 * Shape::kConsumers + (WgmmaLayout<Shape>::kTransposes ? kTransposers : 0)) +
         Shape::kCluster - 1;
}

// The drawn number. Waits until the word is full.
template <typename Shape>
__device__ __forceinline__ int drawn_work(unsigned shared, unsigned parity) {
  using Layout = WgmmaLayout<Shape>;
  ptx::wait(shared + Layout::kWorkFull, parity);
  return static_cast<int>(ptx::load_shared(shared + Layout::kWorkDrawn));
}

// Releases the word after it has been read. One thread of each reader calls it.
template <typename Shape>
__device__ __forceinline__ void release_drawn(unsigned shared) {
  using Layout = WgmmaLayout<Shape>;
  if constexpr (Shape::kCluster > 1) {
    ptx::arrive_at(shared + Layout::kWorkFree, 0);
  } else {
    ptx::arrive(shared + Layout::kWorkFree);
  }
}

// The functions of the producer, for one thread.
template <typename Shape>
class TileSchedulerProducer {
  using Layout = WgmmaLayout<Shape>;

 public:
  __device__ __forceinline__ TileSchedulerProducer(unsigned shared, const WorkParams& work)
      : shared_(shared), work_(work) {}
  __device__ __forceinline__ int first() { return first_work<Shape>(work_); }
  __device__ __forceinline__ int next(int index) {
    if constexpr (Shape::kDrawsWork) return draw();
    return index + cluster_count<Shape>();
  }

 private:
  __device__ __forceinline__ int draw() {
    parity_ ^= 1;
    [[maybe_unused]] constexpr int kWordBytes = 4;
    if constexpr (Shape::kCluster > 1) {
      if (rank_in_cluster<Shape>() != 0) {
        ptx::arrive_expecting(shared_ + Layout::kWorkFull, kWordBytes);
        const int index = drawn_work<Shape>(shared_, parity_ ^ 1);
        release_drawn<Shape>(shared_);
        return index;
      }
    }
    ptx::wait(shared_ + Layout::kWorkFree, parity_);
    const int index = in_order(work_, static_cast<int>(atomicAdd(work_.next, 1u)));
    if constexpr (Shape::kCluster > 1) {
      // Readers have waited for the last number, so the barrier is in its next phase.
      ptx::arrive_expecting(shared_ + Layout::kWorkFull, kWordBytes);
#pragma unroll
      for (unsigned rank = 0; rank < Shape::kCluster; ++rank) {
        ptx::store_at(shared_ + Layout::kWorkDrawn, shared_ + Layout::kWorkFull, rank,
                      static_cast<unsigned>(index));
      }
    } else {
      ptx::store_shared(shared_ + Layout::kWorkDrawn, static_cast<unsigned>(index));
      ptx::arrive(shared_ + Layout::kWorkFull);
    }
    return index;
  }

  const unsigned shared_;
  const WorkParams& work_;
  unsigned parity_ = 0;
};

// The functions of the other warps (consumers and transposers), for all lanes of a warp.
template <typename Shape>
class TileSchedulerConsumer {
 public:
  __device__ __forceinline__ TileSchedulerConsumer(unsigned shared, const WorkParams& work)
      : shared_(shared), work_(work) {}
  __device__ __forceinline__ int first() { return first_work<Shape>(work_); }
  __device__ __forceinline__ int next(int index) {
    if constexpr (Shape::kDrawsWork) return take();
    return index + cluster_count<Shape>();
  }

 private:
  __device__ __forceinline__ int take() {
    const int index = drawn_work<Shape>(shared_, parity_);
    parity_ ^= 1;
    // After this, all lanes have read the word.
    __syncwarp();
    if (threadIdx.x % 32 == 0) release_drawn<Shape>(shared_);
    return index;
  }

  const unsigned shared_;
  const WorkParams& work_;
  unsigned parity_ = 0;
};

}  // namespace annulus::kernels

#endif  // ANNULUS_KERNELS_WGMMA_TILE_SCHEDULER_CUH_
