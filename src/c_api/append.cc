// The C interface of appending. Each function converts its arguments and calls annulus/batch.h.
#include "annulus/c_batch.h"

#include "annulus/batch.h"
#include "c_api/functions.h"
#include "c_api/step.h"

namespace annulus::c_api {
namespace {

constexpr StructName kAppendProblem = {"annulus_append_problem", "ANNULUS_APPEND_PROBLEM_INIT"};
constexpr StructName kAppendPlanInfo = {"annulus_append_plan_info",
                                        "ANNULUS_APPEND_PLAN_INFO_INIT"};
constexpr StructName kAppendOperands = {"annulus_append_operands", "ANNULUS_APPEND_OPERANDS_INIT"};
constexpr StructName kAppendStatus = {"annulus_append_status", "ANNULUS_APPEND_STATUS_INIT"};

// The rules of C and C++ have the same numbers. The switch has no default, so a rule of append.h
// that is missing in c_append.h causes a warning here.
constexpr annulus_append_rule c_rule(AppendRule rule) {
  switch (rule) {
    case AppendRule::kNone:
      return ANNULUS_APPEND_RULE_NONE;
    case AppendRule::kRows:
      return ANNULUS_APPEND_RULE_ROWS;
    case AppendRule::kRequests:
      return ANNULUS_APPEND_RULE_REQUESTS;
    case AppendRule::kSlot:
      return ANNULUS_APPEND_RULE_SLOT;
    case AppendRule::kKey:
      return ANNULUS_APPEND_RULE_KEY;
    case AppendRule::kEntry:
      return ANNULUS_APPEND_RULE_ENTRY;
    case AppendRule::kPage:
      return ANNULUS_APPEND_RULE_PAGE;
    case AppendRule::kPosition:
      return ANNULUS_APPEND_RULE_POSITION;
  }
  return ANNULUS_APPEND_RULE_NONE;
}
constexpr bool same_append_rules() {
  for (int rule = 0; rule <= ANNULUS_APPEND_RULE_POSITION; ++rule) {
    if (static_cast<int>(c_rule(static_cast<AppendRule>(rule))) != rule) return false;
  }
  return true;
}
static_assert(same_append_rules());

HandleTable<AppendPlan>& append_plans() {
  static auto* table =
      new HandleTable<AppendPlan>("append plan", 0x39, HandleTable<AppendPlan>::Use::kInItsProcess);
  return *table;
}
using AppendPin = HandleTable<AppendPlan>::Pin;

AppendProblem problem_of(const annulus_append_problem* given) {
  const annulus_append_problem c =
      read_struct(kAppendProblem, given, annulus_append_problem ANNULUS_APPEND_PROBLEM_INIT);
  AppendProblem problem;
  problem.heads = c.heads;
  problem.kv_heads = c.kv_heads;
  problem.dim_qk = c.dim_qk;
  problem.dim_v = c.dim_v;
  problem.most = bounds_of(c.most);
  problem.page_rows = c.page_rows;
  problem.interleave = interleave_of(c.interleave);
  problem.dtype = static_cast<Dtype>(c.dtype);
  problem.place = static_cast<AppendPlace>(c.place);
  problem.rotary.order = static_cast<RotaryOrder>(c.rotary_order);
  problem.rotary.dims = c.rotary_dims;
  problem.rotary.base = c.rotary_base;
  if (c.frequencies != nullptr && problem.rotary.order != RotaryOrder::kNone) {
    // The number of entries follows from numbers that are not checked yet.
    AppendProblem unread = problem;
    unread.rotary.base = 1;
    validate(unread);
    const std::int64_t dims = c.rotary_dims == 0 ? c.dim_qk : c.rotary_dims;
    check_array_count("frequencies", c.frequency_count, dims / 2);
    problem.rotary.frequencies.assign(c.frequencies, c.frequencies + dims / 2);
  }
  if (c.table_dtype != 0) problem.rotary.tables = static_cast<Dtype>(c.table_dtype);
  return problem;
}

AppendOperands operands_of(const annulus_append_operands* given) {
  const annulus_append_operands c =
      read_struct(kAppendOperands, given, annulus_append_operands ANNULUS_APPEND_OPERANDS_INIT);
  return {.q = c.q,
          .rotated_q = c.rotated_q,
          .new_k = c.new_k,
          .new_v = c.new_v,
          .q_strides = strides_of(c.q_strides),
          .rotated_q_strides = strides_of(c.rotated_q_strides),
          .new_k_strides = strides_of(c.new_k_strides),
          .new_v_strides = strides_of(c.new_v_strides),
          .k = c.k,
          .v = c.v,
          .k_strides = strides_of(c.k_strides),
          .v_strides = strides_of(c.v_strides),
          .k_pages = c.k_pages,
          .v_pages = c.v_pages,
          .slots = c.slots,
          .slots_32 = c.slots_32,
          .rows = c.rows,
          .step = c.step == nullptr ? BatchMetadata{} : metadata_of(c.step),
          .positions = c.positions,
          .positions_32 = c.positions_32,
          .cosines = c.cosines,
          .sines = c.sines,
          .table_stride = c.table_stride,
          .table_rows = c.table_rows,
          .status = c.status};
}

}  // namespace
}  // namespace annulus::c_api

extern "C" {

annulus_status annulus_append_problem_validate(const annulus_append_problem* problem) {
  return guarded([&] { validate(problem_of(problem)); });
}

annulus_status annulus_append_plan_create(annulus_device* device,
                                          const annulus_append_problem* problem,
                                          annulus_append_plan** plan) {
  return guarded([&] {
    const DevicePin pin(devices(), number(device));
    check_pointer("plan (where the handle goes)", plan);
    give(plan, append_plans(),
         std::make_unique<AppendPlan>(plan_append(pin->device, problem_of(problem))));
  });
}

annulus_status annulus_append_plan_destroy(annulus_append_plan* plan) {
  return guarded([&] { append_plans().erase(number(plan)); });
}

annulus_status annulus_append_plan_get_info(annulus_append_plan* plan,
                                            annulus_append_plan_info* to) {
  return guarded([&] {
    const AppendPin pin(append_plans(), number(plan));
    const AppendInfo& info = pin->info();
    annulus_append_plan_info c = ANNULUS_APPEND_PLAN_INFO_INIT;
    c.specialised_source = info.specialised_source.c_str();
    c.compile_ms = info.compile_ms;
    c.rotary_dims = pin->problem().rotary.dims;
    c.threads = info.threads;
    c.registers = info.registers;
    c.local_bytes = info.local_bytes;
    c.device_bytes = info.device_bytes;
    write_struct(kAppendPlanInfo, to, c);
  });
}

annulus_status annulus_append_plan_run(annulus_append_plan* plan, void* stream,
                                       const annulus_append_operands* operands) {
  return guarded([&] {
    const AppendPin pin(append_plans(), number(plan));
    pin->run(stream, operands_of(operands));
  });
}

const char* annulus_append_rule_text(int rule) { return to_string(static_cast<AppendRule>(rule)); }

annulus_status annulus_append_plan_clear_status(annulus_append_plan* plan, void* stream,
                                                uint32_t* word) {
  return guarded([&] {
    const AppendPin pin(append_plans(), number(plan));
    pin->clear_status(stream, word);
  });
}

annulus_status annulus_append_plan_get_status(annulus_append_plan* plan, const uint32_t* word,
                                              annulus_append_status* to) {
  return guarded([&] {
    const AppendPin pin(append_plans(), number(plan));
    check_output(kAppendStatus, to);
    const AppendStatus found = pin->status(word);
    annulus_append_status c = ANNULUS_APPEND_STATUS_INIT;
    c.rule = static_cast<int>(found.rule);
    c.row = found.row;
    write_struct(kAppendStatus, to, c);
  });
}

}  // extern "C"
