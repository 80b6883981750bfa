#include "batch/merger.h"

#include <array>
#include <numbers>

#include "attention/kernels/kernel_source.h"
#include "attention/problem/operands.h"
#include "base/fail.h"
#include "base/math.h"
#include "batch/step_operands.h"

namespace annulus::batch {
namespace {

using attention::check_address;

static_assert(kMostMergeInputs == kernels::kMostMerged);

constexpr std::int64_t kMostMergedDim = 1024;
// Threads count rows of heads by 32 bits, up to the end of the last CTA.
constexpr std::int64_t kMostHeadsOfRows = (std::int64_t{1} << 31) - kernels::kMergeHeads;

constexpr const char* kOutputs[] = {
    "O of input 0",  "O of input 1",  "O of input 2",  "O of input 3",
    "O of input 4",  "O of input 5",  "O of input 6",  "O of input 7",
    "O of input 8",  "O of input 9",  "O of input 10", "O of input 11",
    "O of input 12", "O of input 13", "O of input 14", "O of input 15"};
constexpr const char* kLses[] = {
    "LSE of input 0",  "LSE of input 1",  "LSE of input 2",  "LSE of input 3",
    "LSE of input 4",  "LSE of input 5",  "LSE of input 6",  "LSE of input 7",
    "LSE of input 8",  "LSE of input 9",  "LSE of input 10", "LSE of input 11",
    "LSE of input 12", "LSE of input 13", "LSE of input 14", "LSE of input 15"};
static_assert(std::size(kOutputs) == kMostMergeInputs && std::size(kLses) == kMostMergeInputs);

// What is written goes over the first input's only as its own rows go over themselves.
void check_in_place(const char* name, const void* input, const RowStrides& input_strides,
                    const void* merged, const RowStrides& strides) {
  if (input != merged) return;
  if (input_strides.row == strides.row && input_strides.head == strides.head) return;
  base::fail(ErrorCode::kInvalidArgument,
             "{} is the first input's memory with other strides, so that its rows would overwrite "
             "other rows of the input; use the same strides, or other memory",
             name);
}

}  // namespace

jit::KernelSpec merge_spec(const MergeProblem& problem, jit::Arch arch) {
  using jit::Constant;
  jit::Struct shape;
  shape.name = "Shape";
  shape.constants = {Constant::type("Element", attention::element_of(problem.dtype)),
                     Constant::integer("kInputs", static_cast<int>(problem.inputs))};
  return {.family = "merge_outputs",
          .arch = arch,
          .file = "kernels/batch/merge_outputs.cu",
          .entry = "merge_outputs",
          .structs = {std::move(shape)}};
}

Merger::Merger(jit::KernelCache& kernels, jit::Arch arch, const MergeProblem& problem)
    : problem_(problem),
      spec_(merge_spec(problem, arch)),
      kernel_(kernels.get(spec_)),
      ctas_(base::ceil_div(problem.most_rows * problem.heads,
                           static_cast<std::int64_t>(kernels::kMergeHeads))) {
  const double unit = problem.lse_base == LseBase::kNatural ? std::numbers::log2e : 1.0;
  params_.unit = static_cast<float>(unit);
  params_.inverse_unit = static_cast<float>(1 / unit);
  params_.most_rows = static_cast<int>(problem.most_rows);
  params_.heads = static_cast<int>(problem.heads);
  params_.chunks = static_cast<int>(problem.dim_v / 8);
}

void Merger::check(const MergeOperands& operands) const {
  if (std::ssize(operands.inputs) != problem_.inputs) {
    base::fail(ErrorCode::kInvalidArgument,
               "{} inputs were given; the plan merges {} (MergeProblem::inputs)",
               operands.inputs.size(), problem_.inputs);
  }
  const std::int64_t rows = problem_.most_rows, heads = problem_.heads;
  check_rows("O", operands.o, operands.o_strides);
  check_distinct("O", operands.o_strides, rows, heads);
  check_optional("LSE", operands.lse, 4);
  if (operands.lse != nullptr) check_distinct("LSE", operands.lse_strides, rows, heads);
  check_distinct("O of the inputs", operands.input_o_strides, rows, heads);
  check_distinct("LSE of the inputs", operands.input_lse_strides, rows, heads);
  check_optional("rows", operands.rows, 4);

  enum { kApart, kFirstO, kFirstLse };
  std::array<attention::Place, 2 * kMostMergeInputs + 3> places;
  std::size_t count = 0;
  const auto add = [&](const char* name, const void* data, bool written, int shared) {
    if (data != nullptr) places[count++] = {name, data, written, shared};
  };
  for (std::size_t i = 0; i < operands.inputs.size(); ++i) {
    const MergeInput& input = operands.inputs[i];
    check_rows(kOutputs[i], input.o, operands.input_o_strides);
    check_address(kLses[i], input.lse, 4);
    add(kOutputs[i], input.o, false, i == 0 ? kFirstO : kApart);
    add(kLses[i], input.lse, false, i == 0 ? kFirstLse : kApart);
  }
  const MergeInput& first = operands.inputs.front();
  check_in_place("O", first.o, operands.input_o_strides, operands.o, operands.o_strides);
  check_in_place("LSE", first.lse, operands.input_lse_strides, operands.lse, operands.lse_strides);
  add("O", operands.o, true, kFirstO);
  add("LSE", operands.lse, true, kFirstLse);
  add("rows", operands.rows, false, kApart);
  attention::check_overlaps(std::span<const attention::Place>(places.data(), count));
}

void Merger::run(device::LaunchSink& to, const MergeOperands& operands) const {
  run(to, operands, problem_.most_rows);
}

void Merger::run(device::LaunchSink& to, const MergeOperands& operands, std::int64_t rows) const {
  check(operands);
  kernels::MergeParams params = params_;
  params.most_rows = static_cast<int>(rows);
  for (std::size_t i = 0; i < operands.inputs.size(); ++i) {
    params.o[i] = operands.inputs[i].o;
    params.lse[i] = operands.inputs[i].lse;
  }
  params.o_row = operands.input_o_strides.row, params.o_head = operands.input_o_strides.head;
  params.lse_row = operands.input_lse_strides.row;
  params.lse_head = operands.input_lse_strides.head;
  params.merged_o = operands.o;
  params.merged_lse = operands.lse;
  params.merged_o_row = operands.o_strides.row, params.merged_o_head = operands.o_strides.head;
  params.merged_lse_row = operands.lse_strides.row;
  params.merged_lse_head = operands.lse_strides.head;
  params.rows = operands.rows;
  const std::int64_t ctas =
      base::ceil_div(rows * problem_.heads, std::int64_t{kernels::kMergeHeads});
  to.launch(kernel_.kernel->function, {static_cast<unsigned>(ctas)}, {kernels::kMergeThreads}, 0,
            params);
}

}  // namespace annulus::batch

namespace annulus::inline v0 {

void validate(const MergeProblem& problem) {
  using attention::check_count;
  check_count("heads", problem.heads, 1, kMaxHeads);
  batch::check_row_dim("dim_v", problem.dim_v, batch::kMostMergedDim);
  if (problem.dtype != Dtype::kFloat16 && problem.dtype != Dtype::kBfloat16) {
    base::fail(ErrorCode::kUnsupported,
               "O of {} has no kernel that merges it; convert to fp16 or bf16",
               to_string(problem.dtype));
  }
  check_count("lse_base", static_cast<int>(problem.lse_base), static_cast<int>(LseBase::kNatural),
              static_cast<int>(LseBase::kTwo));
  check_count("inputs", problem.inputs, 2, kMostMergeInputs);
  check_count("most_rows", problem.most_rows, 1, batch::kMostHeadsOfRows / problem.heads);
}

}  // namespace annulus::inline v0
