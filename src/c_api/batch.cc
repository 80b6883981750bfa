// The C interface of batches. Each function converts its arguments and calls annulus/batch.h.
#include "annulus/c_batch.h"

#include "annulus/batch.h"
#include "c_api/functions.h"
#include "c_api/problems.h"
#include "c_api/step.h"

namespace annulus::c_api {
namespace {

constexpr StructName kBatchProblem = {"annulus_batch_problem", "ANNULUS_BATCH_PROBLEM_INIT"};
constexpr StructName kBatchOptions = {"annulus_batch_options", "ANNULUS_BATCH_OPTIONS_INIT"};
constexpr StructName kBatchPlanInfo = {"annulus_batch_plan_info", "ANNULUS_BATCH_PLAN_INFO_INIT"};
constexpr StructName kBatchOperands = {"annulus_batch_operands", "ANNULUS_BATCH_OPERANDS_INIT"};
constexpr StructName kBatchStatus = {"annulus_batch_status", "ANNULUS_BATCH_STATUS_INIT"};

// The rules of C and C++ have the same numbers. The switch has no default, so a rule of batch.h
// that is missing in c_batch.h causes a warning here.
constexpr annulus_batch_rule c_rule(BatchRule rule) {
  switch (rule) {
    case BatchRule::kNone:
      return ANNULUS_RULE_NONE;
    case BatchRule::kRequests:
      return ANNULUS_RULE_REQUESTS;
    case BatchRule::kRows:
      return ANNULUS_RULE_ROWS;
    case BatchRule::kRowsOfOne:
      return ANNULUS_RULE_ROWS_OF_ONE;
    case BatchRule::kKeys:
      return ANNULUS_RULE_KEYS;
    case BatchRule::kPages:
      return ANNULUS_RULE_PAGES;
    case BatchRule::kAllKeys:
      return ANNULUS_RULE_ALL_KEYS;
    case BatchRule::kPosition:
      return ANNULUS_RULE_POSITION;
    case BatchRule::kPage:
      return ANNULUS_RULE_PAGE;
    case BatchRule::kBlocks:
      return ANNULUS_RULE_BLOCKS;
    case BatchRule::kRowEnd:
      return ANNULUS_RULE_ROW_END;
  }
  return ANNULUS_RULE_NONE;
}
constexpr bool same_numbers() {
  for (int rule = 0; rule <= ANNULUS_RULE_ROW_END; ++rule) {
    if (static_cast<int>(c_rule(static_cast<BatchRule>(rule))) != rule) return false;
  }
  return true;
}
static_assert(same_numbers());

struct BatchObject {
  explicit BatchObject(BatchPlan made)
      : plan(std::move(made)), decisions(lines(plan.info().decisions)) {}
  BatchPlan plan;
  std::string decisions;
};

HandleTable<BatchObject>& batch_plans() {
  static auto* table = new HandleTable<BatchObject>("batch plan", 0x47,
                                                    HandleTable<BatchObject>::Use::kInItsProcess);
  return *table;
}
using BatchPin = HandleTable<BatchObject>::Pin;

annulus_batch_bounds to_c(const BatchBounds& bounds) {
  return {bounds.requests, bounds.rows, bounds.rows_of_one, bounds.keys_of_one, bounds.keys};
}

}  // namespace

BatchProblem batch_problem_of(const annulus_batch_problem* given) {
  const annulus_batch_problem c =
      read_struct(kBatchProblem, given, annulus_batch_problem ANNULUS_BATCH_PROBLEM_INIT);
  BatchProblem problem;
  problem.heads = c.heads;
  problem.kv_heads = c.kv_heads;
  problem.dim_qk = c.dim_qk;
  problem.dim_v = c.dim_v;
  problem.dtype = static_cast<Dtype>(c.dtype);
  problem.pattern = pattern_of(c.pattern, nullptr);
  problem.score = score_of(c.score, truth("has_scale", c.has_scale), c.scale, c.softcap);
  problem.most = bounds_of(c.most);
  problem.page_rows = c.page_rows;
  problem.block_keys = c.block_keys;
  problem.max_blocks = c.max_blocks;
  problem.row_limits = truth("row_limits", c.row_limits);
  problem.interleave = interleave_of(c.interleave);
  problem.want_lse = truth("want_lse", c.want_lse);
  problem.lse_base = static_cast<LseBase>(c.lse_base);
  problem.carry_in = truth("carry_in", c.carry_in);
  problem.carry_out = truth("carry_out", c.carry_out);
  return problem;
}

BatchOptions batch_options_of(const annulus_batch_options* given) {
  BatchOptions options;
  if (given == nullptr) return options;
  const annulus_batch_options c =
      read_struct(kBatchOptions, given, annulus_batch_options ANNULUS_BATCH_OPTIONS_INIT);
  options.part_keys = c.part_keys;
  options.max_workspace_bytes = c.max_workspace_bytes;
  options.max_multiprocessors = c.max_multiprocessors;
  options.check_status = truth("check_status", c.check_status);
  if (c.config != nullptr) options.config = c.config;
  return options;
}

namespace {

BatchOperands operands_of(const annulus_batch_operands* given) {
  const annulus_batch_operands c =
      read_struct(kBatchOperands, given, annulus_batch_operands ANNULUS_BATCH_OPERANDS_INIT);
  return {.q = c.q,
          .k = c.k,
          .v = c.v,
          .o = c.o,
          .lse = c.lse,
          .q_strides = strides_of(c.q_strides),
          .k_strides = strides_of(c.k_strides),
          .v_strides = strides_of(c.v_strides),
          .o_strides = strides_of(c.o_strides),
          .lse_strides = strides_of(c.lse_strides),
          .k_pages = c.k_pages,
          .v_pages = c.v_pages,
          .state_in = state_of(c.state_in),
          .state_out = state_of(c.state_out)};
}

}  // namespace
}  // namespace annulus::c_api

extern "C" {

annulus_status annulus_interleave_held_keys(const annulus_key_interleave* interleave, int64_t keys,
                                            int64_t* held) {
  return guarded([&] {
    check_pointer("interleave", interleave);
    check_pointer("held (where the number goes)", held);
    *held = held_keys(interleave_of(*interleave), keys);
  });
}

annulus_status annulus_batch_problem_validate(const annulus_batch_problem* problem) {
  return guarded([&] { validate(batch_problem_of(problem)); });
}

annulus_status annulus_batch_plan_create(annulus_device* device,
                                         const annulus_batch_problem* problem,
                                         const annulus_batch_options* options,
                                         annulus_batch_plan** plan) {
  return guarded([&] {
    const DevicePin pin(devices(), number(device));
    check_pointer("plan (where the handle goes)", plan);
    give(plan, batch_plans(),
         std::make_unique<BatchObject>(
             plan_batch(pin->device, batch_problem_of(problem), batch_options_of(options))));
  });
}

annulus_status annulus_batch_plan_destroy(annulus_batch_plan* plan) {
  return guarded([&] { batch_plans().erase(number(plan)); });
}

annulus_status annulus_batch_plan_get_info(annulus_batch_plan* plan, annulus_batch_plan_info* to) {
  return guarded([&] {
    const BatchPin pin(batch_plans(), number(plan));
    const BatchInfo& info = pin->plan.info();
    annulus_batch_plan_info c = ANNULUS_BATCH_PLAN_INFO_INIT;
    c.config = info.config.c_str();
    c.decisions = pin->decisions.c_str();
    c.specialised_source = info.specialised_source.c_str();
    c.most = to_c(pin->plan.problem().most);
    c.plan_ms = info.plan_ms;
    c.compile_ms = info.compile_ms;
    c.part_keys = info.part_keys;
    c.launches = info.launches;
    c.ctas = info.ctas;
    c.threads = info.threads;
    c.shared_bytes = info.shared_bytes;
    c.registers = info.registers;
    c.local_bytes = info.local_bytes;
    c.bytes_under_way = info.bytes_under_way;
    c.device_bytes = info.device_bytes;
    c.tuned = info.tuned.c_str();
    write_struct(kBatchPlanInfo, to, c);
  });
}

annulus_status annulus_batch_plan_workspace_bytes(annulus_batch_plan* plan, size_t* bytes) {
  return guarded([&] {
    const BatchPin pin(batch_plans(), number(plan));
    check_pointer("bytes (where the size goes)", bytes);
    *bytes = pin->plan.workspace_bytes();
  });
}

annulus_status annulus_batch_plan_prepare(annulus_batch_plan* plan, void* stream,
                                          const annulus_batch_metadata* metadata, void* workspace) {
  return guarded([&] {
    const BatchPin pin(batch_plans(), number(plan));
    pin->plan.prepare(stream, metadata_of(metadata), workspace);
  });
}

annulus_status annulus_batch_plan_run(annulus_batch_plan* plan, void* stream,
                                      const annulus_batch_operands* operands, void* workspace) {
  return guarded([&] {
    const BatchPin pin(batch_plans(), number(plan));
    pin->plan.run(stream, operands_of(operands), workspace);
  });
}

const char* annulus_batch_rule_text(int rule) { return to_string(static_cast<BatchRule>(rule)); }

annulus_status annulus_batch_plan_get_status(annulus_batch_plan* plan, const void* workspace,
                                             annulus_batch_status* to) {
  return guarded([&] {
    const BatchPin pin(batch_plans(), number(plan));
    check_output(kBatchStatus, to);
    const BatchStatus found = pin->plan.status(workspace);
    annulus_batch_status c = ANNULUS_BATCH_STATUS_INIT;
    c.rule = static_cast<int>(found.rule);
    c.request = found.request;
    write_struct(kBatchStatus, to, c);
  });
}

}  // extern "C"
