#ifndef ANNULUS_KERNELS_BATCH_CHUNK_CONSUMER_CUH_
#define ANNULUS_KERNELS_BATCH_CHUNK_CONSUMER_CUH_

// A consumer of chunk_wgmma_forward: one warpgroup computes 64 rows of every work, in the order of
// steps that wgmma_forward.cu describes, and writes their results from its accumulators. Buffers
// follow the protocol of kernels/wgmma/consumer.cuh.

#include "kernels/batch/chunk_layout.cuh"
#include "kernels/wgmma/ping_pong.cuh"
#include "kernels/wgmma/ring_place.cuh"
#include "tile/batch_row.cuh"
#include "tile/packed_scores.cuh"
#include "tile/row_io.cuh"
#include "tile/score_mod.cuh"
#include "tile/softmax.cuh"
#include "tile/warpgroup_multiply.cuh"

namespace annulus::kernels {

template <typename Shape, typename Mask, typename ScoreMod>
class ChunkConsumer {
  using Element = typename Shape::Element;
  using Layout = ChunkLayout<Shape>;
  using Weighing = tile::Weighing<ScoreMod, static_cast<Score>(Shape::kScore)>;
  using KeysThere = tile::KeysThere<Shape::kTileColumns>;
  enum : int {
    kColumns = Shape::kTileColumns,
    kPieces = kColumns / 8,
    kProbabilities = tile::Probabilities<Element, kColumns>::kCount,
    kOutputPieces = Layout::kValueColumns / 8,
    // A large output is rescaled before the next product with V is started, not after the previous
    // product has ended. The correction of step j is then applied in step j + 1.
    kRescaleFirst = Layout::kValueColumns > 128,
  };

 public:
  __device__ __forceinline__ ChunkConsumer(const BatchParams& params, unsigned char* memory,
                                           unsigned consumer)
      : params_(params),
        memory_(memory),
        shared_(ptx::shared_address(memory)),
        lane_(threadIdx.x % 32),
        turns_(consumer) {
    query_.read(shared_ + Layout::kQueries + consumer * (64 * Layout::Queries::kRowBytes),
                threadIdx.x / 32 % 4, lane_);
  }

  __device__ __forceinline__ void run() {
    turns_.begin();
    const int works = params_.tables.header->works * params_.row_columns;
    unsigned parity = 0;
#pragma unroll 1
    for (int at = static_cast<int>(blockIdx.x); at < works; at += static_cast<int>(gridDim.x)) {
      ptx::wait(shared_ + Layout::kQueriesFull, parity);
      compute(reinterpret_cast<const ChunkWork*>(memory_ + Layout::kWorks)[parity]);
      parity ^= 1;
    }
    turns_.end();
  }

 private:
  // Barrier number `which` of a stage; ChunkLayout numbers them.
  __device__ __forceinline__ unsigned barrier(const RingPlace<Shape::kStages>& place,
                                              int which) const {
    return shared_ + Layout::kStageBarriers + place.stage * Layout::kStageBarrierBytes +
           static_cast<unsigned>(which) * ptx::kBarrierBytes;
  }
  // Each warp arrives once.
  __device__ __forceinline__ void release(unsigned barrier) const {
    if (lane_ == 0) ptx::arrive(barrier);
  }

  // Releases Q and the memory of the previous work, which the next work will use.
  __device__ __forceinline__ void release_queries() const {
    __syncwarp();
    release(shared_ + Layout::kQueriesFree);
  }

  // Starts the scores of the step at `place`. Requires: its keys have arrived.
  __device__ __forceinline__ void start_scores(float (&scores)[kPieces][4],
                                               const RingPlace<Shape::kStages>& place) const {
    tile::start_scores<Element, Shape::kDimQk, kColumns>(
        scores, query_, shared_ + Layout::kKeys + place.stage * Layout::Keys::kBytes);
    ptx::commit_products();
  }
  __device__ __forceinline__ void start_values(float (&output)[kOutputPieces][4],
                                               const unsigned (&probabilities)[kProbabilities][4],
                                               const RingPlace<Shape::kStages>& place) const {
    tile::start_values<Element, Layout::kValueColumns, kColumns>(
        output, probabilities, shared_ + Layout::kValues + place.stage * Layout::Values::kBytes);
    ptx::commit_products();
  }

  // Releases the keys of the step at place_, and the data about the step that the producer wrote.
  __device__ __forceinline__ void release_keys() const {
    __syncwarp();
    release(barrier(place_, 1));
  }

  // The number of the lane's row in the tile. The thread index is opaque, so that no row's number,
  // query or head is kept in registers during all steps.
  __device__ __forceinline__ int packed_row(int half) const {
    int thread = static_cast<int>(threadIdx.x) - 128;
    ptx::make_opaque(thread);
    const auto number = static_cast<unsigned>(thread);
    return static_cast<int>(number / 32 * 16 + number % 32 / 4) + 8 * half;
  }

  // Turns the products of the step at place_ into scores for softmax, and releases the step's keys.
  __device__ __forceinline__ void finish(float (&scores)[1][kPieces][4],
                                         const ChunkWork& work) const {
    const unsigned told = shared_ + Layout::kSteps + place_.stage * Layout::kStepBytes;
    const int first_key = static_cast<int>(ptx::load_shared(told));
    const bool masked = ptx::load_shared(told + 4) != 0;
    if (!masked) release_keys();
    const auto row_of = [&](int, int half) {
      return tile::PackedRow(params_, work.row, work.column, packed_row(half));
    };
    tile::scale_packed_scores<Shape, ScoreMod>(scores, params_, work.row, first_key, lane_, row_of);
    if (masked) {
      KeysThere there;
#pragma unroll
      for (int i = 0; i < KeysThere::kWords; ++i) {
        there.words[i] = ptx::load_shared(told + 8 + 4 * i);
      }
      release_keys();
      const bool full =
          work.row.runs.template all_see<Shape::kRuns>(first_key, first_key + kColumns);
      tile::hide_packed_scores<Shape, Mask>(scores, params_, work.row, first_key, full, there,
                                            lane_, row_of);
    }
  }

  __device__ __forceinline__ void compute(const ChunkWork& work) {
    tile::RowState<1> state;
    float output[1][kOutputPieces][4];
    tile::start_empty(state, output);
    if (work.steps > 0) {
      attend(state, output, work);
    } else {
      release_queries();
    }
    leave(state, output, work);
  }

  // All steps of a work. The scores of step 0 overlap with no product with V, so they are computed
  // before the loop. The product with V of the last step comes after the loop. In the loop,
  // `before` is the stage of the previous step, whose V is not yet multiplied, and place_ is the
  // stage of this step.
  __device__ __forceinline__ void attend(tile::RowState<1>& state,
                                         float (&output)[1][kOutputPieces][4],
                                         const ChunkWork& work) {
    unsigned probabilities[kProbabilities][4];
    float correction[1][2];
    const int steps = work.steps;
    const float factor = Weighing::factor(params_.scale);
    {
      float scores[1][kPieces][4];
      ptx::wait(barrier(place_, 0), place_.parity);
      ptx::fence_products();
      start_scores(scores[0], place_);
      ptx::wait_products<0>();
      ptx::hold(scores[0]);
      finish(scores, work);
      tile::online_softmax<Weighing::score()>(state, scores, factor, correction);
      tile::convert_probabilities<Element>(scores[0], probabilities);
    }
#pragma unroll 1
    for (int step = 1; step < steps; ++step) {
      float scores[1][kPieces][4];
      const RingPlace<Shape::kStages> before = place_;
      place_.advance();
      ptx::wait(barrier(place_, 0), place_.parity);
      turns_.take();
      ptx::fence_products();
      start_scores(scores[0], place_);
      if constexpr (kRescaleFirst) tile::rescale_moved(output, correction);
      ptx::wait(barrier(before, 2), before.parity);
      ptx::hold(output[0]);
      ptx::fence_products();
      start_values(output[0], probabilities, before);
      turns_.hand_on();
      ptx::wait_products<1>();
      ptx::hold(scores[0]);
      finish(scores, work);
      tile::online_softmax<Weighing::score()>(state, scores, factor, correction);
      // Keeps the exponentials above the wait, so that they overlap with the product with V.
      ptx::pin(state.sum[0][0] + state.sum[0][1], shared_ + Layout::kUnused);
      ptx::wait_products<0>();
      ptx::hold(output[0]);
      release(barrier(before, 3));
      if constexpr (!kRescaleFirst) tile::rescale_moved(output, correction);
      tile::convert_probabilities<Element>(scores[0], probabilities);
    }
    // The last scores are complete, so no product reads Q any more.
    release_queries();
    if constexpr (kRescaleFirst) tile::rescale_moved(output, correction);
    ptx::wait(barrier(place_, 2), place_.parity);
    ptx::hold(output[0]);
    ptx::fence_products();
    start_values(output[0], probabilities, place_);
    ptx::wait_products<0>();
    ptx::hold(output[0]);
    release(barrier(place_, 3));
    place_.advance();
  }

  // Writes the results of the rows. The two lanes of a pair exchange halves, so that each has four
  // neighbouring columns of one row in every piece: an even lane has the upper row, and an odd lane
  // the lower row.
  __device__ __forceinline__ void leave(tile::RowState<1>& state,
                                        float (&output)[1][kOutputPieces][4],
                                        const ChunkWork& work) const {
    tile::complete_sums(state);
    const int half = static_cast<int>(lane_ % 2);
    const bool lower = half != 0;
    tile::JoinedRow joined;
    joined.sum = lower ? state.sum[0][1] : state.sum[0][0];
    joined.row_max = lower ? state.row_max[0][1] : state.row_max[0][0];
    // Rows that saw no key are zeros, even if V has NaN.
    const bool empty = joined.sum == 0.0f;
    if (empty) joined.row_max = tile::minus_infinity();
#pragma unroll
    for (int d = 0; d < Shape::kDimV / 8; ++d) {
      float(&piece)[4] = output[0][d];
      float others[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        others[i] = __shfl_xor_sync(0xffffffffu, lower ? piece[i] : piece[2 + i], 1);
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float own = lower ? piece[2 + i] : piece[i];
        const float first = lower ? others[i] : own;
        const float last = lower ? own : others[i];
        piece[i] = empty ? 0.0f : first;
        piece[2 + i] = empty ? 0.0f : last;
      }
    }
    const int packed = packed_row(half);
    const tile::PackedRow here(params_, work.row, work.column, packed);
    if (here.exists) {
      int d = 0;
      tile::leave_row<Shape, 2>(params_, work.row, work.work, work.column, here, packed,
                                static_cast<int>(lane_ / 2 % 2), joined, [&](int, float(&acc)[4]) {
#pragma unroll
                                  for (int i = 0; i < 4; ++i) acc[i] = output[0][d][i];
                                  ++d;
                                });
    }
    __syncwarp();
  }

  const BatchParams& params_;
  unsigned char* const memory_;
  const unsigned shared_;
  const unsigned lane_;
  const PingPong<Layout::kConsumers, true> turns_;
  tile::WarpgroupQuery<Element, Shape::kDimQk, false, Shape::kTileRows> query_;
  RingPlace<Shape::kStages> place_;
};

}  // namespace annulus::kernels

#endif  // ANNULUS_KERNELS_BATCH_CHUNK_CONSUMER_CUH_
