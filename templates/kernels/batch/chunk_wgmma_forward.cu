// Attention of many queries, for batches of requests whose lengths and pages are in device memory
// (params/batch_params.h), for sm_90a: chunks of prompts, by tensor-map copies and warpgroup
// products. It computes like wgmma_forward. A CTA has M rows of (query, head of the group); a
// producer warp copies the keys that they see, N in each step, from any pages
// (kernels/batch/chunk_producer.cuh), and warpgroups of 64 rows each take turns at multiplying and
// at computing probabilities (kernels/batch/chunk_consumer.cuh).
//
// CTAs are persistent: CTA i of n takes works i, i + n, ... of the list of prepare_batch, in which
// the longest works come first. The producer begins the next work while the consumers finish one.
//
// Shared memory: Q [M][Dqk], then kStages times K [N][Dqk], then kStages times V [N][Dv], all in
// panels; then barriers, and the data that the producer writes for the consumers
// (kernels/batch/chunk_layout.cuh).
//
// Shape has the constants, Mask the visibility, and ScoreMod a score expression. README.md lists
// what they must define.

#include "kernels/batch/chunk_consumer.cuh"
#include "kernels/batch/chunk_producer.cuh"
#include "ptx/warpgroup.cuh"

namespace annulus::kernels {

// Fills the rows of Q's buffer after the last query with zeros, because no copy writes them.
template <typename Shape>
__device__ __forceinline__ void clear_rest(const BatchParams& params, unsigned shared) {
  using Queries = typename ChunkLayout<Shape>::Queries;
  constexpr int kChunks = Queries::kCount * Queries::kChunks;
  constexpr int kThreads = 32 * Shape::kWarps + 128;
  const int used = Shape::kTileRows / params.tile_heads * params.tile_heads;
  for (int i = static_cast<int>(threadIdx.x); i < (Shape::kTileRows - used) * kChunks;
       i += kThreads) {
    ptx::store_shared_16(shared + ChunkLayout<Shape>::kQueries +
                             Queries::chunk(static_cast<unsigned>(used + i / kChunks),
                                            static_cast<unsigned>(i % kChunks)),
                         {0, 0, 0, 0});
  }
  ptx::fence_shared_writes();
}

template <typename Shape, typename Mask, typename ScoreMod = tile::NoScoreMod>
__global__ void __launch_bounds__(Shape::kWarps * 32 + 128, Shape::kResident)
    chunk_wgmma_forward(const __grid_constant__ BatchParams params,
                        const __grid_constant__ BatchMaps maps) {
  using Layout = ChunkLayout<Shape>;
  static_assert(Shape::kWarps == 8 && Shape::kResident == 1,
                "two warpgroups compute, and share a multiprocessor with no other CTA");
  static_assert(Shape::kTileRows == 64 * Layout::kConsumers, "a warpgroup has 64 rows");
  static_assert(Shape::kStages >= 1, "there is a buffer");
  static_assert(!Shape::kListed, "keys of a step follow one another");
  static_assert(Shape::kRuns >= 1 && Shape::kRuns <= kMaxRuns, "keys are one run or a few");
  // 3 * 168 = 40 + 2 * 232 registers of a thread (kernels/wgmma/wgmma_forward.cu).
  constexpr int kProducerRegisters = 40;
  constexpr int kConsumerRegisters = 232;

  extern __shared__ __align__(1024) unsigned char shared_memory[];
  const unsigned shared = ptx::shared_address(shared_memory);
  if (threadIdx.x == 0) {
    ptx::init_barrier(shared + Layout::kQueriesFull, 1);
    ptx::init_barrier(shared + Layout::kQueriesFree, Shape::kWarps);
    for (int stage = 0; stage < Shape::kStages; ++stage) {
      const unsigned barriers =
          shared + Layout::kStageBarriers + stage * Layout::kStageBarrierBytes;
      ptx::init_barrier(barriers, 1);
      ptx::init_barrier(barriers + ptx::kBarrierBytes, Shape::kWarps);
      ptx::init_barrier(barriers + 2 * ptx::kBarrierBytes, 1);
      ptx::init_barrier(barriers + 3 * ptx::kBarrierBytes, Shape::kWarps);
    }
    ptx::publish_barriers();
  }
  clear_rest<Shape>(params, shared);
  __syncthreads();
  const unsigned warpgroup = ptx::uniform(threadIdx.x / 128);
  if (warpgroup == 0) {
    ptx::give_registers<kProducerRegisters>();
    if (ptx::uniform(threadIdx.x / 32) == 0) {
      ChunkProducer<Shape>(params, maps, shared_memory).run();
    }
  } else {
    ptx::take_registers<kConsumerRegisters>();
    ChunkConsumer<Shape, Mask, ScoreMod>(params, shared_memory, warpgroup - 1).run();
  }
}

}  // namespace annulus::kernels
