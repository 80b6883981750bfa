#include "batch/merger.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numbers>
#include <string_view>

#include "attention/kernels/kernel_source.h"
#include "attention/problem/operands.h"
#include "base/fail.h"
#include "base/math.h"
#include "batch/step_operands.h"

namespace annulus::batch {
namespace {

using attention::check_address;
using attention::check_unused;

static_assert(kMaxMergeInputs == kernels::kMaxMerged);

// The names "O of input 0", "O of input 1", and so on. Errors need names of operands, and a run
// without errors makes no text.
template <std::size_t N>
constexpr auto names_of_inputs(const char (&what)[N]) {
  constexpr std::string_view kOf = " of input ";
  std::array<std::array<char, N + kOf.size() + 2>, kMaxMergeInputs> names{};
  for (std::size_t i = 0; i < names.size(); ++i) {
    char* to = std::copy_n(what, N - 1, names[i].data());
    to = std::copy(kOf.begin(), kOf.end(), to);
    if (i >= 10) *to++ = static_cast<char>('0' + i / 10);
    *to = static_cast<char>('0' + i % 10);
  }
  return names;
}
static_assert(kMaxMergeInputs <= 100);
constexpr auto kOutputs = names_of_inputs("O");
constexpr auto kLses = names_of_inputs("LSE");
constexpr auto kAccs = names_of_inputs("acc");
constexpr auto kMaxima = names_of_inputs("m");
constexpr auto kSums = names_of_inputs("l");

// The names of the arrays of a state.
struct StateNames {
  const char* acc;
  const char* m;
  const char* l;
};
constexpr StateNames kMergedState = {"state.acc", "state.m", "state.l"};

void check_state(const StateNames& names, const StatePointers& state) {
  check_address(names.acc, state.acc, 16);
  check_address(names.m, state.m, 4);
  check_address(names.l, state.l, 4);
}

// A tensor that is written may have the address of the first input only if it also has its strides,
// so that each row overwrites only itself.
void check_in_place(const char* name, const void* input, const RowStrides& input_strides,
                    const void* merged, const RowStrides& strides) {
  if (input != merged) return;
  if (input_strides.row == strides.row && input_strides.head == strides.head) return;
  base::fail(ErrorCode::kInvalidArgument,
             "{} is the first input's memory with other strides, so its rows would overwrite "
             "other rows of the input; use the same strides, or other memory",
             name);
}

}  // namespace

jit::KernelSpec merge_spec(const MergeProblem& problem, jit::Arch arch) {
  using jit::Constant;
  jit::Struct shape;
  shape.name = "Shape";
  shape.constants = {Constant::type("Element", attention::element_of(problem.dtype)),
                     Constant::integer("kInputs", static_cast<int>(problem.inputs)),
                     Constant::boolean("kStates", problem.form == PartialForm::kStates),
                     Constant::boolean("kCarryOut", problem.carry_out),
                     Constant::boolean("kSinkLogit", problem.sink_logits)};
  return {.family = "merge_outputs",
          .arch = arch,
          .file = "kernels/batch/merge_outputs.cu",
          .entry = "merge_outputs",
          .structs = {std::move(shape)}};
}

void check_moved(const char* tensor, const char* dim_name, const MovedRows& rows) {
  constexpr std::int64_t kMaxMovedDim = 1024;
  // Threads count rows of heads in 32 bits, up to the end of the last CTA.
  constexpr std::int64_t kMaxHeadsOfRows = (std::int64_t{1} << 31) - kernels::kMergeHeads;
  attention::check_count("heads", rows.heads, 1, kMaxHeads);
  check_row_dim(dim_name, rows.dim, kMaxMovedDim);
  if (rows.dtype != Dtype::kFloat16 && rows.dtype != Dtype::kBfloat16) {
    base::fail(ErrorCode::kUnsupported, "{} of {} has no kernel; convert to fp16 or bf16", tensor,
               to_string(rows.dtype));
  }
  attention::check_count("max_rows", rows.max_rows, 1, kMaxHeadsOfRows / rows.heads);
}

Merger::Merger(jit::KernelCache& kernels, jit::Arch arch, const MergeProblem& problem)
    : problem_(problem),
      spec_(merge_spec(problem, arch)),
      kernel_(kernels.get(spec_)),
      ctas_(base::ceil_div(problem.max_rows * problem.heads,
                           static_cast<std::int64_t>(kernels::kMergeHeads))) {
  const double of_lse = problem.lse_base == LseBase::kNatural ? std::numbers::log2e : 1.0;
  const double unit = problem.form == PartialForm::kStates ? 1.0 : of_lse;
  params_.unit = static_cast<float>(unit);
  params_.inverse_unit = static_cast<float>(1 / of_lse);
  params_.sink_unit = static_cast<float>(std::numbers::log2e / unit);
  params_.max_rows = static_cast<int>(problem.max_rows);
  params_.heads = static_cast<int>(problem.heads);
  params_.chunks = static_cast<int>(problem.dim_v / 8);
}

void Merger::check(const MergeOperands& operands, std::int64_t launched) const {
  if (std::ssize(operands.inputs) != problem_.inputs) {
    base::fail(ErrorCode::kInvalidArgument,
               "{} inputs were given; the plan merges {} (MergeProblem::inputs)",
               operands.inputs.size(), problem_.inputs);
  }
  const std::int64_t heads = problem_.heads;
  // The number in device memory, if there is one, is not known on the host.
  const std::int64_t rows = operands.rows == nullptr ? launched : certain_rows(launched);
  const bool states = problem_.form == PartialForm::kStates;
  if (problem_.carry_out) {
    constexpr const char* kReason = "the state is carried out (carry_out)";
    check_unused("O", operands.o, kReason);
    check_unused("LSE", operands.lse, kReason);
    check_state(kMergedState, operands.state);
  } else {
    check_unused("state.acc", operands.state.acc, "no state is carried out (carry_out)");
    check_rows("O", operands.o, operands.o_strides);
    check_distinct("O", operands.o_strides, rows, heads, problem_.dim_v);
    check_optional("LSE", operands.lse, 4);
    if (operands.lse != nullptr && operands.rows != nullptr) {
      check_distinct_lse(operands.lse_strides, launched, heads);
    } else if (operands.lse != nullptr) {
      check_distinct("LSE", operands.lse_strides, rows, heads, 1);
    }
  }
  if (!states) {
    check_given("O of the inputs", operands.input_o_strides, rows, heads);
    check_given("LSE of the inputs", operands.input_lse_strides, rows, heads);
  }
  check_optional("rows", operands.rows, 4);
  if (problem_.sink_logits) {
    check_address("sink_logits", operands.sink_logits, 4);
  } else {
    check_unused("sink_logits", operands.sink_logits, "the problem has none (sink_logits)");
  }

  enum { kApart, kFirstO, kFirstLse, kFirstAcc, kFirstM, kFirstL };
  std::array<attention::Place, 3 * kMaxMergeInputs + 7> places;
  std::size_t count = 0;
  const auto add = [&](const char* name, const void* data, bool written, int shared) {
    if (data != nullptr) places[count++] = {name, data, written, shared};
  };
  for (std::size_t i = 0; i < operands.inputs.size(); ++i) {
    const MergeInput& input = operands.inputs[i];
    const auto shared = [&](int of_first) { return i == 0 ? of_first : int{kApart}; };
    if (states) {
      constexpr const char* kReason = "the inputs are states (form)";
      check_unused(kOutputs[i].data(), input.o, kReason);
      check_unused(kLses[i].data(), input.lse, kReason);
      check_state({kAccs[i].data(), kMaxima[i].data(), kSums[i].data()}, input.state);
      add(kAccs[i].data(), input.state.acc, false, shared(kFirstAcc));
      add(kMaxima[i].data(), input.state.m, false, shared(kFirstM));
      add(kSums[i].data(), input.state.l, false, shared(kFirstL));
    } else {
      check_unused(kAccs[i].data(), input.state.acc, "the inputs are O and LSE (form)");
      check_rows(kOutputs[i].data(), input.o, operands.input_o_strides);
      check_address(kLses[i].data(), input.lse, 4);
      add(kOutputs[i].data(), input.o, false, shared(kFirstO));
      add(kLses[i].data(), input.lse, false, shared(kFirstLse));
    }
  }
  if (!states) {
    const MergeInput& first = operands.inputs.front();
    check_in_place("O", first.o, operands.input_o_strides, operands.o, operands.o_strides);
    check_in_place("LSE", first.lse, operands.input_lse_strides, operands.lse,
                   operands.lse_strides);
  }
  add("O", operands.o, true, kFirstO);
  add("LSE", operands.lse, true, kFirstLse);
  add(kMergedState.acc, operands.state.acc, true, kFirstAcc);
  add(kMergedState.m, operands.state.m, true, kFirstM);
  add(kMergedState.l, operands.state.l, true, kFirstL);
  add("rows", operands.rows, false, kApart);
  add("sink_logits", operands.sink_logits, false, kApart);
  attention::check_overlaps(std::span<const attention::Place>(places.data(), count));
}

void Merger::run(device::LaunchSink& to, const MergeOperands& operands) const {
  run(to, operands, problem_.max_rows);
}

void Merger::run(device::LaunchSink& to, const MergeOperands& operands, std::int64_t rows) const {
  check(operands, rows);
  kernels::MergeParams params = params_;
  params.max_rows = static_cast<int>(rows);
  const bool states = problem_.form == PartialForm::kStates;
  for (std::size_t i = 0; i < operands.inputs.size(); ++i) {
    const MergeInput& input = operands.inputs[i];
    params.o[i] = states ? input.state.acc : input.o;
    params.lse[i] = states ? input.state.m : input.lse;
    params.l[i] = input.state.l;
  }
  // The strides of states.
  const RowStrides values = {.row = problem_.heads * problem_.dim_v, .head = problem_.dim_v};
  const RowStrides numbers = {.row = problem_.heads, .head = 1};
  const auto set = [](const RowStrides& strides, long long* row, long long* head) {
    *row = strides.row;
    *head = strides.head;
  };
  set(states ? values : operands.input_o_strides, &params.o_row, &params.o_head);
  set(states ? numbers : operands.input_lse_strides, &params.lse_row, &params.lse_head);
  const bool carries = problem_.carry_out;
  params.merged_o = carries ? operands.state.acc : operands.o;
  params.merged_lse = carries ? operands.state.m : operands.lse;
  params.merged_l = operands.state.l;
  set(carries ? values : operands.o_strides, &params.merged_o_row, &params.merged_o_head);
  set(carries ? numbers : operands.lse_strides, &params.merged_lse_row, &params.merged_lse_head);
  params.sinks = operands.sink_logits;
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
  batch::check_moved("O", "dim_v", {problem.heads, problem.dim_v, problem.dtype, problem.max_rows});
  check_count("lse_base", static_cast<int>(problem.lse_base), static_cast<int>(LseBase::kNatural),
              static_cast<int>(LseBase::kTwo));
  check_count("inputs", problem.inputs, 2, kMaxMergeInputs);
  check_count("form", static_cast<int>(problem.form), static_cast<int>(PartialForm::kOutputs),
              static_cast<int>(PartialForm::kStates));
  if (problem.carry_out && problem.form != PartialForm::kStates) {
    base::fail(
        ErrorCode::kInvalidArgument,
        "a state is carried out (carry_out), but the inputs are O and LSE, which do not hold their "
        "states; merge states (form), or take O and LSE");
  }
  if (problem.carry_out && problem.sink_logits) {
    base::fail(
        ErrorCode::kInvalidArgument,
        "a state is carried out (carry_out), which does not include a sink logit; give the logits "
        "(sink_logits) to the merge that writes O");
  }
}

}  // namespace annulus::inline v0
