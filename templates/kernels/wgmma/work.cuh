#ifndef ANNULUS_KERNELS_WGMMA_WORK_CUH_
#define ANNULUS_KERNELS_WGMMA_WORK_CUH_

// The parts that the producer, the transposers and the consumers of wgmma_forward share: the layout
// of shared memory, the ring of stages, and the works that indices stand for.

#include "kernels/wgmma/ring_place.cuh"
#include "params/attention_params.h"
#include "params/wgmma_params.h"
#include "ptx/cluster.cuh"
#include "ptx/mbarrier.cuh"
#include "tile/panel.cuh"
#include "tile/segments.cuh"
#include "tile/tile_row.cuh"

namespace annulus::kernels {

// Warps that transpose V of 8-bit elements.
enum : int { kTransposers = 3 };

// The layout of shared memory that follows from Shape: offsets and sizes in bytes.
template <typename Shape>
struct WgmmaLayout {
  enum : int {
    kBytes = Shape::Element::kBytes,
    kTransposes = kBytes == 1,  // V has a buffer for the copies and one for the transposed tile
  };
  using Queries = tile::Panels<64, Shape::kDimQk, kBytes>;
  using Keys = tile::Panels<Shape::kColumns, Shape::kDimQk, kBytes>;
  using Values = tile::ValuePanels<Shape::kColumns, Shape::kDimV, kBytes>;
  using Transposed = tile::Panels<Shape::kDimV, Shape::kColumns, kBytes>;
  using Output = tile::Panels<64, Shape::kDimV>;
  static_assert(!kTransposes || Shape::kOutputApart, "O of 16 bits does not fit Q of 8");
  static_assert(Shape::kPromoteSteps == 0 || Shape::kDimV <= 128, "O takes more than its sum");
  enum : unsigned {
    kQueries = 0,
    kKeys = kQueries + Shape::kConsumers * Queries::kBytes,
    kValues = kKeys + Shape::kStages * Keys::kBytes,
    kTransposed = kValues + Shape::kStages * Values::kBytes,
    kStagesEnd = kTransposed + (kTransposes ? Shape::kStages * Transposed::kBytes : 0),
    // The promoted output of a consumer, in fp32, and what it is relative to
    // (kernels/wgmma/promoted_accumulator.cuh). O is staged in the same memory.
    kPromoted = kStagesEnd,
    kPromotedBytes = Shape::kPromoteSteps > 0 ? 64 * Shape::kDimV * 4 + 1024 : 0,
    kOutput = Shape::kOutputApart ? kStagesEnd : kQueries,
    // The distance between the outputs of two consumers. If the output has no memory of its own,
    // each consumer stages O in its own part of Q, even if O is smaller than that part.
    kOutputBytes = !Shape::kOutputApart ? Queries::kBytes
                   : kPromotedBytes > 0 ? kPromotedBytes
                                        : Output::kBytes,
    kBarriers = kStagesEnd + (Shape::kOutputApart ? Shape::kConsumers * kOutputBytes : 0),
    // The V that the products of a step read.
    kOperands = kTransposes ? kTransposed : kValues,
    kOperandBytes = kTransposes ? Transposed::kBytes : Values::kBytes,
    // Barriers: queries full, queries free, then for each stage K full (0), K free (1), V full (2),
    // V free (3), and, if V is transposed, also result full (4) and result free (5). Without a
    // transposition, the operand of the products is V itself, with barriers 2 and 3.
    kQueriesFull = kBarriers,
    kQueriesFree = kBarriers + ptx::kBarrierBytes,
    kStageBarriers = kBarriers + 2 * ptx::kBarrierBytes,
    kOperandFull = kTransposes ? 4 : 2,
    kOperandFree = kTransposes ? 5 : 3,
    kStageBarrierBytes = (kTransposes ? 6 : 4) * ptx::kBarrierBytes,
    kUnused = kStageBarriers + Shape::kStages * kStageBarrierBytes,  // a word for ptx::pin
    // The number of the drawn work and its two barriers (kernels/wgmma/tile_scheduler.cuh).
    kWorkFull = kUnused + ptx::kBarrierBytes,
    kWorkFree = kWorkFull + ptx::kBarrierBytes,
    kWorkDrawn = kWorkFree + ptx::kBarrierBytes,
    // For each stage, the entries of its step's tiles, if the row is read from a list.
    kEntries = kWorkDrawn + ptx::kBarrierBytes,
    kEntryBytes = 8,
  };
};

// Query rows of one tile row (M): packed heads share 64 rows, one head spreads over all consumers.
template <typename Shape>
__device__ __forceinline__ constexpr int rows_of_work() {
  return Shape::kPackedHeads ? 64 : 64 * Shape::kConsumers;
}

// Whether the producer passes the entries of a list, or entries as a list would have them, to the
// consumers.
template <typename Shape>
__device__ __forceinline__ constexpr bool has_entries() {
  return static_cast<TileOrder>(Shape::kTileOrder) == TileOrder::kList ||
         static_cast<TileOrder>(Shape::kTileOrder) == TileOrder::kAny;
}

// One CTA's part of a work: a tile row, or a part of one, of one head or of kConsumers heads.
template <TileOrder kTileOrder>
struct Work {
  int batch;
  int head;  // the first head
  tile::TileRow<kTileOrder> row;
};

template <typename Shape>
__device__ __forceinline__ int rank_in_cluster() {
  return Shape::kCluster > 1 ? static_cast<int>(ptx::cluster_rank()) : 0;
}

// Lets the calling warp arrive once at `barrier` in every CTA of the cluster: lane r arrives in the
// CTA of rank r. All lanes of the warp call it.
template <typename Shape>
__device__ __forceinline__ void arrive_everywhere(unsigned barrier, unsigned lane) {
  if constexpr (Shape::kCluster > 1) {
    if (lane < Shape::kCluster) ptx::arrive_at(barrier, lane);
  } else {
    if (lane == 0) ptx::arrive(barrier);
  }
}

// The index of the work that is drawn as number `number`. Numbers after the last work are returned
// unchanged.
__device__ __forceinline__ int in_order(const WorkParams& work, int number) {
  return work.order == nullptr || number >= work.count ? number : work.order[number];
}

// This CTA's part of work `index`. Works are numbered set by set, and a set is `work.set` groups of
// heads whose K and V fit into L2 together. Within a set the tile rows come in launch order
// (longest first), and all groups of the set come before the next row. So index = start of the set
// + order * groups of the set + group in the set; only the last set may be smaller. The ranks of a
// cluster divide a work by tile rows (group_rows > 1) or by heads.
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
  // The rows of a cluster are neighbours with the same tiles (attention/plan/group.h checks it), so
  // every CTA uses the tiles of the first row. The last row may be beyond Sq; then it is neither
  // read nor written.
  if (rows_apart) row.row += rank;
  return {batch, head, row};
}

// The number of steps of a row with `tiles` tiles. A step takes kBlocks tiles; the last one may
// have fewer.
template <int kBlocks>
__device__ __forceinline__ int steps_of(int tiles) {
  return (tiles + kBlocks - 1) / kBlocks;
}

}  // namespace annulus::kernels

#endif  // ANNULUS_KERNELS_WGMMA_WORK_CUH_
