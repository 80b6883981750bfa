#ifndef ANNULUS_KERNELS_WGMMA_WORK_CUH_
#define ANNULUS_KERNELS_WGMMA_WORK_CUH_

// What the producer and the consumers of wgmma_forward agree about: places in shared memory, turns
// of the stages, and which work comes when.

#include "params/attention_params.h"
#include "params/wgmma_params.h"
#include "ptx/cluster.cuh"
#include "ptx/mbarrier.cuh"
#include "tile/panel.cuh"
#include "tile/tile_row.cuh"

namespace annulus::kernels {

// Warps that turn V round where its elements have 8 bits.
enum : int { kTransposers = 3 };

// What follows from Shape: bytes and places in shared memory.
template <typename Shape>
struct WgmmaLayout {
  enum : int {
    kBytes = Shape::Element::kBytes,
    kTransposes = kBytes == 1,  // V has a buffer as it comes and one as products take it
  };
  using Queries = tile::Panels<64, Shape::kDimQk, kBytes>;
  using Keys = tile::Panels<Shape::kColumns, Shape::kDimQk, kBytes>;
  using Values = tile::Panels<Shape::kColumns, Shape::kDimV, kBytes>;
  using Transposed = tile::Panels<Shape::kDimV, Shape::kColumns, kBytes>;
  using Output = tile::Panels<64, Shape::kDimV>;
  static_assert(!kTransposes || Shape::kOutputApart, "O of 16 bits does not fit Q of 8");
  enum : unsigned {
    kQueries = 0,
    kKeys = kQueries + Shape::kConsumers * Queries::kBytes,
    kValues = kKeys + Shape::kStages * Keys::kBytes,
    kTransposed = kValues + Shape::kStages * Values::kBytes,
    kStagesEnd = kTransposed + (kTransposes ? Shape::kStages * Transposed::kBytes : 0),
    kOutput = Shape::kOutputApart ? kStagesEnd : kQueries,
    // Of a consumer: what it may overwrite is its own part of Q, however little O takes of that.
    kOutputBytes = Shape::kOutputApart ? Output::kBytes : Queries::kBytes,
    // What a consumer puts by of its output, in fp32 (kernels/wgmma/promoted_accumulator.cuh).
    kPromoted = kStagesEnd + (Shape::kOutputApart ? Shape::kConsumers * Output::kBytes : 0),
    kPromotedBytes = Shape::kPromoteSteps > 0 ? 64 * Shape::kDimV * 4 : 0,
    kBarriers = kPromoted + Shape::kConsumers * kPromotedBytes,
    // What the products of a step read.
    kOperands = kTransposes ? kTransposed : kValues,
    kOperandBytes = kTransposes ? Transposed::kBytes : Values::kBytes,
    // Barriers: queries full, queries free, then for each stage K full, K free, V full, V free, and
    // where V is turned round the same two of the result.
    kQueriesFull = kBarriers,
    kQueriesFree = kBarriers + ptx::kBarrierBytes,
    kStageBarriers = kBarriers + 2 * ptx::kBarrierBytes,
    kOperandFull = kTransposes ? 4 : 2,
    kOperandFree = kTransposes ? 5 : 3,
    kStageBarrierBytes = (kTransposes ? 6 : 4) * ptx::kBarrierBytes,
    kUnused = kStageBarriers + Shape::kStages * kStageBarrierBytes,  // a word for ptx::pin
    // Where works are drawn (kernels/wgmma/tile_scheduler.cuh): two barriers, and the work.
    kWorkFull = kUnused + ptx::kBarrierBytes,
    kWorkFree = kWorkFull + ptx::kBarrierBytes,
    kWorkDrawn = kWorkFree + ptx::kBarrierBytes,
  };
};

// A place in the ring of stages: which buffer, and the parity of its turn.
template <int kStages>
struct RingPlace {
  unsigned stage = 0;
  unsigned parity = 0;
  __device__ __forceinline__ void advance() {
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

// Query rows of a tile row.
template <typename Shape>
__device__ __forceinline__ constexpr int rows_of_work() {
  return Shape::kPackedHeads ? 64 : 64 * Shape::kConsumers;
}

// One CTA's part of a work: a tile row, or a part of one, of one head or of kConsumers heads.
template <TileOrder kTileOrder>
struct Work {
  int batch;
  int head;  // the first
  tile::TileRow<kTileOrder> row;
};

template <typename Shape>
__device__ __forceinline__ int rank_in_cluster() {
  return Shape::kCluster > 1 ? static_cast<int>(ptx::cluster_rank()) : 0;
}

// One arrival of a warp at a barrier that all CTAs of the cluster arrive at, in each of them.
template <typename Shape>
__device__ __forceinline__ void arrive_everywhere(unsigned barrier, unsigned lane) {
  if constexpr (Shape::kCluster > 1) {
    if (lane < Shape::kCluster) ptx::arrive_at(barrier, lane);
  } else {
    if (lane == 0) ptx::arrive(barrier);
  }
}

template <typename Shape>
__device__ __forceinline__ Work<static_cast<TileOrder>(Shape::kTileOrder)> find_work(
    const AttentionParams& params, const WorkParams& work, int index) {
  constexpr int kHeads = Shape::kPackedHeads ? Shape::kConsumers : 1;
  constexpr int kRows = rows_of_work<Shape>();
  const int rows = work.row_groups;
  const int set = index / (work.set * rows);
  const int left = work.groups - set * work.set;
  const int size = left < work.set ? left : work.set;
  const int in_set = index - set * work.set * rows;
  const int order = in_set / size;
  const int group = set * work.set + in_set - order * size;
  const int batch = group / work.head_groups;
  const int rank = rank_in_cluster<Shape>();
  const bool rows_apart = work.group_rows > 1;
  const int head =
      (group - batch * work.head_groups) * work.group_heads + (rows_apart ? 0 : rank * kHeads);
  auto row = tile::find_tile_row<static_cast<TileOrder>(Shape::kTileOrder), kRows,
                                 Shape::kColumns / Shape::kBlocks, Shape::kSplit,
                                 tile::DistinctBatches<Shape>::kCount>(
      params, static_cast<unsigned>(order * work.group_rows), static_cast<unsigned>(head), batch);
  // CTAs that share K and V make the same steps: rows that see the same, in ascending order. The
  // last may lie behind Sq, where nothing is read or written.
  if (rows_apart) row.row += rank;
  return {batch, head, row};
}

// Steps of a row: kBlocks entries of its list each, the last one may lack some.
template <int kBlocks>
__device__ __forceinline__ int steps_of(int tiles) {
  return (tiles + kBlocks - 1) / kBlocks;
}

}  // namespace annulus::kernels

#endif  // ANNULUS_KERNELS_WGMMA_WORK_CUH_
