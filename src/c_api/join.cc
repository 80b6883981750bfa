// The C interface of joins and gathers over ranks. Each function converts its arguments and calls
// annulus/join.h.
#include "annulus/c_ring.h"

#include "annulus/join.h"
#include "c_api/functions.h"
#include "c_api/objects.h"
#include "c_api/step.h"

namespace annulus::c_api {
namespace {

constexpr StructName kJoinProblem = {"annulus_join_problem", "ANNULUS_JOIN_PROBLEM_INIT"};
constexpr StructName kJoinPlanInfo = {"annulus_join_plan_info", "ANNULUS_JOIN_PLAN_INFO_INIT"};
constexpr StructName kJoinOperands = {"annulus_join_operands", "ANNULUS_JOIN_OPERANDS_INIT"};
constexpr StructName kGatherProblem = {"annulus_gather_problem", "ANNULUS_GATHER_PROBLEM_INIT"};
constexpr StructName kGatherOperands = {"annulus_gather_operands", "ANNULUS_GATHER_OPERANDS_INIT"};

static_assert(ANNULUS_JOIN_ALL == static_cast<int>(JoinedSlices::kAll));
static_assert(ANNULUS_JOIN_HEADS == static_cast<int>(JoinedSlices::kHeads));
static_assert(ANNULUS_JOIN_ROWS == static_cast<int>(JoinedSlices::kRows));

HandleTable<JoinPlan>& join_plans() {
  static auto* table =
      new HandleTable<JoinPlan>("join plan", 0x4b, HandleTable<JoinPlan>::Use::kInItsProcess);
  return *table;
}
using JoinPin = HandleTable<JoinPlan>::Pin;

HandleTable<GatherPlan>& gather_plans() {
  static auto* table =
      new HandleTable<GatherPlan>("gather plan", 0x4d, HandleTable<GatherPlan>::Use::kInItsProcess);
  return *table;
}
using GatherPin = HandleTable<GatherPlan>::Pin;

JoinProblem problem_of(const annulus_join_problem* given) {
  const annulus_join_problem c =
      read_struct(kJoinProblem, given, annulus_join_problem ANNULUS_JOIN_PROBLEM_INIT);
  return {.heads = c.heads,
          .dim_v = c.dim_v,
          .dtype = static_cast<Dtype>(c.dtype),
          .lse_base = static_cast<LseBase>(c.lse_base),
          .max_rows = c.max_rows,
          .slices = static_cast<JoinedSlices>(c.slices),
          .form = static_cast<PartialForm>(c.form),
          .carry_out = truth("carry_out", c.carry_out),
          .sink_logits = truth("sink_logits", c.sink_logits)};
}

}  // namespace
}  // namespace annulus::c_api

extern "C" {

annulus_status annulus_join_slice(int64_t count, int32_t ranks, int32_t rank, int64_t* begin,
                                  int64_t* end) {
  return guarded([&] {
    check_pointer("begin", begin);
    check_pointer("end", end);
    const SliceRange slice = slice_of(count, ranks, rank);
    *begin = slice.begin;
    *end = slice.end;
  });
}

annulus_status annulus_join_problem_validate(const annulus_join_problem* problem) {
  return guarded([&] { validate(problem_of(problem)); });
}

annulus_status annulus_join_plan_create(annulus_device* device, annulus_communicator* communicator,
                                        const annulus_join_problem* problem,
                                        annulus_join_plan** plan) {
  return guarded([&] {
    const DevicePin own(devices(), number(device));
    const CommunicatorPin ranks(communicators(), number(communicator));
    check_pointer("plan (where the handle goes)", plan);
    give(plan, join_plans(),
         std::make_unique<JoinPlan>(
             plan_join(own->device, ranks->communicator, problem_of(problem))));
  });
}

annulus_status annulus_join_plan_destroy(annulus_join_plan* plan) {
  return guarded([&] { join_plans().erase(number(plan)); });
}

annulus_status annulus_join_plan_get_info(annulus_join_plan* plan, annulus_join_plan_info* to) {
  return guarded([&] {
    const JoinPin pin(join_plans(), number(plan));
    const JoinInfo& info = pin->info();
    annulus_join_plan_info c = ANNULUS_JOIN_PLAN_INFO_INIT;
    c.reason = info.reason.c_str();
    c.compile_ms = info.compile_ms;
    c.rank = info.rank;
    c.ranks = info.ranks;
    c.exchanges = info.exchanges;
    c.bytes_sent = info.bytes_sent;
    write_struct(kJoinPlanInfo, to, c);
  });
}

annulus_status annulus_join_plan_workspace_bytes(annulus_join_plan* plan, size_t* bytes) {
  return guarded([&] {
    const JoinPin pin(join_plans(), number(plan));
    check_pointer("bytes (where the size goes)", bytes);
    *bytes = pin->workspace_bytes();
  });
}

annulus_status annulus_join_plan_run(annulus_join_plan* plan, void* stream,
                                     const annulus_join_operands* operands, void* workspace) {
  return guarded([&] {
    const JoinPin pin(join_plans(), number(plan));
    const annulus_join_operands c =
        read_struct(kJoinOperands, operands, annulus_join_operands ANNULUS_JOIN_OPERANDS_INIT);
    pin->run(stream,
             {.rows = c.rows,
              .o = c.o,
              .lse = c.lse,
              .state = state_of(c.state),
              .sink_logits = c.sink_logits,
              .o_strides = strides_of(c.o_strides),
              .lse_strides = strides_of(c.lse_strides),
              .joined_o = c.joined_o,
              .joined_lse = c.joined_lse,
              .joined_state = state_of(c.joined_state),
              .joined_o_strides = strides_of(c.joined_o_strides),
              .joined_lse_strides = strides_of(c.joined_lse_strides)},
             workspace);
  });
}

annulus_status annulus_gather_plan_create(annulus_device* device,
                                          annulus_communicator* communicator,
                                          const annulus_gather_problem* problem,
                                          annulus_gather_plan** plan) {
  return guarded([&] {
    const DevicePin own(devices(), number(device));
    const CommunicatorPin ranks(communicators(), number(communicator));
    check_pointer("plan (where the handle goes)", plan);
    const annulus_gather_problem c =
        read_struct(kGatherProblem, problem, annulus_gather_problem ANNULUS_GATHER_PROBLEM_INIT);
    give(plan, gather_plans(),
         std::make_unique<GatherPlan>(plan_gather(own->device, ranks->communicator,
                                                  {.heads = c.heads,
                                                   .dim = c.dim,
                                                   .dtype = static_cast<Dtype>(c.dtype),
                                                   .max_rows = c.max_rows})));
  });
}

annulus_status annulus_gather_plan_destroy(annulus_gather_plan* plan) {
  return guarded([&] { gather_plans().erase(number(plan)); });
}

annulus_status annulus_gather_plan_workspace_bytes(annulus_gather_plan* plan, size_t* bytes) {
  return guarded([&] {
    const GatherPin pin(gather_plans(), number(plan));
    check_pointer("bytes (where the size goes)", bytes);
    *bytes = pin->workspace_bytes();
  });
}

annulus_status annulus_gather_plan_run(annulus_gather_plan* plan, void* stream,
                                       const annulus_gather_operands* operands, void* workspace) {
  return guarded([&] {
    const GatherPin pin(gather_plans(), number(plan));
    const annulus_gather_operands c = read_struct(
        kGatherOperands, operands, annulus_gather_operands ANNULUS_GATHER_OPERANDS_INIT);
    pin->run(stream,
             {.rows = c.rows,
              .q = c.q,
              .gathered = c.gathered,
              .q_strides = strides_of(c.q_strides),
              .gathered_strides = strides_of(c.gathered_strides)},
             workspace);
  });
}

}  // extern "C"
