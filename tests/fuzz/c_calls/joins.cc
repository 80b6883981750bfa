// Calls that join answers over several sets of keys, on one device or over ranks, with the slices
// of ranks. Calls about the memory of communicators are here too.

#include "fuzz/c_calls/program.h"

namespace annulus::fuzz {
namespace {

constexpr annulus_row_strides kRows = {2 * kSide,
                                       kSide};  // strides of O and Q with up to two heads
constexpr annulus_row_strides kLseRows = {2, 1};

}  // namespace

annulus_merge_problem Program::merge_problem() {
  annulus_merge_problem made = ANNULUS_MERGE_PROBLEM_INIT;
  made.heads = 2, made.dim_v = kSide, made.max_rows = kSide;
  return made;
}

annulus_join_problem Program::join_problem() {
  annulus_join_problem made = ANNULUS_JOIN_PROBLEM_INIT;
  made.heads = 2, made.dim_v = kSide, made.max_rows = kSide;
  return made;
}

void Program::check_merge() {
  Sized<annulus_merge_problem> merge(merge_problem(), bytes_);
  std::int64_t* const numbers[] = {&merge->heads, &merge->dim_v, &merge->inputs, &merge->max_rows};
  std::int32_t* const choices[] = {&merge->dtype, &merge->lse_base, &merge->form, &merge->carry_out,
                                   &merge->sink_logits};
  if (bytes_.below(2) == 0) *numbers[bytes_.below(4)] = bytes_.number();
  *choices[bytes_.below(5)] = tiny(4);
  returned(annulus_merge_problem_validate(merge.get()), "annulus_merge_problem_validate");
}

void Program::create_merge() {
  auto* const device = pick<annulus_device>(Kind::kDevice);
  Sized<annulus_merge_problem> merge(merge_problem(), bytes_);
  merge->heads = bytes_.between(1, 2);
  merge->inputs = bytes_.between(2, 3), merge->max_rows = bytes_.between(1, kSide);
  merge->form = static_cast<std::int32_t>(bytes_.between(1, 2));
  merge->carry_out = merge->form == ANNULUS_PARTIAL_STATES ? tiny(1) : 0;
  merge->sink_logits = bytes_.below(4) == 0 ? 1 : 0;
  annulus_merge_plan* plan = nullptr;
  made(annulus_merge_plan_create(device, merge.get(), &plan), plan, Kind::kMerge,
       "annulus_merge_plan_create");
  merged_ = merge.value;
}

annulus_state Program::state_at(int first) {
  return {place<float>(first), place<float>(first + 1), place<float>(first + 2)};
}

void Program::run_merge() {
  auto* const plan = pick<annulus_merge_plan>(Kind::kMerge);
  const bool states = needed(merged_.form == ANNULUS_PARTIAL_STATES);
  annulus_merge_input inputs[ANNULUS_MAX_MERGE_INPUTS] = {};
  for (int i = 0; i < 3; ++i) {
    if (states) {
      inputs[i].state = state_at(i);
    } else {
      inputs[i].o = place<void>(i), inputs[i].lse = place<float>(4 + i);
    }
  }
  const auto rows = static_cast<std::int32_t>(bytes_.number());
  annulus_device_copy_to_device(setting().device, setting().memory[8], &rows, sizeof rows);
  Sized<annulus_merge_operands> given(ANNULUS_MERGE_OPERANDS_INIT, bytes_);
  given->inputs = bytes_.below(24) == 0 ? nullptr : inputs;
  given->input_count = bytes_.below(8) == 0 ? count(5) : 0;
  given->input_o_strides = given->o_strides = kRows;
  given->input_lse_strides = given->lse_strides = kLseRows;
  if (bytes_.below(24) == 0) given->input_o_strides.row = bytes_.byte();
  if (needed(merged_.carry_out == 1)) {
    given->state = state_at(10);
  } else {
    given->o = place<void>(9), given->lse = bytes_.below(2) == 0 ? nullptr : place<float>(7);
  }
  if (bytes_.below(2) == 0) given->rows = place<const std::int32_t>(8);
  if (needed(merged_.sink_logits == 1)) given->sink_logits = place<const float>(3);
  if (!may_launch()) return;
  returned(annulus_merge_plan_run(plan, nullptr, given.get()), "annulus_merge_plan_run");
}

void Program::call_merge() {
  switch (bytes_.below(6)) {
    case 0:
      return check_merge();
    case 1:
      return create_merge();
    case 2: {
      Sized<annulus_merge_plan_info> info(ANNULUS_MERGE_PLAN_INFO_INIT, bytes_);
      returned(annulus_merge_plan_get_info(pick<annulus_merge_plan>(Kind::kMerge), info.get()),
               "annulus_merge_plan_get_info");
      return;
    }
    case 3:
      return give_back(Kind::kMerge);
    default:
      return run_merge();
  }
}

Sized<annulus_join_problem> Program::drawn_join(bool any) {
  Sized<annulus_join_problem> join(join_problem(), bytes_);
  join->heads = bytes_.between(1, 2), join->max_rows = bytes_.between(1, kSide);
  join->slices = static_cast<std::int32_t>(bytes_.between(1, 3));
  join->form = static_cast<std::int32_t>(bytes_.between(1, 2));
  join->carry_out = join->form == ANNULUS_PARTIAL_STATES ? tiny(1) : 0;
  join->sink_logits = bytes_.below(4) == 0 ? 1 : 0;
  if (!any) return join;
  std::int64_t* const numbers[] = {&join->heads, &join->dim_v, &join->max_rows};
  std::int32_t* const choices[] = {&join->dtype, &join->lse_base,  &join->slices,
                                   &join->form,  &join->carry_out, &join->sink_logits};
  if (bytes_.below(2) == 0) *numbers[bytes_.below(3)] = bytes_.number();
  *choices[bytes_.below(6)] = tiny(4);
  return join;
}

void Program::run_join() {
  auto* const plan = pick<annulus_join_plan>(Kind::kJoin);
  std::size_t bytes = 0;
  if (returned(annulus_join_plan_workspace_bytes(plan, &bytes),
               "annulus_join_plan_workspace_bytes") &&
      bytes > Setting::kBytes) {
    wrong("a join needs {} bytes of workspace", bytes);
  }
  Sized<annulus_join_operands> given(ANNULUS_JOIN_OPERANDS_INIT, bytes_);
  given->rows = bytes_.below(8) == 0 ? bytes_.number() : bytes_.between(0, joined_.max_rows);
  if (needed(joined_.form == ANNULUS_PARTIAL_STATES)) {
    given->state = state_at(0);
  } else {
    given->o = place<void>(0), given->lse = place<float>(4);
  }
  if (needed(joined_.sink_logits == 1)) given->sink_logits = place<const float>(3);
  given->o_strides = given->joined_o_strides = kRows;
  given->lse_strides = given->joined_lse_strides = kLseRows;
  if (needed(joined_.carry_out == 1)) {
    given->joined_state = state_at(10);
  } else {
    given->joined_o = place<void>(5);
    given->joined_lse = bytes_.below(2) == 0 ? nullptr : place<float>(6);
  }
  void* const workspace = scratch();
  if (!may_launch()) return;
  returned(annulus_join_plan_run(plan, nullptr, given.get(), workspace), "annulus_join_plan_run");
}

void Program::call_join() {
  switch (bytes_.below(8)) {
    case 0:
      returned(annulus_join_problem_validate(drawn_join(true).get()),
               "annulus_join_problem_validate");
      return;
    case 1:
    case 2: {
      auto* const device = pick<annulus_device>(Kind::kDevice);
      auto* const communicator = pick<annulus_communicator>(Kind::kCommunicator);
      Sized<annulus_join_problem> join = drawn_join(false);
      annulus_join_plan* plan = nullptr;
      made(annulus_join_plan_create(device, communicator, join.get(), &plan), plan, Kind::kJoin,
           "annulus_join_plan_create");
      joined_ = join.value;
      return;
    }
    case 3: {
      Sized<annulus_join_plan_info> info(ANNULUS_JOIN_PLAN_INFO_INIT, bytes_);
      returned(annulus_join_plan_get_info(pick<annulus_join_plan>(Kind::kJoin), info.get()),
               "annulus_join_plan_get_info");
      return;
    }
    case 4:
      return give_back(Kind::kJoin);
    default:
      return run_join();
  }
}

void Program::call_gather() {
  switch (bytes_.below(6)) {
    case 0:
    case 1: {
      auto* const device = pick<annulus_device>(Kind::kDevice);
      auto* const communicator = pick<annulus_communicator>(Kind::kCommunicator);
      Sized<annulus_gather_problem> gather(ANNULUS_GATHER_PROBLEM_INIT, bytes_);
      gather->heads = bytes_.between(1, 2), gather->dim = kSide, gather->max_rows = kSide;
      if (bytes_.below(8) == 0) gather->max_rows = bytes_.number();
      if (bytes_.below(8) == 0) gather->dtype = small(4);
      annulus_gather_plan* plan = nullptr;
      return made(annulus_gather_plan_create(device, communicator, gather.get(), &plan), plan,
                  Kind::kGather, "annulus_gather_plan_create");
    }
    case 2:
      return give_back(Kind::kGather);
    default: {
      auto* const plan = pick<annulus_gather_plan>(Kind::kGather);
      std::size_t bytes = 0;
      if (returned(annulus_gather_plan_workspace_bytes(plan, &bytes),
                   "annulus_gather_plan_workspace_bytes") &&
          bytes > Setting::kBytes) {
        return;  // the problem may have any number of rows
      }
      Sized<annulus_gather_operands> given(ANNULUS_GATHER_OPERANDS_INIT, bytes_);
      given->rows = bytes_.below(65);
      given->q = place<void>(0), given->gathered = place<void>(5);
      given->q_strides = given->gathered_strides = kRows;
      void* const workspace = scratch();
      if (!may_launch()) return;
      returned(annulus_gather_plan_run(plan, nullptr, given.get(), workspace),
               "annulus_gather_plan_run");
    }
  }
}

void Program::call_slices() {
  switch (bytes_.below(3)) {
    case 0: {
      const std::int64_t whole = bytes_.number();
      const int ranks = tiny(8), rank = tiny(8);
      std::int64_t begin = -1, end = -1;
      if (returned(annulus_join_slice(whole, ranks, rank, &begin, &end), "annulus_join_slice") &&
          (begin < 0 || begin > end || end > whole)) {
        wrong("rank {} of {} has [{}, {}) of {}", rank, ranks, begin, end, whole);
      }
      return;
    }
    case 1: {
      const annulus_key_interleave interleave = {small(16), small(4), small(3)};
      const std::int64_t keys = bytes_.number();
      std::int64_t held = -1;
      if (returned(annulus_interleave_held_keys(&interleave, keys, &held),
                   "annulus_interleave_held_keys") &&
          (held < 0 || held > keys)) {
        wrong("rank {} of {} has {} of {} keys", interleave.rank, interleave.ranks, held, keys);
      }
      return;
    }
    default: {
      const int kind = tiny(5);
      if (annulus_communicator_event_text(kind)[0] == '\0') wrong("event {} has no text", kind);
      auto* const communicator = pick<annulus_communicator>(Kind::kCommunicator);
      void* memory = nullptr;
      const std::int64_t bytes = bytes_.below(8) == 0 ? bytes_.number() : bytes_.byte();
      if (!returned(
              annulus_communicator_allocate(communicator, static_cast<std::size_t>(bytes), &memory),
              "annulus_communicator_allocate")) {
        return;
      }
      if (annulus_communicator_release(communicator, memory) != ANNULUS_OK)
        wrong("memory of a communicator is not taken back: {}", annulus_last_error());
      if (memory != nullptr && annulus_communicator_release(communicator, memory) == ANNULUS_OK)
        wrong("memory of a communicator is taken back twice");
    }
  }
}

}  // namespace annulus::fuzz
