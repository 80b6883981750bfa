// Block-sparse attention forward for sm_90a: tensor-map copies, warpgroup products, persistent
// CTAs. One CTA has a producer warp and kConsumers warpgroups of 64 rows each. The producer loads
// the column tiles of the CTA's work, kColumns keys in each step. It runs ahead as far as kStages
// buffers of K and of V allow, and begins the next work while the output of this work is stored.
// Consumers share only K and V. Their 64 rows are consecutive rows of one head; with kPackedHeads
// they are the same rows of kConsumers heads that share K and V.
//
// In a consumer, the softmax of one step overlaps with the product with V of the previous step.
// Consumers take turns at starting products (ping-pong): one computes probabilities while another
// multiplies.
//
//   start S(j) = Q K(j)^T     start O += P(j-1) V(j-1)     wait for S(j)
//   P(j) = probabilities of S(j)     wait for O                   rescale O
//
// CTAs of a cluster compute heads that share K and V, or rows that see the same keys. Each CTA
// copies a part of every step's K and V into the shared memory of all of them (multicast), so L2 is
// read once. A buffer is free when the consumers of all CTAs have released it.
//
// Elements of 8 bits have scales (kernels/wgmma/scales.cuh), and the producer's other three warps
// transpose their V between the copies and the products (kernels/wgmma/transposer.cuh). If shared
// memory is large enough, their output is promoted to fp32 every few steps
// (kernels/wgmma/promoted_accumulator.cuh). Otherwise P V is computed in parts
// (kernels/wgmma/parts.cuh), with another order of a step:
//
//   O = O rescaled + P(j-1) V(j-1), part by part     start S(j) = Q K(j)^T     wait for S(j)
//   P(j) = probabilities of S(j), while the other consumer multiplies
//
// Shared memory has these parts in this order, all but the last multiples of 1024 bytes: Q of each
// consumer; K of each stage; V of each stage; transposed V of each stage, for 8-bit elements; O of
// each consumer, unless it is staged in the rows of Q; the promoted output of each consumer;
// barriers. WgmmaLayout (kernels/wgmma/work.cuh) has their addresses.
//
// Shape has the constants, Mask the visibility, and ScoreMod a score expression. README.md lists
// what they must define.

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

// Prefetches the tensor maps into the descriptor cache, for the first copies. The host sets a map
// to zero if nothing is copied with it (no keys, or no O); such a map must not be prefetched.
template <typename Shape>
__device__ __forceinline__ void prefetch_maps(const AttentionParams& params,
                                              const TensorMaps& maps) {
  ptx::prefetch_map(&maps.q);
  if (params.key_count > 0) {
    ptx::prefetch_map(&maps.k);
    ptx::prefetch_map(&maps.v);
  }
  if (!Shape::kCarryOut || !tile::given<Shape>(params.acc_out)) ptx::prefetch_map(&maps.o);
}

// The whole kernel, for both entries below. Thread 0 initialises the barriers; then each warp
// starts its role: warp 0 of the first warpgroup produces, its warps 1 to 3 transpose V of 8-bit
// elements or end, and the other warpgroups are consumers.
template <typename Shape, typename Mask, typename ScoreMod>
__device__ __forceinline__ void forward(const AttentionParams& params, const TensorMaps& maps,
                                        const WorkParams& work) {
  using Layout = WgmmaLayout<Shape>;
  static_assert(Shape::kConsumers >= 1 && Shape::kConsumers <= 3,
                "one to three warpgroups compute");
  static_assert(Shape::kColumns % 16 == 0 && Shape::kColumns <= 256, "keys of a step");
  static_assert(Shape::kBlocks * 8 <= Shape::kColumns, "entries of the list that make a step");
  static_assert(Shape::kCluster == 1 || Shape::kCluster == 2, "CTAs that share K and V");
  // A buffer is released by each of the four warps of every consumer in the cluster, because all
  // CTAs of the cluster copy into it.
  constexpr int kReaders = 4 * Shape::kConsumers * Shape::kCluster;
  static_assert(Shape::kResident == 1 || (Shape::kResident == 2 && Shape::kConsumers == 1),
                "two resident CTAs have one consumer each");
  // Registers of a thread. A CTA starts with the same number in all warps: the multiple of 8 that
  // fits 65536 for (kConsumers + 1) * 128 threads (32768 with two resident CTAs), which is 256, 168
  // or 128. The producer's warpgroup gives up all but kProducerRegisters, and consumers take
  // kConsumerRegisters. Consumers can only take registers of the CTA that another warpgroup gave
  // up. With two consumers 3 * 168 = 504 = 24 + 2 * 240; if the producer kept 32, one consumer
  // would wait without end. 40 + 2 * 232 is for warps that transpose. With three consumers 4 * 128
  // = 512 = 32 + 3 * 160; with two resident CTAs 2 * 128 = 24 + 232. So consumers have the most
  // registers that are possible. A single consumer has the maximum of 256 from the start, and takes
  // nothing of what its producer gives up. FlashAttention-3 has the same numbers.
  constexpr int kProducerRegisters = Shape::kResident == 2    ? 24
                                     : Shape::kConsumers == 1 ? 56
                                     : Shape::kConsumers == 2 ? (Layout::kTransposes ? 40 : 24)
                                                              : 32;
  constexpr int kConsumerRegisters = Shape::kResident == 2    ? 232
                                     : Shape::kConsumers == 1 ? 256
                                     : Shape::kConsumers == 2 ? (Layout::kTransposes ? 232 : 240)
                                                              : 160;

  extern __shared__ __align__(1024) unsigned char shared_memory[];
  const unsigned shared = ptx::shared_address(shared_memory);
  if (threadIdx.x == 0) {
    prefetch_maps<Shape>(params, maps);
    // A "full" barrier counts one arrival, the producer's, and the bytes of its copies. A "free"
    // barrier counts one arrival for each warp that reads the buffer. With 8-bit elements the
    // transposers read V as it was copied, and the consumers read what the transposers write.
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
    if constexpr (Shape::kDrawsWork) {
      ptx::init_barrier(shared + Layout::kWorkFull, 1);
      ptx::init_barrier(shared + Layout::kWorkFree, work_readers<Shape>());
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
  // The other CTA may still arrive at this CTA's barriers or copy into its buffers, so no CTA of a
  // cluster may end before the others have finished.
  if constexpr (Shape::kCluster > 1) ptx::sync_cluster();
}

template <typename Shape, typename Mask, typename ScoreMod = tile::NoScoreMod>
__global__ void __launch_bounds__((Shape::kConsumers + 1) * 128, Shape::kResident)
    wgmma_forward(const __grid_constant__ AttentionParams params,
                  const __grid_constant__ TensorMaps maps,
                  const __grid_constant__ WorkParams work) {
  forward<Shape, Mask, ScoreMod>(params, maps, work);
}

// The kernel above, for clusters whose CTAs share the copies of K and V. The size of a cluster is
// an attribute of the entry, so clusters need an entry of their own.
template <typename Shape, typename Mask, typename ScoreMod = tile::NoScoreMod>
__global__ void __cluster_dims__(Shape::kCluster)
    __launch_bounds__((Shape::kConsumers + 1) * 128, 1)
        wgmma_cluster_forward(const __grid_constant__ AttentionParams params,
                              const __grid_constant__ TensorMaps maps,
                              const __grid_constant__ WorkParams work) {
  forward<Shape, Mask, ScoreMod>(params, maps, work);
}

}  // namespace annulus::kernels
