#ifndef ANNULUS_MERGE_H_
#define ANNULUS_MERGE_H_

// Merges the results of attention over several disjoint sets of keys into the result over all of
// them, for engines that shard keys between ranks (decode context parallelism) or compute a prefix
// that requests share separately.
//
//   MergePlan plan = plan_merge(device, problem);   // once: compiles the kernel
//   plan.run(stream, operands);                     // once a layer, after the runs that it merges
//
// Each input is an O and an LSE over keys that no other input has, written by BatchPlan with
// want_lse, by Plan, or by other libraries. For each row and head, with LSE in base b,
//
//   LSE = log_b(sum of b^LSE_i),   O = sum of b^(LSE_i - LSE) O_i
//
// in fp32, after subtracting the largest LSE_i (Ye et al., FlashInfer, 2024, section 2.2; Milakov
// and Gimelshein, Online normalizer calculation for softmax, 2018). Inputs may also be states
// (annulus/problem.h), which avoid rounding to a 16-bit O. If one run can start from the state of
// another on the same device, no merge is needed.
//
// Letters: H query heads, Dv the head dim of V and O.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "annulus/batch.h"
#include "annulus/types.h"

namespace annulus::inline v0 {

constexpr std::int64_t kMaxMergeInputs = 16;

// The form of a result over some of the keys.
enum class PartialForm : int {
  kOutputs = 1,  // O and LSE
  kStates = 2,   // acc, m and l, as in annulus/problem.h
};

struct MergeProblem {
  std::int64_t heads = 1;                // H >= 1
  std::int64_t dim_v = 0;                // a multiple of 8 from 8 to 1024
  Dtype dtype = Dtype::kBfloat16;        // dtype of every O: kFloat16 or kBfloat16
  LseBase lse_base = LseBase::kNatural;  // base of every LSE
  std::int64_t inputs = 2;               // 2 to kMaxMergeInputs
  std::int64_t max_rows = 0;  // the most rows of a run; at least 1; rows times heads is below 2^31
  PartialForm form = PartialForm::kOutputs;  // form of the inputs
  bool carry_out = false;    // write the state instead of O and LSE; requires kStates
  bool sink_logits = false;  // MergeOperands::sink_logits is set; not with carry_out
};

// One input. If the LSE of a row of a head is -inf, or its l is 0, the row has seen no key: it adds
// nothing, and its O, or its m and acc, may hold anything. O and acc are then not read.
struct MergeInput {
  const void* o = nullptr;     // [rows, H, Dv]; null with PartialForm::kStates
  const float* lse = nullptr;  // [rows, H] in any order; null with PartialForm::kStates
  StatePointers
      state{};  // the input with kStates: contiguous [rows, H, Dv] and [rows, H]; only read
};

// The tensors of one run, in device memory, which the caller owns and which must stay until the
// work on the stream has ended. Base addresses of O and acc are multiples of 16 bytes, others of 4.
// Memory that is written overlaps no other memory of the call, except that `o` and `lse` may be the
// first input's (the same address and strides), and so may `state`.
struct MergeOperands {
  // The inputs of the problem, in host memory, which only the call reads.
  std::span<const MergeInput> inputs;
  // The strides of every input; ignored with PartialForm::kStates.
  RowStrides input_o_strides;  // multiples of 8
  RowStrides input_lse_strides;

  void* o = nullptr;     // [rows, H, Dv]; null with carry_out
  float* lse = nullptr;  // [rows, H] in any order; null: not written
  // Rows and heads of the outputs must not overlap. With `rows` they are checked as in
  // BatchOperands.
  RowStrides o_strides;  // multiples of 8
  RowStrides lse_strides;

  // [1], int32: the number of rows of this run, clamped to [0, MergeProblem::max_rows]. Null:
  // max_rows. Other rows are neither read nor written.
  const std::int32_t* rows = nullptr;

  // [H], with MergeProblem::sink_logits: the logit of each query head's attention sink, which
  // counts once, as a key without a value that every row sees (Score::sink_logit). -inf: no sink.
  const float* sink_logits = nullptr;
  StatePointers
      state{};  // the state to write with carry_out: contiguous [rows, H, Dv] and [rows, H]
};

// The decisions of planning, for people and for logs.
struct MergeInfo {
  std::string specialised_source;  // the compiled source
  std::int64_t ctas = 0;           // CTAs of a run
  int threads = 0;                 // threads of a CTA
  int registers = 0;               // registers of a thread; an estimate on a simulated device
  int local_bytes = 0;             // local memory of a thread: spills
  double compile_ms = 0;           // time to find or compile the kernel
};

// A MergeProblem made ready for a device. A plan is immutable, any number of threads may use it at
// a time, and copies share it. It keeps what it needs of the device alive, but a captured graph
// does not keep the plan alive.
class ANNULUS_EXPORT MergePlan {
 public:
  struct Impl;
  explicit MergePlan(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  MergePlan(const MergePlan&) = default;
  MergePlan& operator=(const MergePlan&) = default;

  const MergeProblem& problem() const;
  const MergeInfo& info() const;

  // Puts one launch on `stream`, whose size depends only on the bounds, and returns. It allocates
  // nothing, takes no lock, does not wait and may be captured. Throws Error{kInvalidArgument} for
  // operands that do not fit the problem, and Error{kDevice}; then nothing was launched.
  //
  // Inputs are added in their order, and a row's bits depend only on the inputs of this row. If
  // only one input has seen keys, the row's O and LSE are copied bit for bit, unless there is a
  // sink or the form changes. If no input has seen keys, O = 0 and LSE = -inf or the sink logit; in
  // a state acc = 0, m = -inf and l = 0. A NaN stays in its row. LSE = +inf outweighs others.
  void run(void* stream, const MergeOperands& operands) const;

 private:
  std::shared_ptr<const Impl> impl_;
};

ANNULUS_EXPORT void validate(const MergeProblem& problem);

// Compiles the kernel. Throws the errors of validate(), Error{kCompile} and Error{kDevice}.
ANNULUS_EXPORT MergePlan plan_merge(const Device& device, const MergeProblem& problem);

}  // namespace annulus::inline v0

#endif  // ANNULUS_MERGE_H_
