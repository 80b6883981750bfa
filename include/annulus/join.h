#ifndef ANNULUS_JOIN_H_
#define ANNULUS_JOIN_H_

// Joining partial answers over ranks: each rank has O and LSE, or the state, of the same queries
// over keys of its own, as where the cache of one request is sharded (context parallelism for
// decoding), and the answer over all keys is wanted. The partial answers may come from any kernels,
// ours or the engine's.
//
//   JoinPlan plan = plan_join(device, communicator, problem);   // on every rank
//   plan.run(stream, operands, workspace);                      // once a layer, on every rank
//
// Queries have to be on all ranks. Where ranks have made those of their own heads alone, as behind
// head-parallel projections, a GatherPlan gives all of them to all by one exchange in front.
//
// What a rank gets is O and LSE of its slice: rank r of P the rows, or the heads, from r N / P on
// to (r + 1) N / P, or all of them. Every row of a head is merged once, of the ranks' partial
// answers in the order of the ranks, by the law of annulus/merge.h: so the bits do not depend on
// how the slices are cut, and a rank whose keys a row does not see (LSE -inf, l 0) counts for
// nothing.
//
// A sink logit would count once for each rank: it is left out of the partial answers and given to
// the join.
//
// Letters: P ranks, H query heads, Dv the head dim of V and O.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "annulus/communicator.h"
#include "annulus/merge.h"

namespace annulus::inline v0 {

enum class JoinedSlices : int {
  kAll = 1,    // every rank gets all rows of all heads
  kHeads = 2,  // a rank gets all rows of its heads, as head-parallel projections take them
  kRows = 3,   // a rank gets its rows of all heads, as data-parallel layers take them
};
ANNULUS_EXPORT const char* to_string(JoinedSlices slices);  // "all", "heads", "rows"

struct JoinProblem {
  std::int64_t heads = 1;                // H >= 1
  std::int64_t dim_v = 0;                // a multiple of 8 from 8 to 1024
  Dtype dtype = Dtype::kBfloat16;        // of all O: kFloat16 or kBfloat16
  LseBase lse_base = LseBase::kNatural;  // of all LSE, on every rank
  std::int64_t most_rows = 0;            // of a run; at least 1
  JoinedSlices slices = JoinedSlices::kAll;
  // What the partial answers are. States lose nothing to a 16-bit O in between, and are twice as
  // many bytes.
  PartialForm form = PartialForm::kOutputs;
  bool carry_out = false;    // leave the state over all keys instead of O and LSE; with kStates
  bool sink_logits = false;  // JoinOperands::sink_logits are given; not with carry_out
};

// What a run reads and writes, in device memory, owned by the caller, who leaves it there until the
// work that was put on the stream has ended. Base addresses of O are multiples of 16 bytes, others
// of 4; strides count elements, those of O multiples of 8. What is written overlaps nothing else.
struct JoinOperands {
  std::int64_t rows = 0;       // 0 to JoinProblem::most_rows, the same on every rank
  const void* o = nullptr;     // [rows, H, Dv]: this rank's partial answer
  const float* lse = nullptr;  // [rows, H] in any order
  // With PartialForm::kStates in place of these two: contiguous [rows, H, Dv] and [rows, H], acc at
  // a multiple of 16 bytes. Only read.
  StatePointers state{};
  // [H], with JoinProblem::sink_logits, the same on every rank: as MergeOperands has them.
  const float* sink_logits = nullptr;
  RowStrides o_strides;
  RowStrides lse_strides;

  void* joined_o = nullptr;      // [rows of the slice, heads of the slice, Dv]
  float* joined_lse = nullptr;   // [rows of the slice, heads of the slice]; null: not written
  StatePointers joined_state{};  // with carry_out in place of these two: contiguous
  RowStrides joined_o_strides;
  RowStrides joined_lse_strides;
};

// Everything that was decided, for people and for logs.
struct JoinInfo {
  int rank = 0;
  int ranks = 0;
  int exchanges = 0;            // groups of messages, one after another, of a run of most_rows
  std::int64_t bytes_sent = 0;  // by this rank in such a run
  std::string reason;           // why it is done in so many exchanges
  double compile_ms = 0;
};

// Rows, or heads, of a slice.
struct SliceRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
// Slice `rank` of `ranks` of `count` rows or heads.
ANNULUS_EXPORT SliceRange slice_of(std::int64_t count, int ranks, int rank);

// A way of joining made ready. Copies share. One thread at a time may run it, since it uses the
// communicator.
class ANNULUS_EXPORT JoinPlan {
 public:
  struct Impl;
  explicit JoinPlan(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  // No move: a plan that was moved from would be none. A copy is a pointer.
  JoinPlan(const JoinPlan&) = default;
  JoinPlan& operator=(const JoinPlan&) = default;

  const JoinProblem& problem() const;
  const JoinInfo& info() const;

  // Scratch memory that a run of most_rows needs, 256-byte aligned: what is sent and what comes.
  std::size_t workspace_bytes() const;

  // Puts the work on `stream` and returns when NCCL has queued its messages, as
  // Communicator::exchange does, whose errors it throws; Error{kInvalidArgument} for operands that
  // the problem does not go with, before anything is queued. Every rank has to call it with as many
  // rows. Allocates nothing of its own.
  void run(void* stream, const JoinOperands& operands, void* workspace) const;

 private:
  std::shared_ptr<const Impl> impl_;
};

// Throws Error{kInvalidArgument} or Error{kUnsupported}, which names the wrong value and what would
// be right.
ANNULUS_EXPORT void validate(const JoinProblem& problem);

// Decides and compiles; every rank calls it, and none waits for another. Throws what validate()
// throws, Error{kInvalidArgument} for a communicator of another device, Error{kUnsupported} for
// more than 16 ranks (kMostMergeInputs), Error{kCompile} and Error{kDevice}.
ANNULUS_EXPORT JoinPlan plan_join(const Device& device, const Communicator& communicator,
                                  const JoinProblem& problem);

// Rows of Q of which each rank has those of its heads, slice_of(heads, P, rank), to all heads on
// all ranks.
struct GatherProblem {
  std::int64_t heads = 1;          // H >= 1, of all ranks together
  std::int64_t dim = 0;            // of a head: a multiple of 8 from 8 to 1024
  Dtype dtype = Dtype::kBfloat16;  // kFloat16 or kBfloat16
  std::int64_t most_rows = 0;      // of a run; at least 1
};

// As JoinOperands.
struct GatherOperands {
  std::int64_t rows = 0;     // 0 to GatherProblem::most_rows, the same on every rank
  const void* q = nullptr;   // [rows, heads of this rank, dim]; ignored where it has none
  void* gathered = nullptr;  // [rows, H, dim]
  RowStrides q_strides;      // multiples of 8, as the next ones
  RowStrides gathered_strides;
};

// A way of gathering made ready. Copies share. One thread at a time may run it, since it uses the
// communicator.
class ANNULUS_EXPORT GatherPlan {
 public:
  struct Impl;
  explicit GatherPlan(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  // No move: a plan that was moved from would be none. A copy is a pointer.
  GatherPlan(const GatherPlan&) = default;
  GatherPlan& operator=(const GatherPlan&) = default;

  const GatherProblem& problem() const;
  // Scratch memory that any run needs, 256-byte aligned: what is sent and what comes.
  std::size_t workspace_bytes() const;

  // As JoinPlan::run: a launch, one exchange, and a launch.
  void run(void* stream, const GatherOperands& operands, void* workspace) const;

 private:
  std::shared_ptr<const Impl> impl_;
};

// As validate(const JoinProblem&) and plan_join.
ANNULUS_EXPORT void validate(const GatherProblem& problem);
ANNULUS_EXPORT GatherPlan plan_gather(const Device& device, const Communicator& communicator,
                                      const GatherProblem& problem);

}  // namespace annulus::inline v0

#endif  // ANNULUS_JOIN_H_
