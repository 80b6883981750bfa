#ifndef ANNULUS_KERNELS_WGMMA_PRODUCER_CUH_
#define ANNULUS_KERNELS_WGMMA_PRODUCER_CUH_

// One thread's part of wgmma_forward: it starts the copies of all work, Q once and K and V step by
// step, as far ahead as the consumers give buffers back.

#include "kernels/wgmma/work.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/tensor_copy.cuh"

namespace annulus::kernels {

template <typename Shape>
__device__ __forceinline__ void produce(const AttentionParams& params, const TensorMaps& maps,
                                        const WorkParams& work, unsigned shared) {
  using Layout = WgmmaLayout<Shape>;
  constexpr int kBlocks = Shape::kBlocks;
  constexpr int kBlockRows = Shape::kColumns / kBlocks;
  constexpr int kRows = Shape::kHeadsTogether ? 64 : 64 * Shape::kConsumers;
  RingPlace<Shape::kStages> place;
  unsigned queries_parity = 1;
  for (int index = blockIdx.x; index < work.count; index += gridDim.x) {
    const auto now = find_work<Shape>(params, work, index);
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
                       now.row.row * kRows + (Shape::kHeadsTogether ? 0 : consumer * 64),
                       now.head + (Shape::kHeadsTogether ? consumer : 0), now.batch});
      }
    }

    // Where a last step lacks tiles, its buffers take the last one again, so that they hold
    // numbers.
    const auto first_row = [&](int index) {
      return now.row.tile(index < now.row.count ? index : now.row.count - 1).column * kBlockRows;
    };
    int rows[kBlocks];
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) rows[b] = steps > 0 ? first_row(b) : 0;
    for (int step = 0; step < steps; ++step) {
      // A step ahead: of a list, it is a load, and decides an address.
      int next[kBlocks];
#pragma unroll
      for (int b = 0; b < kBlocks; ++b) next[b] = first_row((step + 1) * kBlocks + b);
      const unsigned barriers =
          shared + Layout::kStageBarriers + place.stage * Layout::kStageBarrierBytes;
      const unsigned keys = shared + Layout::kKeys + place.stage * Layout::Keys::kBytes;
      const unsigned values = shared + Layout::kValues + place.stage * Layout::Values::kBytes;
      ptx::wait(barriers + ptx::kBarrierBytes, place.parity ^ 1);
      ptx::arrive_expecting(barriers, Layout::Keys::kBytes);
#pragma unroll
      for (int panel = 0; panel < Layout::Keys::kCount; ++panel) {
#pragma unroll
        for (int b = 0; b < kBlocks; ++b) {
          ptx::load_box(
              keys + panel * Layout::Keys::kPanelBytes + b * kBlockRows * tile::kPanelPitch,
              &maps.k, barriers,
              {panel * Layout::Keys::kPanelColumns, rows[b], kv_head, now.batch});
        }
      }
      ptx::wait(barriers + 3 * ptx::kBarrierBytes, place.parity ^ 1);
      ptx::arrive_expecting(barriers + 2 * ptx::kBarrierBytes, Layout::Values::kBytes);
#pragma unroll
      for (int panel = 0; panel < Layout::Values::kCount; ++panel) {
#pragma unroll
        for (int b = 0; b < kBlocks; ++b) {
          ptx::load_box(
              values + panel * Layout::Values::kPanelBytes + b * kBlockRows * tile::kPanelPitch,
              &maps.v, barriers + 2 * ptx::kBarrierBytes,
              {panel * Layout::Values::kPanelColumns, rows[b], kv_head, now.batch});
        }
      }
#pragma unroll
      for (int b = 0; b < kBlocks; ++b) rows[b] = next[b];
      place.advance();
    }
  }
}

}  // namespace annulus::kernels

#endif  // ANNULUS_KERNELS_WGMMA_PRODUCER_CUH_
