// The C interface of plans. Each function converts its arguments and calls annulus/device.h.
#include "c_api/functions.h"
#include "c_api/problems.h"

namespace annulus::c_api {
namespace {

static_assert(ANNULUS_FLOAT16 == static_cast<int>(Dtype::kFloat16));
static_assert(ANNULUS_BFLOAT16 == static_cast<int>(Dtype::kBfloat16));
static_assert(ANNULUS_FLOAT32 == static_cast<int>(Dtype::kFloat32));
static_assert(ANNULUS_FLOAT8_E4M3 == static_cast<int>(Dtype::kFloat8E4M3));
static_assert(ANNULUS_LSE_NATURAL == static_cast<int>(LseBase::kNatural));
static_assert(ANNULUS_DEFAULT_WORK == kDefaultWorkSteps);
static_assert(ANNULUS_LSE_TWO == static_cast<int>(LseBase::kTwo));
static_assert(ANNULUS_SWAP_WHEN_READY == static_cast<int>(Swap::kWhenReady));
static_assert(ANNULUS_SWAP_WHEN_ASKED == static_cast<int>(Swap::kWhenAsked));
static_assert(ANNULUS_SWAP_NEVER == static_cast<int>(Swap::kNever));
static_assert(ANNULUS_PLAN_READY == static_cast<int>(PlanState::kReady));
static_assert(ANNULUS_PLAN_COMPILING == static_cast<int>(PlanState::kCompiling));
static_assert(ANNULUS_PLAN_COMPILED == static_cast<int>(PlanState::kCompiled));
static_assert(ANNULUS_PLAN_GENERAL == static_cast<int>(PlanState::kGeneral));

constexpr StructName kBlockLayout = {"annulus_block_layout", "ANNULUS_BLOCK_LAYOUT_INIT"};
constexpr StructName kWorkLimit = {"annulus_work_limit", "ANNULUS_WORK_LIMIT_INIT"};
constexpr StructName kProblem = {"annulus_problem", "ANNULUS_PROBLEM_INIT"};
constexpr StructName kPlanOptions = {"annulus_plan_options", "ANNULUS_PLAN_OPTIONS_INIT"};
constexpr StructName kPlanInfo = {"annulus_plan_info", "ANNULUS_PLAN_INFO_INIT"};
constexpr StructName kOperands = {"annulus_operands", "ANNULUS_OPERANDS_INIT"};
constexpr StructName kMemoryNeeded = {"annulus_memory_needed", "ANNULUS_MEMORY_NEEDED_INIT"};

}  // namespace

std::shared_ptr<const BlockLayout> layout_of(const annulus_block_layout* given) {
  if (given == nullptr) return nullptr;
  const annulus_block_layout c =
      read_struct(kBlockLayout, given, annulus_block_layout ANNULUS_BLOCK_LAYOUT_INIT);
  if (c.indptr_count > 0) check_pointer("indptr of the layout", c.indptr);
  if (c.indices_count > 0) check_pointer("indices of the layout", c.indices);
  if (c.head_map_count > 0) check_pointer("head_map of the layout", c.head_map);
  if (c.partial_count > 0) check_pointer("partial of the layout", c.partial);
  if (c.head_map_count > static_cast<std::size_t>(kMaxHeads)) {
    base::fail(ErrorCode::kInvalidArgument,
               "head_map of the layout has {} entries; there are at most {} query heads",
               c.head_map_count, kMaxHeads);
  }
  // This is checked before anything is copied, because a wrong count must not be used as a length.
  if (c.indptr_count == 0 ||
      c.indptr[c.indptr_count - 1] != static_cast<std::int64_t>(c.indices_count)) {
    base::fail(ErrorCode::kInvalidArgument,
               "the layout has {} entries in indptr, the last of which should be indices_count, {}",
               c.indptr_count, c.indices_count);
  }
  if (c.partial_count != 0 && c.partial_count != c.indices_count) {
    base::fail(ErrorCode::kInvalidArgument,
               "partial of the layout has {} entries; there are {} kept blocks", c.partial_count,
               c.indices_count);
  }
  BlockLayout layout;
  layout.block_rows = c.block_rows;
  layout.block_columns = c.block_columns;
  layout.seq_q = c.seq_q;
  layout.seq_k = c.seq_k;
  layout.heads = c.heads;
  layout.indptr.assign(c.indptr, c.indptr + c.indptr_count);
  layout.indices.assign(c.indices, c.indices + c.indices_count);
  layout.head_map.assign(c.head_map, c.head_map + c.head_map_count);
  layout.partial.assign(c.partial, c.partial + c.partial_count);
  return std::make_shared<const BlockLayout>(std::move(layout));
}

std::function<bool()> cancelled_by(const volatile std::int32_t* flag) {
  return [flag] { return flag != nullptr && __atomic_load_n(flag, __ATOMIC_RELAXED) != 0; };
}

WorkLimit work_limit_of(std::int64_t max_work, const volatile std::int32_t* cancel) {
  // 0 means the default in every field, so "no limit" is another number.
  WorkLimit limit;
  if (max_work != 0) limit.steps = max_work == -1 ? 0 : max_work;
  if (cancel != nullptr) limit.cancelled = cancelled_by(cancel);
  return limit;
}

WorkLimit work_limit_of(const annulus_work_limit* given) {
  if (given == nullptr) return {};
  const annulus_work_limit c =
      read_struct(kWorkLimit, given, annulus_work_limit ANNULUS_WORK_LIMIT_INIT);
  return work_limit_of(c.max_work, c.cancel);
}

Pattern pattern_of(const char* text, const annulus_block_layout* given,
                   const ParseOptions& options) {
  const auto layout = layout_of(given);
  if (text != nullptr) return Pattern::parse(text, layout, options);
  return layout == nullptr ? Pattern() : blocks(layout);
}

Score score_of(const char* text, bool has_scale, double scale, double softcap) {
  Score score;
  if (text != nullptr) score = Score::parse(text);
  const auto once = [&](const char* name, bool in_text) {
    if (!in_text) return;
    base::fail(ErrorCode::kInvalidArgument, "{} is given by itself and in the score '{}'", name,
               std::string_view(text).substr(0, 64));
  };
  if (has_scale) {
    once("scale", score.scale.has_value());
    score.scale = scale;
  }
  if (softcap != 0) {  // true for NaN too, which validate() refuses
    once("softcap", score.softcap != 0);
    score.softcap = softcap;
  }
  return score;
}

SelectedPlanOptions selected_plan_options_of(const annulus_plan_options* given) {
  SelectedPlanOptions all;
  if (given == nullptr) return all;
  PlanOptions& options = all.options;
  const annulus_plan_options c =
      read_struct(kPlanOptions, given, annulus_plan_options ANNULUS_PLAN_OPTIONS_INIT);
  if (c.config != nullptr) options.config = c.config;
  options.block_rows = c.block_rows;
  options.block_columns = c.block_columns;
  if (truth("has_strides", c.has_strides)) {
    options.strides = {strides_of(c.q_strides), strides_of(c.k_strides), strides_of(c.v_strides),
                       strides_of(c.o_strides), truth("broadcast_rows", c.broadcast_rows)};
  }
  options.kv_splits = c.kv_splits;
  options.max_multiprocessors = c.max_multiprocessors;
  options.work = work_limit_of(c.max_work, c.cancel);
  options.max_workspace_bytes = c.max_workspace_bytes;
  options.wait = !truth("no_wait", c.no_wait);
  if (c.swap < ANNULUS_SWAP_WHEN_READY || c.swap > ANNULUS_SWAP_NEVER) {
    base::fail(ErrorCode::kInvalidArgument, "swap is {}; give one of ANNULUS_SWAP_*", c.swap);
  }
  options.swap = static_cast<Swap>(c.swap);
  options.follow_tuning = truth("follow_tuning", c.follow_tuning);
  if (c.on_ready != nullptr) {
    options.on_ready = [on_ready = c.on_ready, user = c.on_ready_user](PlanState state,
                                                                       const std::string& problem) {
      on_ready(user, static_cast<std::int32_t>(state), problem.c_str());
    };
  }
  if (c.selection != nullptr) all.selection = selection_of(c.selection);
  return all;
}

PlanOptions plan_options_of(const annulus_plan_options* given) {
  SelectedPlanOptions all = selected_plan_options_of(given);
  if (all.selection) {
    base::fail(ErrorCode::kUnsupported,
               "annulus_plan_options.selection is set, but only annulus_plan_create takes a "
               "selection; pass NULL");
  }
  return std::move(all.options);
}

Problem problem_of(const annulus_problem* given) {
  const annulus_problem c = read_struct(kProblem, given, annulus_problem ANNULUS_PROBLEM_INIT);
  Problem problem;
  problem.batch = c.batch;
  problem.heads = c.heads;
  problem.kv_heads = c.kv_heads;
  problem.seq_q = c.seq_q;
  problem.seq_k = c.seq_k;
  problem.dim_qk = c.dim_qk;
  problem.dim_v = c.dim_v;
  problem.dtype = static_cast<Dtype>(c.dtype);
  problem.pattern = pattern_of(c.pattern, c.layout);
  problem.score = score_of(c.score, truth("has_scale", c.has_scale), c.scale, c.softcap);
  if (truth("has_q0", c.has_q0)) problem.q0 = c.q0;
  if (truth("has_k0", c.has_k0)) problem.k0 = c.k0;
  if (truth("has_total_k", c.has_total_k)) problem.total_k = c.total_k;
  problem.layer = c.layer;
  if (c.dtype_o != 0) problem.dtype_o = static_cast<Dtype>(c.dtype_o);
  problem.scale_blocks = {c.scale_block_q, c.scale_block_k, c.scale_block_v};
  problem.want_lse = truth("want_lse", c.want_lse);
  problem.lse_base = static_cast<LseBase>(c.lse_base);
  problem.carry_in = truth("carry_in", c.carry_in);
  problem.carry_out = truth("carry_out", c.carry_out);
  return problem;
}

RunOperands run_operands_of(const annulus_operands* given) {
  const annulus_operands c = read_struct(kOperands, given, annulus_operands ANNULUS_OPERANDS_INIT);
  RunOperands all;
  Operands& operands = all.operands;
  operands.q = c.q;
  operands.k = c.k;
  operands.v = c.v;
  operands.o = c.o;
  operands.lse = c.lse;
  operands.q_strides = strides_of(c.q_strides);
  operands.k_strides = strides_of(c.k_strides);
  operands.v_strides = strides_of(c.v_strides);
  operands.o_strides = strides_of(c.o_strides);
  operands.state_in = state_of(c.state_in);
  operands.state_out = state_of(c.state_out);
  operands.scale_q = c.scale_q;
  operands.scale_k = c.scale_k;
  operands.scale_v = c.scale_v;
  operands.broadcast_rows = truth("broadcast_rows", c.broadcast_rows);
  if (c.selection != nullptr) all.buffers = selection_buffers_of(c.selection);
  return all;
}

Operands operands_of(const annulus_operands* given) {
  const RunOperands all = run_operands_of(given);
  if (all.buffers) {
    base::fail(ErrorCode::kInvalidArgument,
               "annulus_operands.selection is set, but this function runs no plan with a "
               "selection; pass NULL");
  }
  return all.operands;
}

}  // namespace annulus::c_api

extern "C" {

annulus_status annulus_plan_create(annulus_device* device, const annulus_problem* problem,
                                   const annulus_plan_options* options, annulus_plan** plan) {
  return guarded([&] {
    const DevicePin pin(devices(), number(device));
    check_pointer("plan (where the handle goes)", plan);
    const SelectedPlanOptions all = selected_plan_options_of(options);
    auto object = std::make_unique<PlanObject>(
        all.selection ? pin->device.plan(problem_of(problem), *all.selection, all.options)
                      : pin->device.plan(problem_of(problem), all.options));
    *plan = reinterpret_cast<annulus_plan*>(plans().insert(std::move(object)));
  });
}

annulus_status annulus_plan_prefetch(annulus_device* device, const annulus_problem* problem,
                                     const annulus_plan_options* options) {
  return guarded([&] {
    const DevicePin pin(devices(), number(device));
    pin->device.prefetch(problem_of(problem), plan_options_of(options));
  });
}

annulus_status annulus_plan_memory_needed(annulus_device* device, const annulus_problem* problem,
                                          const annulus_plan_options* options,
                                          annulus_memory_needed* to) {
  return guarded([&] {
    const DevicePin pin(devices(), number(device));
    const MemoryNeeded needed =
        pin->device.memory_needed(problem_of(problem), plan_options_of(options));
    annulus_memory_needed c = ANNULUS_MEMORY_NEEDED_INIT;
    c.device_bytes = needed.device_bytes;
    c.shared_bytes = needed.shared_bytes;
    c.workspace_bytes = needed.workspace_bytes;
    write_struct(kMemoryNeeded, to, c);
  });
}

annulus_status annulus_plan_destroy(annulus_plan* plan) {
  return guarded([&] { plans().erase(number(plan)); });
}

annulus_status annulus_plan_state(annulus_plan* plan, int32_t* state) {
  return guarded([&] {
    const PlanPin pin(plans(), number(plan));
    check_pointer("state (where it goes)", state);
    *state = static_cast<std::int32_t>(pin->plan.state());
  });
}

annulus_status annulus_plan_wait(annulus_plan* plan, double seconds, int32_t* state) {
  return guarded([&] {
    const PlanPin pin(plans(), number(plan));
    check_pointer("state (where it goes)", state);
    pin->plan.wait(seconds);
    *state = static_cast<std::int32_t>(pin->plan.state());
  });
}

annulus_status annulus_plan_can_swap(annulus_plan* plan, int32_t* can) {
  return guarded([&] {
    const PlanPin pin(plans(), number(plan));
    check_pointer("can (where the answer goes)", can);
    *can = pin->plan.can_swap() ? 1 : 0;
  });
}

annulus_status annulus_plan_swap(annulus_plan* plan) {
  return guarded([&] {
    const PlanPin pin(plans(), number(plan));
    pin->plan.swap();
  });
}

annulus_status annulus_plan_get_info(annulus_plan* plan, annulus_plan_info* to) {
  return guarded([&] {
    const PlanPin pin(plans(), number(plan));
    const PlanInfo& info = pin->plan.info();
    annulus_plan_info c = ANNULUS_PLAN_INFO_INIT;
    c.kernel = info.kernel.c_str();
    c.config = info.config.c_str();
    c.source = info.source.c_str();
    c.tuned = info.tuned.c_str();
    const PlanObject::Lines& lines = pin->lines_of(info);
    c.decisions = lines.decisions.c_str();
    c.rejected = lines.rejected.c_str();
    c.specialised_source = info.specialised_source.c_str();
    c.plan_ms = info.plan_ms;
    c.compile_ms = info.compile_ms;
    c.launches = info.launches;
    c.ctas = info.ctas;
    c.tile_rows = info.tile_rows;
    c.tile_columns = info.tile_columns;
    c.threads = info.threads;
    c.shared_bytes = info.shared_bytes;
    c.registers = info.registers;
    c.local_bytes = info.local_bytes;
    c.blocks_per_multiprocessor = info.blocks_per_multiprocessor;
    c.full_tiles = info.full_tiles;
    c.partial_tiles = info.partial_tiles;
    c.block_density = info.block_density.value;
    c.device_bytes = info.device_bytes;
    c.work_steps = info.work_steps;
    c.general = info.general ? 1 : 0;
    c.waited = info.waited.c_str();
    write_struct(kPlanInfo, to, c);
  });
}

annulus_status annulus_plan_workspace_bytes(annulus_plan* plan, size_t* bytes) {
  return guarded([&] {
    const PlanPin pin(plans(), number(plan));
    check_pointer("bytes (where the size goes)", bytes);
    *bytes = pin->plan.workspace_bytes();
  });
}

annulus_status annulus_plan_run(annulus_plan* plan, void* stream, const annulus_operands* operands,
                                void* workspace) {
  return guarded([&] {
    const PlanPin pin(plans(), number(plan));
    const RunOperands all = run_operands_of(operands);
    if (all.buffers) {
      pin->plan.run(stream, all.operands, workspace, *all.buffers);
    } else {
      pin->plan.run(stream, all.operands, workspace);
    }
  });
}

annulus_status annulus_plan_bind(annulus_plan* plan, const annulus_operands* operands,
                                 void* workspace, annulus_bound** bound) {
  return guarded([&] {
    const PlanPin pin(plans(), number(plan));
    check_pointer("bound (where the handle goes)", bound);
    const RunOperands all = run_operands_of(operands);
    auto object = std::make_unique<BoundCall>(
        all.buffers ? pin->plan.bind(all.operands, workspace, *all.buffers)
                    : pin->plan.bind(all.operands, workspace));
    *bound = reinterpret_cast<annulus_bound*>(bound_calls().insert(std::move(object)));
  });
}

annulus_status annulus_bound_run(annulus_bound* bound, void* stream) {
  return guarded([&] {
    const BoundPin pin(bound_calls(), number(bound));
    pin->run(stream);
  });
}

annulus_status annulus_bound_destroy(annulus_bound* bound) {
  return guarded([&] { bound_calls().erase(number(bound)); });
}

}  // extern "C"
