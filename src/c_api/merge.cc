// The C interface of merging. Each function converts its arguments and calls annulus/merge.h.
#include "annulus/c_batch.h"

#include <array>

#include "annulus/merge.h"
#include "c_api/functions.h"
#include "c_api/step.h"

namespace annulus::c_api {
namespace {

static_assert(ANNULUS_MAX_MERGE_INPUTS == kMaxMergeInputs);
static_assert(ANNULUS_PARTIAL_OUTPUTS == static_cast<int>(PartialForm::kOutputs));
static_assert(ANNULUS_PARTIAL_STATES == static_cast<int>(PartialForm::kStates));

constexpr StructName kMergeProblem = {"annulus_merge_problem", "ANNULUS_MERGE_PROBLEM_INIT"};
constexpr StructName kMergePlanInfo = {"annulus_merge_plan_info", "ANNULUS_MERGE_PLAN_INFO_INIT"};
constexpr StructName kMergeOperands = {"annulus_merge_operands", "ANNULUS_MERGE_OPERANDS_INIT"};

HandleTable<MergePlan>& merge_plans() {
  static auto* table =
      new HandleTable<MergePlan>("merge plan", 0x3d, HandleTable<MergePlan>::Use::kInItsProcess);
  return *table;
}
using MergePin = HandleTable<MergePlan>::Pin;

MergeProblem problem_of(const annulus_merge_problem* given) {
  const annulus_merge_problem c =
      read_struct(kMergeProblem, given, annulus_merge_problem ANNULUS_MERGE_PROBLEM_INIT);
  return {.heads = c.heads,
          .dim_v = c.dim_v,
          .dtype = static_cast<Dtype>(c.dtype),
          .lse_base = static_cast<LseBase>(c.lse_base),
          .inputs = c.inputs,
          .max_rows = c.max_rows,
          .form = static_cast<PartialForm>(c.form),
          .carry_out = truth("carry_out", c.carry_out),
          .sink_logits = truth("sink_logits", c.sink_logits)};
}

}  // namespace
}  // namespace annulus::c_api

extern "C" {

annulus_status annulus_merge_problem_validate(const annulus_merge_problem* problem) {
  return guarded([&] { validate(problem_of(problem)); });
}

annulus_status annulus_merge_plan_create(annulus_device* device,
                                         const annulus_merge_problem* problem,
                                         annulus_merge_plan** plan) {
  return guarded([&] {
    const DevicePin pin(devices(), number(device));
    check_pointer("plan (where the handle goes)", plan);
    give(plan, merge_plans(),
         std::make_unique<MergePlan>(plan_merge(pin->device, problem_of(problem))));
  });
}

annulus_status annulus_merge_plan_destroy(annulus_merge_plan* plan) {
  return guarded([&] { merge_plans().erase(number(plan)); });
}

annulus_status annulus_merge_plan_get_info(annulus_merge_plan* plan, annulus_merge_plan_info* to) {
  return guarded([&] {
    const MergePin pin(merge_plans(), number(plan));
    const MergeInfo& info = pin->info();
    annulus_merge_plan_info c = ANNULUS_MERGE_PLAN_INFO_INIT;
    c.specialised_source = info.specialised_source.c_str();
    c.compile_ms = info.compile_ms;
    c.ctas = info.ctas;
    c.threads = info.threads;
    c.registers = info.registers;
    c.local_bytes = info.local_bytes;
    write_struct(kMergePlanInfo, to, c);
  });
}

annulus_status annulus_merge_plan_run(annulus_merge_plan* plan, void* stream,
                                      const annulus_merge_operands* operands) {
  return guarded([&] {
    const MergePin pin(merge_plans(), number(plan));
    const annulus_merge_operands c =
        read_struct(kMergeOperands, operands, annulus_merge_operands ANNULUS_MERGE_OPERANDS_INIT);
    check_pointer("inputs", c.inputs);
    std::array<MergeInput, kMaxMergeInputs> inputs;
    check_array_count("inputs", c.input_count, pin->problem().inputs);
    const auto count = static_cast<std::size_t>(pin->problem().inputs);
    for (std::size_t i = 0; i < count; ++i) {
      inputs[i] = {c.inputs[i].o, c.inputs[i].lse, state_of(c.inputs[i].state)};
    }
    pin->run(stream, {.inputs = std::span<const MergeInput>(inputs.data(), count),
                      .input_o_strides = strides_of(c.input_o_strides),
                      .input_lse_strides = strides_of(c.input_lse_strides),
                      .o = c.o,
                      .lse = c.lse,
                      .o_strides = strides_of(c.o_strides),
                      .lse_strides = strides_of(c.lse_strides),
                      .rows = c.rows,
                      .sink_logits = c.sink_logits,
                      .state = state_of(c.state)});
  });
}

}  // extern "C"
