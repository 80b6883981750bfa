#ifndef ANNULUS_KERNELS_WGMMA_PRODUCER_CUH_
#define ANNULUS_KERNELS_WGMMA_PRODUCER_CUH_

// One thread's part of wgmma_forward: it starts the copies of all work, Q once and K and V step by
// step, as far ahead as the consumers give buffers back.

#include "kernels/wgmma/tile_scheduler.cuh"
#include "kernels/wgmma/work.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/tensor_copy.cuh"

namespace annulus::kernels {

// A box of K or V, for all CTAs of the cluster.
template <typename Shape>
__device__ __forceinline__ void load_shared(unsigned place, const TensorMap& map, unsigned full,
                                            const ptx::Box& at) {
  if constexpr (Shape::kCluster > 1) {
    ptx::load_box_for((1 << Shape::kCluster) - 1, place, &map, full, at);
  } else {
    ptx::load_box(place, &map, full, at);
  }
}

template <typename Shape>
__device__ __forceinline__ void produce(const AttentionParams& params, const TensorMaps& maps,
                                        const WorkParams& work, unsigned shared) {
  using Layout = WgmmaLayout<Shape>;
  constexpr int kBlocks = Shape::kBlocks;
  constexpr int kBlockRows = Shape::kColumns / kBlocks;
  // Each CTA of a cluster copies some of a step's boxes for all of them: box i of rank r is number
  // i * kCluster + r of the step.
  constexpr int kCluster = Shape::kCluster;
  constexpr int kBoxes = kBlocks > kCluster ? kBlocks / kCluster : 1;
  constexpr int kBoxRows = Shape::kColumns / (kBoxes * kCluster);
  constexpr int kBoxesOfBlock = kBlockRows / kBoxRows;
  static_assert(kBoxRows % 8 == 0, "a box begins where the swizzle does, which repeats after 8 rows");
  constexpr int kRows = rows_of_work<Shape>();
  RingPlace<Shape::kStages> place;
  unsigned queries_parity = 1;
  TileSchedulerProducer<Shape> scheduler(shared, work.count);
#pragma unroll 1
  for (int index = scheduler.first(); index < work.count; index = scheduler.next(index)) {
    const auto now = find_work<Shape>(params, work, index);
    if (Shape::kSplit && now.row.row < 0) continue;
    const int steps = steps_of<kBlocks>(now.row.count);
    if (Shape::kOutputApart && steps == 0) continue;
    const int kv_head = now.head / params.group;

    ptx::wait(shared + Layout::kQueriesFree, queries_parity);
    queries_parity ^= 1;
    ptx::arrive_expecting(shared + Layout::kQueriesFull,
                          Shape::kConsumers * Layout::Queries::kBytes);
#pragma unroll
    for (int consumer = 0; consumer < Shape::kConsumers; ++consumer) {
#pragma unroll
      for (int panel = 0; panel < Layout::Queries::kCount; ++panel) {
        ptx::load_box(shared + Layout::kQueries + consumer * Layout::Queries::kBytes +
                          panel * Layout::Queries::kPanelBytes,
                      &maps.q, shared + Layout::kQueriesFull,
                      {panel * Layout::Queries::kPanelColumns,
                       now.row.row * kRows + (Shape::kPackedHeads ? 0 : consumer * 64),
                       now.head + (Shape::kPackedHeads ? consumer : 0), now.batch});
      }
    }

    // Where a last step lacks tiles, its buffers take the last one again, so that they hold
    // numbers.
    const auto first_row = [&](int step, int box) {
      const int number = box * kCluster + rank_in_cluster<Shape>();
      const int index = step * kBlocks + number / kBoxesOfBlock;
      return now.row.tile(index < now.row.count ? index : now.row.count - 1).column * kBlockRows +
             number % kBoxesOfBlock * kBoxRows;
    };
    int rows[kBoxes];
#pragma unroll
    for (int box = 0; box < kBoxes; ++box) rows[box] = steps > 0 ? first_row(0, box) : 0;
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      // A step ahead: of a list, it is a load, and decides an address.
      int next[kBoxes];
#pragma unroll
      for (int box = 0; box < kBoxes; ++box) next[box] = first_row(step + 1, box);
      const unsigned barriers =
          shared + Layout::kStageBarriers + place.stage * Layout::kStageBarrierBytes;
      const unsigned keys = shared + Layout::kKeys + place.stage * Layout::Keys::kBytes;
      const unsigned values = shared + Layout::kValues + place.stage * Layout::Values::kBytes;
      const auto load = [&](unsigned buffer, const TensorMap& map, unsigned full, int column) {
#pragma unroll
        for (int box = 0; box < kBoxes; ++box) {
          const int number = box * kCluster + rank_in_cluster<Shape>();
          load_shared<Shape>(buffer + number * kBoxRows * tile::kPanelPitch, map, full,
                             {column, rows[box], kv_head, now.batch});
        }
      };
      ptx::wait(barriers + ptx::kBarrierBytes, place.parity ^ 1);
      ptx::arrive_expecting(barriers, Layout::Keys::kBytes);
#pragma unroll
      for (int panel = 0; panel < Layout::Keys::kCount; ++panel) {
        load(keys + panel * Layout::Keys::kPanelBytes, maps.k, barriers,
             panel * Layout::Keys::kPanelColumns);
      }
      ptx::wait(barriers + 3 * ptx::kBarrierBytes, place.parity ^ 1);
      ptx::arrive_expecting(barriers + 2 * ptx::kBarrierBytes, Layout::Values::kBytes);
#pragma unroll
      for (int panel = 0; panel < Layout::Values::kCount; ++panel) {
        load(values + panel * Layout::Values::kPanelBytes, maps.v,
             barriers + 2 * ptx::kBarrierBytes, panel * Layout::Values::kPanelColumns);
      }
#pragma unroll
      for (int box = 0; box < kBoxes; ++box) rows[box] = next[box];
      place.advance();
    }
  }
}

}  // namespace annulus::kernels

#endif  // ANNULUS_KERNELS_WGMMA_PRODUCER_CUH_
