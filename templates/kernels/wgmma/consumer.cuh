#ifndef ANNULUS_KERNELS_WGMMA_CONSUMER_CUH_
#define ANNULUS_KERNELS_WGMMA_CONSUMER_CUH_

// A warpgroup's part of wgmma_forward: 64 rows of every work, from the products to O.

#include "kernels/wgmma/parts.cuh"
#include "kernels/wgmma/scales.cuh"
#include "kernels/wgmma/sums.cuh"
#include "kernels/wgmma/work.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/stmatrix.cuh"
#include "ptx/tensor_copy.cuh"
#include "ptx/warpgroup.cuh"
#include "tile/masking.cuh"
#include "tile/position_terms.cuh"
#include "tile/row_io.cuh"
#include "tile/score_mod.cuh"
#include "tile/softmax.cuh"
#include "tile/warpgroup_multiply.cuh"

namespace annulus::kernels {

// One warpgroup's part of every work.
template <typename Shape, typename Mask, typename ScoreMod>
class Consumer {
  using Element = typename Shape::Element;
  using Layout = WgmmaLayout<Shape>;
  using Row = tile::TileRow<static_cast<Walk>(Shape::kWalk)>;
  using Weighing = tile::Weighing<ScoreMod, static_cast<Score>(Shape::kScore)>;
  enum : int {
    kBlocks = Shape::kBlocks,
    kBlockColumns = Shape::kColumns / kBlocks,
    kPieces = Shape::kColumns / 8,
    kBlockPieces = kBlockColumns / 8,
    kPowers = tile::Powers<Element, Shape::kColumns>::kCount,
    kDimV = Shape::kDimV,
    kRows = Shape::kHeadsTogether ? 64 : 64 * Shape::kConsumers,
    kQueryInRegisters = Shape::kQueryInRegisters,
    kTurnThreads = 256,  // of two consumers: one that waits for its turn, one that hands it on
    kTurnBarrier = 1,    // + consumer
    kStoreBarrier = 8,   // + consumer
    // Sums of 8-bit products are kept short: in parts, where nothing is put by.
    kInParts = Element::kBytes == 1 && Shape::kPromoteSteps == 0,
    // With a large output its registers are rescaled before the next product, not behind the last.
    kRescaleFirst = kInParts || kDimV > 128,
    kFewRegisters = Shape::kConsumers == 3 || Shape::kColumns > 128,
  };
  static_assert(Shape::kPromoteSteps == 0 || !kRescaleFirst,
                "what is put by has the peak of the output");

 public:
  __device__ __forceinline__ Consumer(const AttentionParams& params, const TensorMaps& maps,
                                      const WorkParams& work, unsigned shared, unsigned consumer)
      : params_(params),
        maps_(maps),
        work_(work),
        shared_(shared),
        consumer_(consumer),
        warp_(threadIdx.x / 32 % 4),
        lane_(threadIdx.x % 32),
        sums_(shared, consumer) {}

  __device__ __forceinline__ void run() {
    constexpr bool kTurns = Shape::kConsumers > 1;
    if (kTurns && consumer_ == Shape::kConsumers - 1) announce_turn(0);
    for (int index = first_work<Shape>(); index < work_.count; index += work_stride<Shape>()) {
      compute(index);
    }
    // The last turn that was handed on: nobody leaves with a barrier half full.
    if (kTurns && consumer_ == 0) ptx::sync_threads(kTurnBarrier, kTurnThreads);
    if (warp_ == 0 && ptx::elect()) ptx::wait_stores_read();
  }

 private:
  __device__ __forceinline__ void take_turn() const {
    if constexpr (Shape::kConsumers > 1) {
      ptx::sync_threads(kTurnBarrier + static_cast<int>(consumer_), kTurnThreads);
    }
  }
  __device__ __forceinline__ void announce_turn(unsigned consumer) const {
    ptx::announce_threads(kTurnBarrier + static_cast<int>(consumer), kTurnThreads);
  }
  __device__ __forceinline__ void hand_on_turn() const {
    if constexpr (Shape::kConsumers > 1) {
      announce_turn(consumer_ + 1 == Shape::kConsumers ? 0 : consumer_ + 1);
    }
  }

  __device__ __forceinline__ unsigned barrier(const RingPlace<Shape::kStages>& place,
                                              int which) const {
    return shared_ + Layout::kStageBarriers + place.stage * Layout::kStageBarrierBytes +
           static_cast<unsigned>(which) * ptx::kBarrierBytes;
  }
  // One arrival for each warp: the products of its warpgroup are complete for it, and no text says
  // that they are for the other three.
  __device__ __forceinline__ void release(unsigned barrier) const {
    if (lane_ == 0) ptx::arrive(barrier);
  }
  // The same of a buffer that copies fill for the whole cluster: to all who copy.
  __device__ __forceinline__ void release_keys(const RingPlace<Shape::kStages>& place) const {
    arrive_everywhere<Shape>(barrier(place, 1), lane_);
  }
  __device__ __forceinline__ void release_values(const RingPlace<Shape::kStages>& place) const {
    if constexpr (Layout::kTransposes) {
      release(barrier(place, Layout::kOperandFree));  // what was turned round is the CTA's own
    } else {
      arrive_everywhere<Shape>(barrier(place, Layout::kOperandFree), lane_);
    }
  }

  // Starts the scores of the step at `place`, whose keys it waits for.
  __device__ __forceinline__ void start_scores(float (&scores)[kPieces][4],
                                               const RingPlace<Shape::kStages>& place) const {
    tile::start_scores<Element, Shape::kDimQk, Shape::kColumns>(
        scores, query_, shared_ + Layout::kKeys + place.stage * Layout::Keys::kBytes);
    ptx::commit_products();
  }
  __device__ __forceinline__ void start_values(float (&output)[kDimV / 8][4],
                                               const unsigned (&powers)[kPowers][4],
                                               const RingPlace<Shape::kStages>& place) const {
    tile::start_values<Element, kDimV, Shape::kColumns>(
        output, powers, shared_ + Layout::kOperands + place.stage * Layout::kOperandBytes);
    ptx::commit_products();
  }

  // The product of start_values, rescaling included, and complete; see kernels/wgmma/parts.cuh.
  template <int kNext, typename StartNext>
  __device__ __forceinline__ void add_values(float (&output)[kDimV / 8][4],
                                             const float (&shrink)[2],
                                             const unsigned (&powers)[kPowers][4],
                                             const RingPlace<Shape::kStages>& place,
                                             const StartNext& start_next) const {
    ptx::wait(barrier(place, Layout::kOperandFull), place.parity);
    add_values_in_parts<Element, kDimV, Shape::kColumns, kNext>(
        output, shrink, powers, shared_ + Layout::kOperands + place.stage * Layout::kOperandBytes,
        start_next);
    release_values(place);
  }

  // From products to scores that a row may sum: scaled where that comes first, and -inf where the
  // query does not see the key.
  __device__ __forceinline__ void finish(float (&scores)[kPieces][4], const Row& row, int step,
                                         int batch, int head) const {
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) {
      auto& of_block = reinterpret_cast<float(&)[1][kBlockPieces][4]>(scores[b * kBlockPieces]);
      scales_.finish(params_, of_block, b);
      finish_block(of_block, row, step * kBlocks + b, batch, head);
    }
  }
  __device__ __forceinline__ void finish_block(float (&scores)[1][kBlockPieces][4], const Row& row,
                                               int index, int batch, int head) const {
    const bool exists = kBlocks == 1 || index < row.count;
    const tile::ColumnTile now = row.tile(exists ? index : row.count - 1);
    const int first_column = now.column * kBlockColumns;
    const int tile_row = static_cast<int>(row_in_tile());
    const int column = static_cast<int>(lane_ % 4 * 2);
    const int first_row = row.row * kRows;
    if constexpr (Shape::kAlibi || Shape::kBias) {
      static_assert(static_cast<Score>(Shape::kScore) != Score::kPositiveScale,
                    "terms are added to scores that are scaled");
      const tile::PositionTerms<Shape::kAlibi, Shape::kBias> terms(params_.score,
                                                                   static_cast<unsigned>(head));
      if constexpr (Shape::kPlaced) {
        terms.add_placed(scores, params_.q_positions + first_row,
                         params_.k_positions + first_column, tile_row, column);
      } else {
        terms.add(scores, params_.k_position + first_column + column -
                              (params_.q_position + first_row + tile_row));
      }
    }
    if constexpr (ScoreMod::kPresent) {
      static_assert(static_cast<Score>(Shape::kScore) != Score::kPositiveScale,
                    "an expression takes scores that are scaled");
      const tile::ModifiedScores<ScoreMod> modified(params_.score, params_.first_batch + batch,
                                                    head);
      if constexpr (Shape::kPlaced && ScoreMod::kPositions) {
        modified.apply_placed(scores, params_.q_positions + first_row,
                              params_.k_positions + first_column, tile_row, column);
      } else {
        modified.apply(scores, params_.q_position + first_row + tile_row,
                       params_.k_position + first_column + column);
      }
    }
    const int keys_left = exists ? params_.seq_k - first_column : 0;
    if (keys_left < kBlockColumns) tile::mask_tail(scores, keys_left, lane_);
    if (exists && now.partial) {  // what does not exist has no mask, and is hidden already
      const int tile_mask = row.mask(index);
      const int tile_q = params_.q_position + first_row;
      const int tile_k = params_.k_position + first_column;
      const tile::MaskContext<kBlockColumns> context{params_.mask,
                                                     params_.tiles.mask_words,
                                                     tile_mask,
                                                     Shape::kPlaced ? 0 : tile_q,
                                                     Shape::kPlaced ? 0 : tile_k,
                                                     params_.tiles.granule_row_shift,
                                                     params_.tiles.granule_column_shift,
                                                     head};
      if constexpr (Shape::kPlaced) {
        tile::mask_placed<Mask>(scores, context, params_.q_positions + first_row,
                                params_.k_positions + first_column, tile_row, column);
      } else {
        tile::mask_partial<Mask>(scores, context, tile_q + tile_row, tile_k + column);
      }
    }
  }

  // The lane's first row among those of the CTA's tile row.
  __device__ __forceinline__ unsigned row_in_tile() const {
    return (Shape::kHeadsTogether ? 0 : consumer_ * 64) + warp_ * 16 + lane_ / 4;
  }

  // A work, and what of it is this consumer's.
  struct Part {
    Work<static_cast<Walk>(Shape::kWalk)> work;
    int head;
    tile::LaneRows rows;  // of the lane
  };
  __device__ __forceinline__ Part find_part(int index) const {
    const auto work = find_work<Shape>(params_, work_, index);
    const int head = work.head + (Shape::kHeadsTogether ? static_cast<int>(consumer_) : 0);
    return {work,
            head,
            {(static_cast<long long>(work.batch) * params_.heads + head) * params_.seq_q,
             work.row.row * kRows + static_cast<int>(row_in_tile()), params_.seq_q, lane_}};
  }

  __device__ __forceinline__ void compute(int index) {
    tile::RowState<1> state;
    float output[1][kDimV / 8][4];
    tile::start_empty(state, output);
    const Part part = find_part(index);
    if (Shape::kSplit && part.work.row.row < 0) return;
    const int steps = steps_of<kBlocks>(part.work.row.count);
    scales_.begin(params_, part.work.batch, part.head, part.rows.first_row);
    if constexpr (Shape::kCarryIn) {
      if (!Shape::kSplit || part.work.row.begins) {
        tile::load_state(state, output, params_, part.rows);
        scales_.enter(state, output);
      }
    }
    if (steps > 0 || !Shape::kOutputApart) {
      ptx::wait(shared_ + Layout::kQueriesFull, queries_parity_);
      queries_parity_ ^= 1;
    }
    if (steps > 0) attend(state, output, part.work.row, steps, part.work.batch, part.head);
    if constexpr (kFewRegisters) {
      // None holds across the steps what can be found again.
      ptx::make_opaque(index);
      finish_work(state, output, find_part(index));
    } else {
      finish_work(state, output, part);
    }
  }

  // What remains behind the last step of a work.
  __device__ __forceinline__ void finish_work(tile::RowState<1>& state,
                                              float (&output)[1][kDimV / 8][4], const Part& part) {
    state.sum[0][0] = tile::quad_sum(state.sum[0][0]);
    state.sum[0][1] = tile::quad_sum(state.sum[0][1]);
    scales_.leave(state, output);
    const Row& row = part.work.row;
    if (Shape::kSplit && row.slot >= 0) {
      tile::LaneRows in_slot = part.rows;
      const tile::StateOut to =
          tile::slot_of<kRows>(params_.split, row.slot,
                               static_cast<long long>(part.work.batch) * params_.heads + part.head,
                               row.row * kRows, &in_slot);
      tile::store_state(state, output, to, in_slot);
    } else {
      finish_row(state, output, row, part.work.batch, part.head, part.rows);
    }
    // Where O leaves through Q, Q is loaded for rows without steps too.
    if constexpr (!Shape::kOutputApart) release(shared_ + Layout::kQueriesFree);
  }

  // What a whole row leaves.
  __device__ __forceinline__ void finish_row(tile::RowState<1>& state,
                                             float (&output)[1][kDimV / 8][4], const Row& row,
                                             int batch, int head, const tile::LaneRows& lane_rows) {
    if constexpr (Shape::kSinkLogit && !Shape::kCarryOut) {
      tile::add_sink(state, output,
                     params_.score.sinks[static_cast<unsigned>(head) %
                                         static_cast<unsigned>(params_.score.sink_count)]);
    }
    if constexpr (Shape::kCarryOut) {
      tile::store_state(state, output,
                        tile::StateOut{params_.acc_out, params_.m_out, params_.l_out}, lane_rows);
    } else {
      tile::store_lse(state, params_, lane_rows);
      store_output(state, output, row, batch, head);
    }
  }

  // All steps of a work that has some.
  __device__ __forceinline__ void attend(tile::RowState<1>& state, float (&output)[1][kDimV / 8][4],
                                         const Row& row, int steps, int batch, int head) {
    unsigned powers[kPowers][4];
    float shrink[1][2];
    sums_.begin();
    query_.read(shared_ + Layout::kQueries + consumer_ * Layout::Queries::kBytes, warp_, lane_);
    if constexpr (Shape::kOutputApart && kQueryInRegisters) {
      release(shared_ + Layout::kQueriesFree);
    }
    {
      float scores[1][kPieces][4];
      scales_.read(params_, row, 0);
      ptx::wait(barrier(place_, 0), place_.parity);
      ptx::fence_products();
      start_scores(scores[0], place_);
      ptx::wait_products<0>();
      ptx::hold(scores[0]);
      release_keys(place_);
      finish(scores[0], row, 0, batch, head);
      scales_.template weigh<Weighing>(params_, state, scores, shrink);
      tile::convert_powers<Element>(scores[0], powers);
    }
    if constexpr (Shape::kCarryIn && !kRescaleFirst) tile::rescale(output, shrink);
#pragma unroll 1
    for (int step = 1; step < steps; ++step) {
      float scores[1][kPieces][4];
      const RingPlace<Shape::kStages> before = place_;
      place_.advance();
      scales_.read(params_, row, step);
      ptx::wait(barrier(place_, 0), place_.parity);
      take_turn();
      if constexpr (kInParts) {
        add_values<1>(output[0], shrink[0], powers, before, [&] {
          ptx::fence_products();
          start_scores(scores[0], place_);
          hand_on_turn();
        });
        ptx::wait_products<0>();
      } else {
        ptx::fence_products();
        start_scores(scores[0], place_);
        if constexpr (kRescaleFirst) tile::rescale(output, shrink);
        ptx::wait(barrier(before, Layout::kOperandFull), before.parity);
        ptx::hold(output[0]);
        ptx::fence_products();
        start_values(output[0], powers, before);
        hand_on_turn();
        ptx::wait_products<1>();
      }
      ptx::hold(scores[0]);
      release_keys(place_);
      finish(scores[0], row, step, batch, head);
      scales_.template weigh<Weighing>(params_, state, scores, shrink);
      if constexpr (!kInParts) {
        ptx::pin(state.sum[0][0] + state.sum[0][1], shared_ + Layout::kUnused);
        ptx::wait_products<0>();
        ptx::hold(output[0]);
        release_values(before);
        if constexpr (!kRescaleFirst) tile::rescale(output, shrink);
        sums_.rescale(shrink);
        sums_.step(step, output);
      }
      tile::convert_powers<Element>(scores[0], powers);
    }
    if constexpr (Shape::kOutputApart && !kQueryInRegisters) {
      release(shared_ + Layout::kQueriesFree);
    }
    if constexpr (kInParts) {
      add_values<0>(output[0], shrink[0], powers, place_, [] {});
    } else {
      if constexpr (kRescaleFirst) tile::rescale(output, shrink);
      ptx::wait(barrier(place_, Layout::kOperandFull), place_.parity);
      ptx::hold(output[0]);
      ptx::fence_products();
      start_values(output[0], powers, place_);
      ptx::wait_products<0>();
      ptx::hold(output[0]);
      release_values(place_);
    }
    place_.advance();
    sums_.end(output);
  }

  // O = acc / l as 16-bit elements, 0 for a row without a visible key, by way of the consumer's own
  // rows of shared memory.
  __device__ __forceinline__ void store_output(const tile::RowState<1>& state,
                                               const float (&output)[1][kDimV / 8][4],
                                               const Row& row, int batch, int head) {
    using Panels = typename Layout::Output;
    const unsigned staging = shared_ + Layout::kOutput + consumer_ * Layout::kOutputBytes;
    float inverse[2];
    unsigned keep[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      inverse[half] = 1.0f / state.sum[0][half];
      keep[half] = tile::is_empty(state, 0, half) ? 0u : 0xffffffffu;
    }
    // Before a warp writes: the previous work's output has left, which only the thread that stored
    // it knows; or, where these are the rows of Q, the products of all four warps have read them.
    if (Shape::kOutputApart && warp_ == 0 && ptx::elect()) ptx::wait_stores_read();
    ptx::sync_threads(kStoreBarrier + static_cast<int>(consumer_), 128);
#pragma unroll
    for (int d = 0; d < kDimV / 16; ++d) {
      unsigned words[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float* piece = output[0][2 * d + i / 2];
        words[i] = Shape::Output::pack(piece[i % 2 * 2] * inverse[i % 2],
                                       piece[i % 2 * 2 + 1] * inverse[i % 2]) &
                   keep[i % 2];
      }
      ptx::store_matrices(staging + Panels::chunk(warp_ * 16 + lane_ % 16,
                                                  static_cast<unsigned>(2 * d) + lane_ / 16),
                          words[0], words[1], words[2], words[3]);
    }
    ptx::fence_shared_writes();
    ptx::sync_threads(kStoreBarrier + static_cast<int>(consumer_), 128);
    if (warp_ == 0 && ptx::elect()) {
#pragma unroll
      for (int panel = 0; panel < Panels::kCount; ++panel) {
        ptx::store_box(
            &maps_.o, staging + panel * Panels::kPanelBytes,
            {panel * Panels::kPanelColumns,
             row.row * kRows + (Shape::kHeadsTogether ? 0 : static_cast<int>(consumer_) * 64), head,
             batch});
      }
      ptx::commit_stores();
      if constexpr (!Shape::kOutputApart) ptx::wait_stores_read();
    }
    // Q may come again only when O has left.
    if constexpr (!Shape::kOutputApart) {
      ptx::sync_threads(kStoreBarrier + static_cast<int>(consumer_), 128);
    }
  }

  const AttentionParams& params_;
  const TensorMaps& maps_;
  const WorkParams& work_;
  const unsigned shared_;
  const unsigned consumer_;
  const unsigned warp_;
  const unsigned lane_;
  tile::WarpgroupQuery<Element, Shape::kDimQk, Shape::kQueryInRegisters> query_;
  Scales<Shape> scales_;
  Sums<Shape> sums_;
  RingPlace<Shape::kStages> place_;
  unsigned queries_parity_ = 0;
};

}  // namespace annulus::kernels

#endif  // ANNULUS_KERNELS_WGMMA_CONSUMER_CUH_
