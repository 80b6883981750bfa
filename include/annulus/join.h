#ifndef ANNULUS_JOIN_H_
#define ANNULUS_JOIN_H_

// Joins partial results over ranks: each rank has O and LSE, or the state, of the same queries over
// its own keys, for example if the cache of a request is sharded (context parallelism for
// decoding). The join computes the result over all keys. Partial results may come from any kernels.
//
//   GatherPlan gather = plan_gather(device, communicator, gather_problem);  // if heads are sharded
//   JoinPlan join = plan_join(device, communicator, problem);               // on every rank
//   gather.run(stream, gather_operands, workspace);                         // once a layer
//   join.run(stream, operands, workspace);                                  // once a layer
//
// All ranks need all queries. If a rank has computed only the queries of its own heads, as after
// head-parallel projections, a GatherPlan first sends them to all ranks by one exchange.
//
// A rank receives O and LSE of its slice: all rows and heads, or the rows or heads from r N / P to
// before (r + 1) N / P for rank r of P. Every row of a head is merged once, over the ranks' partial
// results in rank order, by the formula of annulus/merge.h. So the bits do not depend on the
// slices, and a rank whose keys a row does not see (LSE -inf, l 0) adds nothing. A sink logit would
// count once per rank: pass it to the join, not to the partial results.
//
// Rules of both kinds of plans. Copies share a plan. Only one thread at a time may run it, because
// it uses the communicator. run() puts the work on `stream` and returns when NCCL has queued its
// messages, like Communicator::exchange, whose errors it throws; it throws Error{kInvalidArgument}
// for operands that do not fit the problem before anything is queued. Every rank calls it with the
// same number of rows. It allocates nothing itself. The caller owns all device memory, which must
// stay until the work on the stream has ended. Base addresses of Q, O and acc are multiples of 16
// bytes, others of 4; strides of Q and O are multiples of 8. Memory that is written overlaps no
// other memory of the call.
//
// Letters: P ranks, H query heads, Dv the head dim of V and O.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "annulus/communicator.h"
#include "annulus/merge.h"

namespace annulus::inline v0 {

// The slice of the result that a rank receives.
enum class JoinedSlices : int {
  kAll = 1,    // all rows of all heads
  kHeads = 2,  // all rows of the rank's heads, for head-parallel projections
  kRows = 3,   // the rank's rows of all heads, for data-parallel layers
};
ANNULUS_EXPORT const char* to_string(JoinedSlices slices);  // "all", "heads", "rows"

struct JoinProblem {
  std::int64_t heads = 1;                // H >= 1
  std::int64_t dim_v = 0;                // a multiple of 8 from 8 to 1024
  Dtype dtype = Dtype::kBfloat16;        // dtype of every O: kFloat16 or kBfloat16
  LseBase lse_base = LseBase::kNatural;  // base of every LSE, on every rank
  std::int64_t max_rows = 0;             // the most rows of a run; at least 1
  JoinedSlices slices = JoinedSlices::kAll;
  // The form of the partial results. States avoid rounding to a 16-bit O, but have twice the bytes.
  PartialForm form = PartialForm::kOutputs;
  bool carry_out = false;    // write the state instead of O and LSE; requires kStates
  bool sink_logits = false;  // JoinOperands::sink_logits is set; not with carry_out
};

// The tensors of one run, in device memory.
struct JoinOperands {
  std::int64_t rows = 0;       // 0 to JoinProblem::max_rows, the same on every rank
  const void* o = nullptr;     // [rows, H, Dv]: this rank's partial result
  const float* lse = nullptr;  // [rows, H] in any order
  // With PartialForm::kStates instead of o and lse, contiguous: [rows, H, Dv] and [rows, H].
  StatePointers state{};
  // [H], with JoinProblem::sink_logits, the same on every rank; see MergeOperands.
  const float* sink_logits = nullptr;
  RowStrides o_strides;
  RowStrides lse_strides;

  void* joined_o = nullptr;      // [rows of the slice, heads of the slice, Dv]
  float* joined_lse = nullptr;   // [rows of the slice, heads of the slice]; null: not written
  StatePointers joined_state{};  // the contiguous state to write with carry_out
  RowStrides joined_o_strides;
  RowStrides joined_lse_strides;
};

// The decisions of planning, for people and for logs.
struct JoinInfo {
  int rank = 0;
  int ranks = 0;
  int exchanges = 0;            // groups of messages in sequence in a run of max_rows
  std::int64_t bytes_sent = 0;  // bytes that this rank sends in such a run
  std::string reason;           // why this number of exchanges
  double compile_ms = 0;
};

// The rows or heads [begin, end) of a slice.
struct SliceRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
// Slice `rank` of `ranks` slices of `count` rows or heads.
ANNULUS_EXPORT SliceRange slice_of(std::int64_t count, int ranks, int rank);

// A JoinProblem made ready for a device and a communicator.
class ANNULUS_EXPORT JoinPlan {
 public:
  struct Impl;
  explicit JoinPlan(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  JoinPlan(const JoinPlan&) = default;
  JoinPlan& operator=(const JoinPlan&) = default;

  const JoinProblem& problem() const;
  const JoinInfo& info() const;

  // Bytes of scratch memory that a run of max_rows needs for its messages, 256-byte aligned.
  std::size_t workspace_bytes() const;
  void run(void* stream, const JoinOperands& operands, void* workspace) const;

 private:
  std::shared_ptr<const Impl> impl_;
};

ANNULUS_EXPORT void validate(const JoinProblem& problem);

// Compiles the kernels. Every rank calls it, and no rank waits for another. Throws the errors of
// validate(), Error{kInvalidArgument} for a communicator of another device, Error{kUnsupported} for
// more than 16 ranks (kMaxMergeInputs), Error{kCompile} and Error{kDevice}.
ANNULUS_EXPORT JoinPlan plan_join(const Device& device, const Communicator& communicator,
                                  const JoinProblem& problem);

// Sends rows of Q to all ranks. Rank r of P has the heads of slice_of(heads, P, r).
struct GatherProblem {
  std::int64_t heads = 1;          // H >= 1, of all ranks together
  std::int64_t dim = 0;            // head dim: a multiple of 8 from 8 to 1024
  Dtype dtype = Dtype::kBfloat16;  // kFloat16 or kBfloat16
  std::int64_t max_rows = 0;       // the most rows of a run; at least 1
};
struct GatherOperands {
  std::int64_t rows = 0;     // 0 to GatherProblem::max_rows, the same on every rank
  const void* q = nullptr;   // [rows, heads of this rank, dim]; ignored if the rank has no heads
  void* gathered = nullptr;  // [rows, H, dim]
  RowStrides q_strides;
  RowStrides gathered_strides;
};

// A GatherProblem made ready for a device and a communicator.
class ANNULUS_EXPORT GatherPlan {
 public:
  struct Impl;
  explicit GatherPlan(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  GatherPlan(const GatherPlan&) = default;
  GatherPlan& operator=(const GatherPlan&) = default;

  const GatherProblem& problem() const;
  // Bytes of scratch memory that a run of max_rows needs for its messages, 256-byte aligned.
  std::size_t workspace_bytes() const;

  // Puts a launch, one exchange, and a launch on `stream`.
  void run(void* stream, const GatherOperands& operands, void* workspace) const;

 private:
  std::shared_ptr<const Impl> impl_;
};

// These functions throw the errors of validate(const JoinProblem&) and plan_join().
ANNULUS_EXPORT void validate(const GatherProblem& problem);
ANNULUS_EXPORT GatherPlan plan_gather(const Device& device, const Communicator& communicator,
                                      const GatherProblem& problem);

}  // namespace annulus::inline v0

#endif  // ANNULUS_JOIN_H_
