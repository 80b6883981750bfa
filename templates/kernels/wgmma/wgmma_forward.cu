// Block-sparse attention forward for sm_90a: tensor-map copies, warpgroup products, persistent
// CTAs. One CTA holds a producer warp and kConsumers warpgroups of 64 rows each. The producer walks
// the column tiles of the CTA's work, kColumns keys a step, as far ahead as kStages buffers of K
// and of V let it, and into the next work while this one's output leaves. Consumers share K and V
// and nothing else: their 64 rows are consecutive rows of one head, or with kPackedHeads the same
// rows of as many heads that share K and V.
//
// A step of a consumer is ordered so that the softmax of one step runs beside the products of the
// previous one, and consumers take turns at starting products so that one computes probabilities
// while another multiplies:
//
//   start S(j) = Q K(j)^T     start O += P(j-1) V(j-1)     wait for S(j)
//   P(j) = probabilities of S(j)     wait for O                   rescale O
//
// CTAs of a cluster work on heads that share K and V or on rows that see the same keys. Each copies
// a part of every step's K and V, into the shared memory of all of them, so that L2 is read once;
// a buffer is free when the consumers of all of them have given it back.
//
// Elements of 8 bits have scales (kernels/wgmma/scales.cuh), and their V is turned round between
// the copies and the products by the producer's other warps (kernels/wgmma/transposer.cuh). Where
// there is room, their sums are put by in fp32 now and then
// (kernels/wgmma/promoted_accumulator.cuh); elsewhere a step is ordered otherwise, because P V
// comes in parts (kernels/wgmma/parts.cuh):
//
//   O = O rescaled + P(j-1) V(j-1), part by part     start S(j) = Q K(j)^T     wait for S(j)
//   P(j) = probabilities of S(j), while the other consumer multiplies
//
// Shared memory (each part a multiple of 1024 bytes): Q per consumer, K and V per stage, V turned
// round per stage where its elements have 8 bits, O per consumer unless it leaves through Q, what
// consumers put by, barriers.
//
// Shape gives the constants, Mask the visibility, ScoreMod a score expression; README.md lists what
// they must define.

#include "kernels/wgmma/consumer.cuh"
#include "kernels/wgmma/producer.cuh"
#include "kernels/wgmma/transposer.cuh"
#include "ptx/warpgroup.cuh"

namespace annulus::kernels {

template <typename Shape>
__device__ __forceinline__ void sync_all() {
  if constexpr (Shape::kCluster > 1) {
    ptx::sync_cluster();
  } else {
    __syncthreads();
  }
}

// The first copies find the maps in the cache of their descriptors. A map that the host has not
// made, because nothing will be copied by it, is all zero and left alone.
template <typename Shape>
__device__ __forceinline__ void prefetch_maps(const AttentionParams& params,
                                              const TensorMaps& maps) {
  ptx::prefetch_map(&maps.q);
  if (params.seq_k > 0) {
    ptx::prefetch_map(&maps.k);
    ptx::prefetch_map(&maps.v);
  }
  if constexpr (!Shape::kCarryOut) ptx::prefetch_map(&maps.o);
}

// All of the kernel.
template <typename Shape, typename Mask, typename ScoreMod>
__device__ __forceinline__ void forward(const AttentionParams& params, const TensorMaps& maps,
                                        const WorkParams& work) {
  using Layout = WgmmaLayout<Shape>;
  static_assert(Shape::kConsumers >= 1 && Shape::kConsumers <= 3,
                "one to three warpgroups compute");
  static_assert(Shape::kColumns % 16 == 0 && Shape::kColumns <= 256, "keys of a step");
  static_assert(Shape::kBlocks * 8 <= Shape::kColumns, "entries of the list that make a step");
  static_assert(Shape::kCluster == 1 || Shape::kCluster == 2, "CTAs that share K and V");
  // Who gives a buffer back for every CTA that copies into it.
  constexpr int kReaders = 4 * Shape::kConsumers * Shape::kCluster;
  static_assert(!ptx::kTwoResident || Shape::kConsumers == 1, "two resident CTAs");
  // What the producer keeps of its registers, and what each consumer has then.
  constexpr int kProducerRegisters = ptx::kTwoResident        ? 24
                                     : Shape::kConsumers == 1 ? 56
                                     : Shape::kConsumers == 2 ? 24
                                                              : 32;
  constexpr int kConsumerRegisters = ptx::kTwoResident        ? 232
                                     : Shape::kConsumers == 1 ? 256
                                     : Shape::kConsumers == 2 ? 240
                                                              : 160;

  extern __shared__ __align__(1024) unsigned char shared_memory[];
  const unsigned shared = ptx::shared_address(shared_memory);
  if (threadIdx.x == 0) {
    prefetch_maps<Shape>(params, maps);
    ptx::init_barrier(shared + Layout::kQueriesFull, 1);
    ptx::init_barrier(shared + Layout::kQueriesFree, 4 * Shape::kConsumers);
    for (int stage = 0; stage < Shape::kStages; ++stage) {
      const unsigned barriers =
          shared + Layout::kStageBarriers + stage * Layout::kStageBarrierBytes;
      ptx::init_barrier(barriers, 1);
      ptx::init_barrier(barriers + ptx::kBarrierBytes, kReaders);
      ptx::init_barrier(barriers + 2 * ptx::kBarrierBytes, 1);
      ptx::init_barrier(barriers + 3 * ptx::kBarrierBytes,
                        Layout::kTransposes ? kTransposers * Shape::kCluster : kReaders);
      if constexpr (Layout::kTransposes) {
        ptx::init_barrier(barriers + Layout::kOperandFull * ptx::kBarrierBytes, kTransposers);
        ptx::init_barrier(barriers + Layout::kOperandFree * ptx::kBarrierBytes,
                          4 * Shape::kConsumers);
      }
    }
    if constexpr (ptx::kDrawWork) {
      ptx::init_barrier(shared + Layout::kWorkFull, 1);
      ptx::init_barrier(shared + Layout::kWorkFree,
                        4 * Shape::kConsumers + (Layout::kTransposes ? kTransposers : 0));
    }
    ptx::publish_barriers();
  }
  sync_all<Shape>();
  const unsigned warpgroup = ptx::uniform(threadIdx.x / 128);
  if (warpgroup == 0) {
    ptx::give_registers<kProducerRegisters>();
    const unsigned warp = ptx::uniform(threadIdx.x / 32);
    if (warp == 0) {
      if (ptx::elect()) produce<Shape>(params, maps, work, shared);
    } else if constexpr (Layout::kTransposes) {
      transpose_values<Shape>(params, work, shared, warp - 1);
    }
  } else {
    ptx::take_registers<kConsumerRegisters>();
    Consumer<Shape, Mask, ScoreMod>(params, maps, work, shared, warpgroup - 1).run();
  }
  // The other CTA may still give buffers back here, or copy into them.
  if constexpr (Shape::kCluster > 1) ptx::sync_cluster();
}

template <typename Shape, typename Mask, typename ScoreMod = tile::NoScoreMod>
__global__ void __launch_bounds__((Shape::kConsumers + 1) * 128, ptx::kTwoResident ? 2 : 1)
    wgmma_forward(const __grid_constant__ AttentionParams params,
                  const __grid_constant__ TensorMaps maps,
                  const __grid_constant__ WorkParams work) {
  forward<Shape, Mask, ScoreMod>(params, maps, work);
}

// In clusters, whose CTAs share what is copied of K and V.
template <typename Shape, typename Mask, typename ScoreMod = tile::NoScoreMod>
__global__ void __cluster_dims__(Shape::kCluster)
    __launch_bounds__((Shape::kConsumers + 1) * 128, 1)
        wgmma_cluster_forward(const __grid_constant__ AttentionParams params,
                              const __grid_constant__ TensorMaps maps,
                              const __grid_constant__ WorkParams work) {
  forward<Shape, Mask, ScoreMod>(params, maps, work);
}

}  // namespace annulus::kernels
