// Calls of annulus/c_batch.h.

#include "fuzz/c_calls/program.h"

namespace annulus::fuzz {

// Other patterns, dtypes and scores need other kernels. There is no time to compile them, so they
// are only validated.
annulus_batch_problem Program::batch_problem() {
  annulus_batch_problem made = ANNULUS_BATCH_PROBLEM_INIT;
  made.dim_qk = made.dim_v = kSide;
  made.pattern = "causal";
  made.most = {4, kSide, 0, kSide, 0};
  return made;
}

void Program::check_batch() {
  Sized<annulus_batch_problem> batch(batch_problem(), bytes_);
  batch->heads = small(4);
  batch->kv_heads = small(2);
  batch->dim_v = small(64);
  batch->pattern = pattern();
  batch->score = bytes_.below(4) == 0 ? "softcap(3)" : nullptr;
  batch->softcap = static_cast<double>(bytes_.below(3)) - 1;
  batch->most = {small(4), small(64), small(64), small(64), small(255)};
  batch->page_rows = small(64);
  batch->has_scale = tiny(1);
  batch->dtype = tiny(4);
  batch->want_lse = tiny(1);
  batch->carry_out = tiny(1);
  returned(annulus_batch_problem_validate(batch.get()), "annulus_batch_problem_validate");
}

void Program::create_batch() {
  annulus_device* device = pick<annulus_device>(Kind::kDevice);
  Sized<annulus_batch_problem> batch(batch_problem(), bytes_);
  batch->heads = bytes_.between(1, 2);
  batch->kv_heads = bytes_.between(1, 2);
  batch->most = {bytes_.between(1, 4), bytes_.between(1, 64), 0, bytes_.between(1, 64),
                 bytes_.between(0, 255)};
  batch->page_rows = bytes_.below(2) == 0 ? 0 : 16;
  batch->want_lse = bytes_.below(4) == 0 ? 1 : 0;
  Sized<annulus_batch_options> options(ANNULUS_BATCH_OPTIONS_INIT, bytes_);
  options->part_keys = bytes_.below(4) == 0 ? small(64) : 0;
  options->max_workspace_bytes = bytes_.below(4) == 0 ? bytes_.number() : 0;
  options->max_multiprocessors = tiny(4);
  options->check_status = tiny(1);
  if (bytes_.below(8) == 0) options->config = "decode m16 n64 w4 s2, chunk m64 n64 w4 s2";
  annulus_batch_plan* plan = nullptr;
  made(annulus_batch_plan_create(device, batch.get(),
                                 bytes_.below(4) == 0 ? nullptr : options.get(), &plan),
       plan, Kind::kBatch, "annulus_batch_plan_create");
}

// Lengths, positions and page numbers are in device memory, and a step may have any values there.
// Their arrays have the sizes that the call states.
void Program::run_batch() {
  auto* const plan = pick<annulus_batch_plan>(Kind::kBatch);
  std::int32_t step[40];
  for (std::int32_t& number : step) {
    number = static_cast<std::int32_t>(bytes_.below(4) == 0 ? bytes_.number() : bytes_.byte() / 4);
  }
  annulus_device_copy_to_device(setting().device, setting().memory[8], step, sizeof step);
  const auto* const numbers = static_cast<const std::int32_t*>(setting().memory[8]);
  Sized<annulus_batch_metadata> metadata(ANNULUS_BATCH_METADATA_INIT, bytes_);
  metadata->q_begin = numbers;
  metadata->k_length = bytes_.below(16) == 0 ? nullptr : numbers + 8;
  metadata->requests = bytes_.below(2) == 0 ? nullptr : numbers + 16;
  metadata->k_position = bytes_.below(2) == 0 ? nullptr : numbers + 17;
  if (bytes_.below(2) == 0) metadata->k_pages = {numbers + 24, nullptr, bytes_.between(-1, 4)};
  void* const workspace = scratch();
  std::size_t needed = 0;
  if (annulus_batch_plan_workspace_bytes(plan, &needed) == ANNULUS_OK && needed > Setting::kBytes) {
    wrong("a batch needs {} bytes of workspace", needed);
  }
  if (!may_launch() ||
      !returned(annulus_batch_plan_prepare(plan, nullptr, metadata.get(), workspace),
                "annulus_batch_plan_prepare")) {
    return;
  }
  Sized<annulus_batch_operands> given(ANNULUS_BATCH_OPERANDS_INIT, bytes_);
  void* const* memory = setting().memory;
  given->q = memory[0], given->k = memory[1], given->v = memory[2], given->o = place<void>(3);
  given->lse = bytes_.below(4) == 0 ? place<float>(4) : nullptr;
  given->q_strides = given->o_strides = {2 * kSide, kSide};
  given->lse_strides = {1, kSide};
  given->k_strides = given->v_strides = {16 * kSide, kSide, kSide};
  if (bytes_.below(16) == 0) given->v_strides.row = bytes_.byte();
  given->k_pages = given->v_pages = 4;
  returned(annulus_batch_plan_run(plan, nullptr, given.get(), workspace), "annulus_batch_plan_run");
  Sized<annulus_batch_status> status(ANNULUS_BATCH_STATUS_INIT, bytes_);
  if (returned(annulus_batch_plan_get_status(plan, workspace, status.get()),
               "annulus_batch_plan_get_status") &&
      (status->rule < ANNULUS_RULE_NONE || status->rule > ANNULUS_RULE_PAGE)) {
    wrong("the status is rule {}: {}", status->rule,
          annulus_batch_rule_text(static_cast<int>(status->rule)));
  }
}

void Program::call_batch() {
  switch (bytes_.below(8)) {
    case 0:
      return check_batch();
    case 1:
      return create_batch();
    case 2: {
      Sized<annulus_batch_plan_info> info(ANNULUS_BATCH_PLAN_INFO_INIT, bytes_);
      returned(annulus_batch_plan_get_info(pick<annulus_batch_plan>(Kind::kBatch), info.get()),
               "annulus_batch_plan_get_info");
      return;
    }
    case 3:
      return give_back(Kind::kBatch);
    default:
      return run_batch();
  }
}

}  // namespace annulus::fuzz
