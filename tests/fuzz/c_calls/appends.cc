// Calls of annulus/c_batch.h.

#include <cstdlib>

#include "fuzz/c_calls/program.h"

namespace annulus::fuzz {

annulus_append_problem Program::append_problem() {
  annulus_append_problem made = ANNULUS_APPEND_PROBLEM_INIT;
  made.heads = made.kv_heads = 2;
  made.dim_qk = made.dim_v = kSide;
  made.most = {4, kSide, 0, kSide, 0};
  return made;
}

Sized<annulus_append_problem> Program::drawn_append(bool any) {
  Sized<annulus_append_problem> drawn(append_problem(), bytes_);
  drawn->heads = any ? small(4) : bytes_.between(0, 2);
  drawn->kv_heads = any ? small(4) : bytes_.between(1, 2);
  drawn->dim_qk = any ? small(64) : 16 * bytes_.between(1, 4);
  drawn->most.rows = any ? small(64) : bytes_.between(1, kSide);
  drawn->page_rows = any ? small(64) : 16 * bytes_.below(2);
  drawn->rotary_dims = any ? small(64) : 0;
  drawn->rotary_base = static_cast<double>(bytes_.between(any ? -1 : 1, 1000));
  drawn->rotary_order = any ? tiny(4) : static_cast<std::int32_t>(bytes_.below(3));
  drawn->place = any ? tiny(4) : static_cast<std::int32_t>(bytes_.between(1, 2));
  drawn->table_dtype = any ? tiny(5) : static_cast<std::int32_t>(bytes_.below(4));
  drawn->dtype = any ? tiny(4) : ANNULUS_BFLOAT16;
  static constexpr double kFrequencies[512] = {1, 0.5, 0.25, -3};
  if (bytes_.below(8) == 0) drawn->frequencies = kFrequencies;
  return drawn;
}

// All slots and pages are different, which the caller of the library must ensure, or there are
// none.
void Program::run_append() {
  auto* const plan = pick<annulus_append_plan>(Kind::kAppend);
  struct {
    std::int64_t slots[kSide], positions[kSide];
    std::int32_t numbers[32], ids[16];
  } step;
  const std::int64_t factor = 2 * bytes_.below(128) + 1;
  for (std::int64_t i = 0; i < kSide; ++i) {
    step.slots[i] = bytes_.below(8) == 0 ? -1 - std::abs(bytes_.number() / 2) : i * factor % 256;
    step.positions[i] = bytes_.below(8) == 0 ? bytes_.number() : bytes_.byte();
  }
  for (std::int32_t& number : step.numbers) {
    number = static_cast<std::int32_t>(bytes_.below(4) == 0 ? bytes_.number() : bytes_.byte() / 4);
  }
  for (std::int32_t i = 0; i < 16; ++i) step.ids[i] = bytes_.below(8) == 0 ? i - 16 : i;
  auto* const begin = static_cast<std::byte*>(setting().memory[8]);
  annulus_device_copy_to_device(setting().device, begin, &step, sizeof step);
  const auto at = [&](std::size_t offset) { return begin + offset; };
  const auto* const numbers =
      reinterpret_cast<const std::int32_t*>(at(2 * kSide * sizeof(std::int64_t)));
  Sized<annulus_batch_metadata> metadata(ANNULUS_BATCH_METADATA_INIT, bytes_);
  metadata->q_begin = numbers, metadata->k_length = numbers + 8;
  metadata->requests = bytes_.below(2) == 0 ? nullptr : numbers + 16;
  metadata->k_position = bytes_.below(2) == 0 ? nullptr : numbers + 17;
  const bool paged = needed(appended_.page_rows > 0);
  if (paged) metadata->k_pages = {numbers + 32, nullptr, bytes_.between(-1, 4)};
  Sized<annulus_append_operands> given(ANNULUS_APPEND_OPERANDS_INIT, bytes_);
  void* const* memory = setting().memory;
  const bool rotates = needed(appended_.rotary_order != ANNULUS_ROTARY_NONE);
  if (rotates && needed(appended_.heads > 0)) {
    given->q = memory[0], given->rotated_q = place<void>(3);
  }
  given->new_k = memory[1], given->new_v = memory[2];
  given->q_strides = given->rotated_q_strides = {2 * kSide, kSide};
  given->new_k_strides = given->new_v_strides = {2 * kSide, kSide};
  given->k = place<void>(10), given->v = memory[11];
  // A page, or a slab if there are no pages, has room for 64 rows.
  given->k_strides = given->v_strides = {128 * kSide, 2 * kSide, kSide};
  given->k_pages = given->v_pages = paged ? 16 : 256;
  if (needed(appended_.place == ANNULUS_APPEND_SLOTS)) {
    given->slots = reinterpret_cast<const std::int64_t*>(begin);
    given->rows = bytes_.below(2) == 0 ? nullptr : numbers + 16;
  } else {
    given->step = metadata.get();
  }
  if (rotates && needed(given->slots != nullptr)) {
    given->positions = reinterpret_cast<const std::int64_t*>(at(kSide * sizeof(std::int64_t)));
  }
  if (rotates && needed(appended_.table_dtype != 0)) {
    given->cosines = given->sines = memory[4];
    given->table_stride = 32 + bytes_.byte() / 2, given->table_rows = bytes_.byte();
  }
  auto* const word = static_cast<std::uint32_t*>(memory[12]);
  given->status = bytes_.below(4) == 0 ? nullptr : word;
  if (!may_launch()) return;
  returned(annulus_append_plan_clear_status(plan, nullptr, word),
           "annulus_append_plan_clear_status");
  returned(annulus_append_plan_run(plan, nullptr, given.get()), "annulus_append_plan_run");
  Sized<annulus_append_status> status(ANNULUS_APPEND_STATUS_INIT, bytes_);
  if (returned(annulus_append_plan_get_status(plan, word, status.get()),
               "annulus_append_plan_get_status") &&
      (status->rule < ANNULUS_APPEND_RULE_NONE || status->rule > ANNULUS_APPEND_RULE_POSITION)) {
    wrong("the status is rule {}: {}", status->rule,
          annulus_append_rule_text(static_cast<int>(status->rule)));
  }
}

void Program::call_append() {
  switch (bytes_.below(8)) {
    case 0:
      returned(annulus_append_problem_validate(drawn_append(true).get()),
               "annulus_append_problem_validate");
      return;
    case 1: {
      annulus_device* const device = pick<annulus_device>(Kind::kDevice);
      Sized<annulus_append_problem> append = drawn_append(false);
      annulus_append_plan* plan = nullptr;
      made(annulus_append_plan_create(device, append.get(), &plan), plan, Kind::kAppend,
           "annulus_append_plan_create");
      appended_ = append.value;
      return;
    }
    case 2: {
      Sized<annulus_append_plan_info> info(ANNULUS_APPEND_PLAN_INFO_INIT, bytes_);
      returned(annulus_append_plan_get_info(pick<annulus_append_plan>(Kind::kAppend), info.get()),
               "annulus_append_plan_get_info");
      return;
    }
    case 3:
      return give_back(Kind::kAppend);
    default:
      return run_append();
  }
}

}  // namespace annulus::fuzz
