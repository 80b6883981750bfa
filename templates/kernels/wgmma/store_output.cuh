#ifndef ANNULUS_KERNELS_WGMMA_STORE_OUTPUT_CUH_
#define ANNULUS_KERNELS_WGMMA_STORE_OUTPUT_CUH_

// Stores the rows of O that a consumer computed.

#include "kernels/wgmma/work.cuh"
#include "ptx/math.cuh"
#include "ptx/stmatrix.cuh"
#include "ptx/tensor_copy.cuh"
#include "ptx/warpgroup.cuh"
#include "tile/softmax.cuh"

namespace annulus::kernels {

// Stores O = acc / l as 16-bit elements, 0 for a row without a visible key. The fragments go
// through the consumer's own rows of shared memory, and one thread copies them from there as boxes.
// `barrier` is a named barrier of the consumer's four warps alone. Bulk copies belong to the thread
// that started them: elect() selects the same thread each time (ptx/warpgroup.cuh), and the waits
// below rely on that. The hardware cuts a box off at the end of the tensor, but not at the end of a
// segment. A second segment begins at a multiple of 64 rows (Family::second_segment_rows), so each
// box is completely inside the segment or completely after it.
template <typename Shape>
__device__ __forceinline__ void store_output(const tile::RowState<1>& state,
                                             const float (&output)[1][Shape::kDimV / 8][4],
                                             const TensorMaps& maps, unsigned shared,
                                             unsigned consumer, unsigned warp, unsigned lane,
                                             int barrier, const tile::TilePlace& rows, int batch,
                                             int head) {
  using Layout = WgmmaLayout<Shape>;
  using Panels = typename Layout::Output;
  const unsigned staging = shared + Layout::kOutput + consumer * Layout::kOutputBytes;
  float inverse[2];
  unsigned keep[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    inverse[half] = ptx::reciprocal(state.sum[0][half]);
    keep[half] = tile::is_empty(state, 0, half) ? 0u : 0xffffffffu;
  }
  // Before any warp writes to the staging rows, their last content must have been read. If the
  // output has memory of its own, that content is the output of the previous work, and only the
  // thread that stored it can wait for it. Otherwise it is Q, and the products of all four warps
  // have read it when they reach the barrier.
  if (Shape::kOutputApart && warp == 0 && ptx::elect()) ptx::wait_stores_read();
  ptx::sync_threads(barrier, 128);
#pragma unroll
  for (int d = 0; d < Shape::kDimV / 16; ++d) {
    unsigned words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float* piece = output[0][2 * d + i / 2];
      words[i] = Shape::Output::pack(piece[i % 2 * 2] * inverse[i % 2],
                                     piece[i % 2 * 2 + 1] * inverse[i % 2]) &
                 keep[i % 2];
    }
    ptx::store_matrices(
        staging + Panels::chunk(warp * 16 + lane % 16, static_cast<unsigned>(2 * d) + lane / 16),
        words[0], words[1], words[2], words[3]);
  }
  ptx::fence_shared_writes();
  ptx::sync_threads(barrier, 128);
  if (warp == 0 && ptx::elect()) {
    const int first = rows.first + (Shape::kPackedHeads ? 0 : static_cast<int>(consumer) * 64);
    constexpr bool kSegments = static_cast<Positions>(Shape::kPositions) == Positions::kTwoSegments;
    if (!kSegments || first < rows.end) {
#pragma unroll
      for (int panel = 0; panel < Panels::kCount; ++panel) {
        ptx::store_box(&maps.o, staging + panel * Panels::kPanelBytes,
                       {panel * Panels::kPanelColumns, first, head, batch});
      }
    }
    ptx::commit_stores();
    if constexpr (!Shape::kOutputApart) ptx::wait_stores_read();
  }
  // Q may be loaded again only when O has been read from its rows. If the output has memory of its
  // own, there is no wait here: the next call waits above, and Consumer::run() after the last work.
  if constexpr (!Shape::kOutputApart) {
    ptx::sync_threads(barrier, 128);
  }
}

}  // namespace annulus::kernels

#endif  // ANNULUS_KERNELS_WGMMA_STORE_OUTPUT_CUH_
