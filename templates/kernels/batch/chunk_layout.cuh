#ifndef ANNULUS_KERNELS_BATCH_CHUNK_LAYOUT_CUH_
#define ANNULUS_KERNELS_BATCH_CHUNK_LAYOUT_CUH_

// The data that the producer and the consumers of chunk_wgmma_forward share: the layout of shared
// memory, and the data about works and steps that the producer writes.

#include "params/batch_map_params.h"
#include "ptx/mbarrier.cuh"
#include "tile/panel.cuh"
#include "tile/part_tiles.cuh"

namespace annulus::kernels {

// The layout of shared memory that follows from Shape: offsets and sizes in bytes. All parts before
// the barriers begin at multiples of 1024.
template <typename Shape>
struct ChunkLayout {
  enum : int {
    kConsumers = Shape::kWarps / 4,
    // V has whole panels. Columns after the head dim are zeros.
    kValueColumns = (Shape::kDimV + 63) / 64 * 64,
  };
  using Queries = tile::Panels<Shape::kTileRows, Shape::kDimQk>;
  using Keys = tile::Panels<Shape::kTileColumns, Shape::kDimQk>;
  using Values = tile::Panels<Shape::kTileColumns, kValueColumns>;
  enum : unsigned {
    kQueries = 0,
    kKeys = kQueries + Queries::kBytes,
    kValues = kKeys + Shape::kStages * Keys::kBytes,
    kBarriers = kValues + Shape::kStages * Values::kBytes,
    // Barriers: queries full, queries free, then for each stage K full (0), K free (1), V full (2),
    // V free (3).
    kQueriesFull = kBarriers,
    kQueriesFree = kQueriesFull + ptx::kBarrierBytes,
    kStageBarriers = kQueriesFree + ptx::kBarrierBytes,
    kStageBarrierBytes = 4 * ptx::kBarrierBytes,
    // For each stage: the first key of its step, whether the step is masked, and which keys exist.
    kSteps = kStageBarriers + Shape::kStages * kStageBarrierBytes,
    kStepBytes = 32,
    // There are two works, because the next one begins while the previous one is finished.
    kWorks = kSteps + Shape::kStages * kStepBytes,
    kUnused = kWorks + 2 * sizeof(ChunkWork),  // a word for ptx::pin
    kEnd = kUnused + 16,
  };
  static_assert(8 + 4 * tile::KeysThere<Shape::kTileColumns>::kWords <= kStepBytes,
                "what the producer tells of a step has room");
};

}  // namespace annulus::kernels

#endif  // ANNULUS_KERNELS_BATCH_CHUNK_LAYOUT_CUH_
