// The assumptions of the cycle model of a sub-core for each architecture, and their names.

#include <fmt/format.h>

#include <stdexcept>

#include "sub_core.h"

namespace annulus::bench {

CoreAssumptions core_assumptions(jit::Arch arch) {
  CoreAssumptions made;
  switch (arch.number) {
    case 80:  // 16 floating-point lanes per sub-core; newer architectures have 32
      made.float_interval = 2;
      made.product_interval = 8;
      return made;
    case 90:
      return made;
    default:
      throw std::runtime_error(
          fmt::format("the model has sub-cores of sm_80 and sm_90a, not of {}", to_string(arch)));
  }
}

std::span<const NamedAssumption> named_assumptions() {
  using A = CoreAssumptions;
  static constexpr NamedAssumption kNames[] = {
      {"float_interval", &A::float_interval},
      {"integer_interval", &A::integer_interval},
      {"logic_interval", &A::logic_interval},
      {"special_interval", &A::special_interval},
      {"shared_interval", &A::shared_interval},
      {"product_interval", &A::product_interval},
      {"special_queue", &A::special_queue},
      {"shared_queue", &A::shared_queue},
      {"product_queue", &A::product_queue},
      {"special_latency", &A::special_latency},
      {"shuffle_latency", &A::shuffle_latency},
      {"shared_latency", &A::shared_latency},
      {"global_latency", &A::global_latency},
      {"phase_latency", &A::phase_latency},
      {"system_latency", &A::system_latency},
      {"fence_latency", &A::fence_latency},
      {"read_latency", &A::read_latency},
      {"other_latency", &A::other_latency},
      {"product_latency", &A::product_latency},
      {"barrier_latency", &A::barrier_latency},
      {"branch_latency", &A::branch_latency},
      {"jitter", &A::jitter},
      {"stagger", &A::stagger},
      {"copies_first", &A::copies_first},
      {"youngest", &A::youngest},
  };
  return kNames;
}

const char* to_string(Pipe pipe) {
  static constexpr const char* kNames[] = {"issue", "FMA", "ALU", "MUFU", "shared", "tensor"};
  return kNames[static_cast<int>(pipe)];
}

const char* to_string(Wait wait) {
  static constexpr const char* kNames[] = {
      "issued", "stall",  "branch", "SHFL",  "MUFU", "shared",  "global", "data",
      "other",  "wait 1", "wait 0", "queue", "turn", "barrier", "pipe",   "other warp"};
  return kNames[static_cast<int>(wait)];
}

}  // namespace annulus::bench
