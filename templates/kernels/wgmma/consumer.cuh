#ifndef ANNULUS_KERNELS_WGMMA_CONSUMER_CUH_
#define ANNULUS_KERNELS_WGMMA_CONSUMER_CUH_

// A consumer of wgmma_forward: one warpgroup computes 64 rows of every work, from the products to
// O.
//
// Buffers follow one protocol. The consumer waits for a buffer's "full" barrier before products
// read it, and each of its warps arrives once at the "free" barrier after the products that read it
// are complete. The number and order of waits and releases have to be the producer's
// (kernels/wgmma/producer.cuh), or one of them waits without end.

#include "kernels/wgmma/finish_block.cuh"
#include "kernels/wgmma/parts.cuh"
#include "kernels/wgmma/ping_pong.cuh"
#include "kernels/wgmma/promoted_accumulator.cuh"
#include "kernels/wgmma/scales.cuh"
#include "kernels/wgmma/store_output.cuh"
#include "kernels/wgmma/tile_scheduler.cuh"
#include "kernels/wgmma/work.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/tensor_copy.cuh"
#include "ptx/warpgroup.cuh"
#include "tile/row_io.cuh"
#include "tile/score_mod.cuh"
#include "tile/softmax.cuh"
#include "tile/warpgroup_multiply.cuh"

namespace annulus::kernels {

template <typename Shape, typename Mask, typename ScoreMod>
class Consumer {
  using Element = typename Shape::Element;
  using Layout = WgmmaLayout<Shape>;
  using Row = tile::TileRow<static_cast<TileOrder>(Shape::kTileOrder)>;
  using Weighing = tile::Weighing<ScoreMod, static_cast<Score>(Shape::kScore)>;
  enum : int {
    kBlocks = Shape::kBlocks,
    kBlockColumns = Shape::kColumns / kBlocks,
    kPieces = Shape::kColumns / 8,
    kBlockPieces = kBlockColumns / 8,
    kProbabilities = tile::Probabilities<Element, Shape::kColumns>::kCount,
    kDimV = Shape::kDimV,
    kRows = rows_of_work<Shape>(),
    kQueryInRegisters = Shape::kQueryInRegisters,
    kStoreBarrier = 8,  // + the number of the consumer
    // Sums of 8-bit products must be short. Without promotion, P V is computed in parts.
    kInParts = Element::kBytes == 1 && Shape::kPromoteSteps == 0,
    // A large output is rescaled before the next product with V is started, not after the previous
    // product has ended. The correction of step j is then applied in step j + 1.
    kRescaleFirst = kInParts || kDimV > 128,
    kIsList = has_entries<Shape>(),
    // Shapes without enough registers to keep the rows of the work during its steps.
    kFewRegisters = Shape::kConsumers == 3 || Shape::kColumns > 128 || Element::kBytes == 1,
  };
  static_assert(Shape::kPromoteSteps == 0 || !kRescaleFirst,
                "the promoted sums have the row max of the output");

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
        turns_(consumer),
        promoted_(shared, consumer, kStoreBarrier + static_cast<int>(consumer)) {}

  __device__ __forceinline__ void run() {
    turns_.begin();
    TileSchedulerConsumer<Shape> scheduler(shared_, work_);
#pragma unroll 1
    for (int index = scheduler.first(); index < work_.count; index = scheduler.next(index)) {
      compute(index);
    }
    turns_.end();
    if (warp_ == 0 && ptx::elect()) ptx::wait_stores_read();
  }

 private:
  // Barrier number `which` of a stage; WgmmaLayout in kernels/wgmma/work.cuh numbers them.
  __device__ __forceinline__ unsigned barrier(const RingPlace<Shape::kStages>& place,
                                              int which) const {
    return shared_ + Layout::kStageBarriers + place.stage * Layout::kStageBarrierBytes +
           static_cast<unsigned>(which) * ptx::kBarrierBytes;
  }
  // Each warp arrives once. After a warp has waited, its own products are complete; the PTX ISA
  // does not guarantee this for the products of the other three warps of the warpgroup.
  __device__ __forceinline__ void release(unsigned barrier) const {
    if (lane_ == 0) ptx::arrive(barrier);
  }
  // Every CTA of the cluster copies into the buffers of K and V, so the warp arrives in all of
  // them. The transposed V belongs to one CTA.
  __device__ __forceinline__ void release_keys(const RingPlace<Shape::kStages>& place) const {
    arrive_everywhere<Shape>(barrier(place, 1), lane_);
  }
  __device__ __forceinline__ void release_values(const RingPlace<Shape::kStages>& place) const {
    if constexpr (Layout::kTransposes) {
      release(barrier(place, Layout::kOperandFree));
    } else {
      arrive_everywhere<Shape>(barrier(place, Layout::kOperandFree), lane_);
    }
  }

  // The entries of a list for the tiles of a step.
  struct Entries {
    unsigned words[kBlocks];
  };
  // Reads the entries of the step at `place`. The producer wrote them before the step's keys
  // arrived, and will overwrite them when the keys are released. All lanes have read them on
  // return.
  __device__ __forceinline__ Entries read_entries(const RingPlace<Shape::kStages>& place) const {
    Entries entries;
    if constexpr (kIsList) {
#pragma unroll
      for (int b = 0; b < kBlocks; ++b) {
        entries.words[b] = ptx::load_shared(shared_ + Layout::kEntries +
                                            place.stage * Layout::kEntryBytes + 4 * b);
      }
      __syncwarp();
    }
    return entries;
  }

  // Starts the scores of the step at `place`. Requires: its keys have arrived.
  __device__ __forceinline__ void start_scores(float (&scores)[kPieces][4],
                                               const RingPlace<Shape::kStages>& place) const {
    tile::start_scores<Element, Shape::kDimQk, Shape::kColumns>(
        scores, query_, shared_ + Layout::kKeys + place.stage * Layout::Keys::kBytes);
    ptx::commit_products();
  }
  __device__ __forceinline__ void start_values(float (&output)[kDimV / 8][4],
                                               const unsigned (&probabilities)[kProbabilities][4],
                                               const RingPlace<Shape::kStages>& place) const {
    tile::start_values<Element, kDimV, Shape::kColumns>(
        output, probabilities, shared_ + Layout::kOperands + place.stage * Layout::kOperandBytes);
    ptx::commit_products();
  }

  // Rescales the output and adds P V in parts, complete on return (kernels/wgmma/parts.cuh).
  template <int kNext, typename StartNext>
  __device__ __forceinline__ void add_values(float (&output)[kDimV / 8][4],
                                             const float (&correction)[2],
                                             const unsigned (&probabilities)[kProbabilities][4],
                                             const RingPlace<Shape::kStages>& place,
                                             const StartNext& start_next) const {
    ptx::wait(barrier(place, Layout::kOperandFull), place.parity);
    // start_next is called inside, so that the next scores start after the last part.
    add_values_in_parts<Element, kDimV, Shape::kColumns, kNext>(
        output, correction, probabilities,
        shared_ + Layout::kOperands + place.stage * Layout::kOperandBytes, start_next);
    release_values(place);
  }

  // Turns the products of a step into the scores that softmax takes: scaled, if that must happen
  // before masking, and -inf if the query does not see the key. The tiles of a step are finished
  // one by one, because each has its own mask.
  __device__ __forceinline__ void finish(float (&scores)[kPieces][4], const Row& row,
                                         const Entries& entries, int step, int batch,
                                         int head) const {
    const tile::LanePlace place = {static_cast<int>(row_in_tile()),
                                   static_cast<int>(lane_ % 4 * 2)};
#pragma unroll
    for (int b = 0; b < kBlocks; ++b) {
      auto& of_block = reinterpret_cast<float(&)[1][kBlockPieces][4]>(scores[b * kBlockPieces]);
      scales_.finish(params_, of_block, b);
      const int index = step * kBlocks + b;
      tile::ColumnTile now;
      if constexpr (kIsList) {
        now = Row::tile_of(entries.words[b]);
      } else {
        now = row.tile(kBlocks == 1 || index < row.count ? index : row.count - 1);
      }
      finish_block<Shape, Mask, ScoreMod>(params_, of_block, row, index, now, batch, head, place);
    }
  }
  // The lane's first row, counted in the CTA's tile row.
  __device__ __forceinline__ unsigned row_in_tile() const {
    return (Shape::kPackedHeads ? 0 : consumer_ * 64) + warp_ * 16 + lane_ / 4;
  }

  // A work, and the head and rows of it that this consumer computes.
  struct Part {
    Work<static_cast<TileOrder>(Shape::kTileOrder)> work;
    int head;
    tile::LaneRows rows;  // the lane's rows
  };
  __device__ __forceinline__ Part find_part(int index) const {
    const auto work = find_work<Shape>(params_, work_, index);
    const int head = work.head + (Shape::kPackedHeads ? static_cast<int>(consumer_) : 0);
    const tile::TilePlace rows = tile::query_place<Shape, kRows>(params_, work.row.row);
    return {work,
            head,
            {(static_cast<long long>(work.batch) * params_.heads + head) * params_.seq_q,
             rows.first + static_cast<int>(row_in_tile()), rows.end, lane_}};
  }

  // Computes one work: the state starts empty or from the carried state, is updated in all steps,
  // and is stored.
  __device__ __forceinline__ void compute(int index) {
    tile::RowState<1> state;
    float output[1][kDimV / 8][4];
    tile::start_empty(state, output);
    const Part part = find_part(index);
    if (Shape::kSplit && part.work.row.row < 0) return;
    const int steps = steps_of<kBlocks>(part.work.row.count);
    scales_.begin(params_, part.work.batch, part.head, part.rows.first_row);
    if constexpr (Shape::kCarryIn) {
      // A carried state counts once: only the first segment of a split row starts from it.
      if (tile::given<Shape>(params_.acc_in) && (!Shape::kSplit || part.work.row.begins)) {
        tile::load_state(state, output, params_, part.rows);
        scales_.enter(state, output);
      }
    }
    // The producer loads Q under the same condition.
    if (steps > 0 || !Shape::kOutputApart) {
      ptx::wait(shared_ + Layout::kQueriesFull, queries_parity_);
      queries_parity_ ^= 1;
    }
    if (steps > 0) attend(state, output, part.work.row, steps, part.work.batch, part.head);
    if constexpr (kFewRegisters) {
      // Finds the part again instead of keeping it in registers through the steps. `index` is made
      // opaque, because the compiler would otherwise keep the values that it computed before.
      ptx::make_opaque(index);
      finish_work(state, output, find_part(index));
    } else {
      finish_work(state, output, part);
    }
  }

  // Stores the result of a work: the state of a segment is written to its slot for combine_splits;
  // finish_row stores a whole row.
  __device__ __forceinline__ void finish_work(tile::RowState<1>& state,
                                              float (&output)[1][kDimV / 8][4], const Part& part) {
    tile::complete_sums(state);
    scales_.leave(params_, part.work.batch, part.head, state, output);
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
    // If the output has memory of its own, attend() has released Q already, as soon as no product
    // needed it. Otherwise O was staged in the rows of Q until now, even for a row without steps.
    if constexpr (!Shape::kOutputApart) release(shared_ + Layout::kQueriesFree);
  }

  // Stores a whole row: its state, or LSE and O. A sink logit is added when O is written; for a
  // carried state, a later launch adds it.
  __device__ __forceinline__ void finish_row(tile::RowState<1>& state,
                                             float (&output)[1][kDimV / 8][4], const Row& row,
                                             int batch, int head, const tile::LaneRows& lane_rows) {
    if (Shape::kCarryOut && tile::given<Shape>(params_.acc_out)) {
      // The state may be written to the memory that it was read from, and one lane writes numbers
      // that all four lanes of a quad have read. A row without steps has no other synchronisation
      // between them.
      if constexpr (Shape::kCarryIn) __syncwarp();
      tile::store_state(state, output,
                        tile::StateOut{params_.acc_out, params_.m_out, params_.l_out}, lane_rows);
      return;
    }
    if constexpr (Shape::kSinkLogit) {
      if (tile::given<Shape>(params_.score.sinks)) {
        tile::add_sink(state, output,
                       params_.score.sinks[static_cast<unsigned>(head) %
                                           static_cast<unsigned>(params_.score.sink_count)]);
      }
    }
    tile::store_lse(state, params_, lane_rows);
    store_output<Shape>(state, output, maps_, shared_, consumer_, warp_, lane_,
                        kStoreBarrier + static_cast<int>(consumer_),
                        tile::query_place<Shape, kRows>(params_, row.row), batch, head);
  }

  // All steps of a work; it has at least one. The comment at the start of wgmma_forward.cu
  // describes the order. The scores of step 0 overlap with no product with V, so they are computed
  // before the loop. The product with V of the last step comes after the loop. In the loop,
  // `before` is the stage of the previous step, whose V is not yet multiplied, and place_ is the
  // stage of this step.
  __device__ __forceinline__ void attend(tile::RowState<1>& state, float (&output)[1][kDimV / 8][4],
                                         const Row& row, int steps, int batch, int head) {
    unsigned probabilities[kProbabilities][4];
    float correction[1][2];
    query_.read(shared_ + Layout::kQueries + consumer_ * Layout::Queries::kBytes, warp_, lane_);
    if constexpr (Shape::kOutputApart && kQueryInRegisters) {
      // Q is in registers now. All lanes must have read their part before one of them lets the next
      // copy overwrite it; the fence orders their reads before the asynchronous copy's writes.
      ptx::fence_shared_writes();
      __syncwarp();
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
      const Entries entries = read_entries(place_);
      release_keys(place_);
      finish(scores[0], row, entries, 0, batch, head);
      scales_.template online_softmax<Weighing>(params_, state, scores, correction);
      tile::convert_probabilities<Element>(scores[0], probabilities);
    }
    // Without a carried state the output is still zero here and needs no rescaling.
    if constexpr (Shape::kCarryIn && !kRescaleFirst) tile::rescale(output, correction);
#pragma unroll 1
    for (int step = 1; step < steps; ++step) {
      float scores[1][kPieces][4];
      const RingPlace<Shape::kStages> before = place_;
      place_.advance();
      scales_.read(params_, row, step);
      ptx::wait(barrier(place_, 0), place_.parity);
      turns_.take();
      if constexpr (kInParts) {
        add_values<1>(output[0], correction[0], probabilities, before, [&] {
          ptx::fence_products();
          start_scores(scores[0], place_);
          turns_.hand_on();
        });
        ptx::wait_products<0>();
      } else {
        ptx::fence_products();
        start_scores(scores[0], place_);
        if constexpr (kRescaleFirst) tile::rescale_moved(output, correction);
        ptx::wait(barrier(before, Layout::kOperandFull), before.parity);
        ptx::hold(output[0]);
        ptx::fence_products();
        start_values(output[0], probabilities, before);
        turns_.hand_on();
        ptx::wait_products<1>();
      }
      ptx::hold(scores[0]);
      const Entries entries = read_entries(place_);
      release_keys(place_);
      finish(scores[0], row, entries, step, batch, head);
      scales_.template online_softmax<Weighing>(params_, state, scores, correction);
      if constexpr (!kInParts) {
        // Keeps the exponentials above the wait, so that they overlap with the product with V.
        ptx::pin(state.sum[0][0] + state.sum[0][1], shared_ + Layout::kUnused);
        ptx::wait_products<0>();
        ptx::hold(output[0]);
        release_values(before);
        if constexpr (!kRescaleFirst) tile::rescale_moved(output, correction);
      }
      tile::convert_probabilities<Element>(scores[0], probabilities);
      // After the conversion, because fewer registers are in use.
      promoted_.step(step, state, scales_.unit(), output);
    }
    // The last scores are complete, so no product reads Q any more.
    if constexpr (Shape::kOutputApart && !kQueryInRegisters) {
      release(shared_ + Layout::kQueriesFree);
    }
    if constexpr (kInParts) {
      add_values<0>(output[0], correction[0], probabilities, place_, [] {});
    } else {
      if constexpr (kRescaleFirst) tile::rescale(output, correction);
      ptx::wait(barrier(place_, Layout::kOperandFull), place_.parity);
      ptx::hold(output[0]);
      ptx::fence_products();
      start_values(output[0], probabilities, place_);
      ptx::wait_products<0>();
      ptx::hold(output[0]);
      release_values(place_);
    }
    place_.advance();
    promoted_.end(steps, state, scales_.unit(), output);
  }

  const AttentionParams& params_;
  const TensorMaps& maps_;
  const WorkParams& work_;
  const unsigned shared_;
  const unsigned consumer_;
  const unsigned warp_;
  const unsigned lane_;
  const PingPong<Shape::kConsumers, Shape::kTurns> turns_;
  tile::WarpgroupQuery<Element, Shape::kDimQk, Shape::kQueryInRegisters> query_;
  Scales<Shape> scales_;
  PromotedAccumulator<Shape> promoted_;
  RingPlace<Shape::kStages> place_;
  unsigned queries_parity_ = 0;
};

}  // namespace annulus::kernels

#endif  // ANNULUS_KERNELS_WGMMA_CONSUMER_CUH_
