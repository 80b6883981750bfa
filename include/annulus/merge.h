#ifndef ANNULUS_MERGE_H_
#define ANNULUS_MERGE_H_

// The answers of attention over several sets of keys to that over all of them: what an engine does
// whose keys are sharded between ranks (decode context parallelism), or that computes a prefix
// which requests share apart from the rest.
//
//   MergePlan plan = plan_merge(device, problem);   // once: compiles the kernel
//   plan.run(stream, operands);                     // once a layer, behind the runs that it merges
//
// Each input is an O and an LSE over keys that no other input has, as BatchPlan with want_lse and
// Device::plan write them, and as other libraries do. For each row and head, with LSE in base b,
//
//   LSE = log_b(sum of b^LSE_i),   O = sum of b^(LSE_i - LSE) O_i
//
// in fp32, with the largest LSE_i taken out first (Ye et al., FlashInfer, 2024, section 2.2;
// Milakov and Gimelshein, Online normalizer calculation for softmax, 2018). Inputs may also be
// states that are not divided by their sums yet (annulus/problem.h), which lose nothing to a 16-bit
// O in between. Where a run on the same device could start from the state of another, that takes no
// merging.
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

constexpr std::int64_t kMostMergeInputs = 16;

// What an answer over some of the keys is.
enum class PartialForm : int {
  kOutputs = 1,  // O and LSE
  kStates = 2,   // acc, m and l, as annulus/problem.h has them
};

struct MergeProblem {
  std::int64_t heads = 1;                // H >= 1
  std::int64_t dim_v = 0;                // a multiple of 8 from 8 to 1024
  Dtype dtype = Dtype::kBfloat16;        // of all O: kFloat16 or kBfloat16
  LseBase lse_base = LseBase::kNatural;  // of all LSE
  std::int64_t inputs = 2;               // 2 to kMostMergeInputs
  // The most rows of a run; at least 1. Together with the heads below 2^31.
  std::int64_t most_rows = 0;
  PartialForm form = PartialForm::kOutputs;  // of the inputs
  // Write the state over all keys instead of O and LSE; the inputs are states then.
  bool carry_out = false;
  // MergeOperands::sink_logits are given. Not with carry_out: a state has no sink.
  bool sink_logits = false;
};

// A row of a head whose LSE is -inf, or whose l is 0, has seen no key: it counts for nothing, and
// its O, or its m and acc, may be anything; O and acc are not read.
struct MergeInput {
  const void* o = nullptr;     // [rows, H, Dv]; null with PartialForm::kStates
  const float* lse = nullptr;  // [rows, H] in any order; likewise
  // With PartialForm::kStates: contiguous [rows, H, Dv] and [rows, H]. Only read.
  StatePointers state{};
};

// What a run reads and writes, in device memory, owned by the caller, who leaves it there until the
// work that was put on the stream has ended. Base addresses of O are multiples of 16 bytes, others
// of 4, those of acc of 16. What is written overlaps nothing else of the call, but `o` may be that
// of the first input (the same address and strides), and so may `lse`; `state` may be that of the
// first input.
struct MergeOperands {
  // As many as the problem has; host memory, read by the call alone.
  std::span<const MergeInput> inputs;
  // All inputs have these strides. They are ignored with PartialForm::kStates.
  RowStrides input_o_strides;  // multiples of 8
  RowStrides input_lse_strides;

  void* o = nullptr;     // [rows, H, Dv]; null with carry_out
  float* lse = nullptr;  // [rows, H] in any order; null: not written
  // Rows and heads of what is written do not overlap. If `rows` is given, these strides are checked
  // as BatchOperands has it.
  RowStrides o_strides;  // multiples of 8
  RowStrides lse_strides;

  // [1], int32: how many rows there are, up to MergeProblem::most_rows. A larger number counts as
  // that, a negative one as 0. Null: all. Others are neither read nor written.
  const std::int32_t* rows = nullptr;

  // [H], with MergeProblem::sink_logits: of each query head the logit of an attention sink, which
  // counts once as a key without a value that every row sees (Score::sink_logit). -inf: none.
  const float* sink_logits = nullptr;
  StatePointers state{};  // with carry_out: contiguous [rows, H, Dv] and [rows, H]
};

// Everything that was decided, for people and for logs.
struct MergeInfo {
  std::string specialised_source;  // what the compiler was given
  std::int64_t ctas = 0;           // of a run
  int threads = 0;                 // of a CTA
  int registers = 0;               // of a thread; on a simulated device an estimate
  int local_bytes = 0;             // of a thread: spills
  double compile_ms = 0;           // time to get the kernel, whatever its source
};

// A way of merging made ready for a device. Immutable: any number of threads may use it at a time.
// Copies share. Keeps what it needs of the device alive; a captured graph does not, so a plan must
// outlive the graphs that were captured of it.
class ANNULUS_EXPORT MergePlan {
 public:
  struct Impl;
  explicit MergePlan(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  // No move: a plan that was moved from would be none. A copy is a pointer.
  MergePlan(const MergePlan&) = default;
  MergePlan& operator=(const MergePlan&) = default;

  const MergeProblem& problem() const;
  const MergeInfo& info() const;

  // Puts one launch on `stream`, whose size depends on the bounds alone. Allocates nothing, takes
  // no lock, does not wait and may be captured. Throws Error{kInvalidArgument} for operands that
  // the problem does not go with, and Error{kDevice}; nothing was launched then.
  //
  // The inputs are added up in their order, and a row's bits depend on its own inputs alone. A row
  // of which one input counts is that input's, bit for bit, LSE too, unless there is a sink or the
  // form changes; one of which none counts gets O = 0 and LSE = -inf, or the sink logit, and as a
  // state acc = 0, m = -inf and l = 0. A NaN reaches no row but its own; LSE of +inf outweigh all
  // others.
  void run(void* stream, const MergeOperands& operands) const;

 private:
  std::shared_ptr<const Impl> impl_;
};

// Throws Error{kInvalidArgument} or Error{kUnsupported}, which names the wrong value and what would
// be right.
ANNULUS_EXPORT void validate(const MergeProblem& problem);

// Decides and compiles. Throws what validate() throws, Error{kCompile}, and Error{kDevice}.
ANNULUS_EXPORT MergePlan plan_merge(const Device& device, const MergeProblem& problem);

}  // namespace annulus::inline v0

#endif  // ANNULUS_MERGE_H_
