// Arguments that are drawn from an input.

#include <string>

#include "fuzz/c_calls/program.h"

namespace annulus::fuzz {
namespace {

const volatile std::int32_t kGoOn = 0;

}  // namespace

const char* Program::pattern() {
  static constexpr const char* kTexts[] = {"causal",
                                           "dense",
                                           "causal & window(5, 3)",
                                           "random(2, 1, 8)",
                                           "blocks()",
                                           "sum(causal, dense)",
                                           "heads(causal, dense)",
                                           "batches(causal, dense)",
                                           "window(",
                                           "",
                                           "vertical_slash([1, 2], [0])",
                                           "blocks(\"/nowhere\")",
                                           "preset(bigbird)"};
  const std::int64_t choice = bytes_.below(14);
  return choice == 13 ? nullptr : kTexts[choice];
}

std::int64_t Program::small(std::int64_t most) {
  return bytes_.below(24) == 0 ? bytes_.number() : bytes_.between(0, most);
}

const volatile std::int32_t* Program::flag() {
  const std::int64_t choice = bytes_.below(16);
  return choice == 0 ? &kCancel : choice == 1 ? &kGoOn : nullptr;
}

Sized<annulus_problem> Program::problem(bool planned) {
  Sized<annulus_problem> made(ANNULUS_PROBLEM_INIT, bytes_);
  made->seq_q = bytes_.between(0, kSide);
  made->seq_k = bytes_.between(0, kSide);
  made->dim_qk = made->dim_v = kSide;
  made->pattern = "causal";
  if (planned) return made;
  made->batch = small(2);
  if (bytes_.below(2) == 0) {
    made->heads = 2;
    made->pattern = pattern();
    return made;
  }
  made->heads = small(4);
  made->kv_heads = small(2);
  made->dim_v = small(64);
  made->pattern = pattern();
  made->softcap = static_cast<double>(bytes_.below(3)) - 1;
  made->has_q0 = static_cast<std::int32_t>(small(1));
  made->q0 = bytes_.number();
  made->dtype = static_cast<std::int32_t>(small(4));
  made->want_lse = static_cast<std::int32_t>(small(1));
  made->carry_in = static_cast<std::int32_t>(bytes_.below(16) == 0);
  return made;
}

Sized<annulus_plan_options> Program::plan_options() {
  Sized<annulus_plan_options> made(ANNULUS_PLAN_OPTIONS_INIT, bytes_);
  made->config = kConfig;
  made->kv_splits = 1;
  made->cancel = flag();
  made->max_work = 3'000'000;  // the mask of causal takes two million, and only causal is planned
  made->block_rows = small(128);
  made->block_columns = small(128);
  return made;
}

Sized<annulus_operands> Program::operands(bool host_too) {
  Sized<annulus_operands> made(ANNULUS_OPERANDS_INIT, bytes_);
  void* const* memory = setting().memory;
  static char host[64];
  const auto place = [&](int i) -> void* {
    const std::int64_t choice = bytes_.below(32);
    return choice == 0 ? nullptr : choice == 1 && host_too ? host : memory[choice == 2 ? 0 : i];
  };
  made->q = place(0), made->k = place(1), made->v = place(2), made->o = place(3);
  for (annulus_strides* strides :
       {&made->q_strides, &made->k_strides, &made->v_strides, &made->o_strides}) {
    *strides = {64 * 64, 64 * 64, 64};
    if (bytes_.below(32) == 0) strides->row = bytes_.below(64);
  }
  return made;
}

Sized<annulus_operands> Program::operands_with_lse(bool host_too) {
  Sized<annulus_operands> made = operands(host_too);
  made->lse = place<float>(4);
  return made;
}

Sized<annulus_problem> Program::problem_with_lse() {
  Sized<annulus_problem> made = problem(true);
  made->want_lse = bytes_.below(12) != 0;
  return made;
}

annulus_operands Program::whole_operands() {
  annulus_operands made = ANNULUS_OPERANDS_INIT;
  void* const* memory = setting().memory;
  made.q = memory[0], made.k = memory[1], made.v = memory[2], made.o = memory[3];
  made.q_strides = made.k_strides = made.v_strides = made.o_strides = {64 * 64, 64 * 64, 64};
  return made;
}

Sized<annulus_layout_sizes> Program::sizes() {
  Sized<annulus_layout_sizes> made(ANNULUS_LAYOUT_SIZES_INIT, bytes_);
  made->block_rows = small(32);
  made->block_columns = small(32);
  made->seq_q = small(100);
  made->seq_k = small(100);
  made->heads = small(4);
  return made;
}

void* Program::scratch() {
  const std::int64_t choice = bytes_.below(16);
  if (choice == 0) return nullptr;
  auto* const bytes = static_cast<std::byte*>(setting().memory[9]);
  return choice == 1 ? bytes + 1 : bytes;
}

const char* Program::path() {
  static const std::string kPaths[] = {setting().folder + "/a", setting().folder + "/b",
                                       setting().folder, setting().folder + "/none/c", ""};
  const std::int64_t choice = bytes_.below(24);
  if (choice >= 6) return kPaths[choice % 2].c_str();
  return choice == 5 ? nullptr : kPaths[choice].c_str();
}

}  // namespace annulus::fuzz
