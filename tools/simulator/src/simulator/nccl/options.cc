#include "simulator/nccl/options.h"

#include <mutex>

#include "base/random.h"

namespace annulus::simulator::nccl {
namespace {

struct Shared {
  std::mutex mutex;  // guards the members below
  Options options;
  base::Random random{0};
  unsigned calls = 0;  // number of calls of the function that is to fail
  annulus_simulator_nccl_counters counters = ANNULUS_SIMULATOR_NCCL_COUNTERS_INIT;
};
Shared& shared() {
  static Shared* const only = new Shared;  // used until the process ends
  return *only;
}

struct Newer {
  std::string_view symbol;
  unsigned since;
};
// Functions that are newer than the oldest supported NCCL.
constexpr Newer kNewer[] = {
    {"ncclCommSplit", 21800},
    {"ncclMemAlloc", 21900},
    {"ncclMemFree", 21900},
    {"ncclCommRegister", 21900},
    {"ncclCommDeregister", 21900},
    {"ncclCommInitRankScalable", 22300},
    {"ncclCommShrink", 22700},
    {"ncclCommWindowRegister", 22700},
    {"ncclCommWindowDeregister", 22700},
    {"ncclAlltoAll", 22803},
    {"ncclCommRevoke", 22807},
};

}  // namespace

Options options() {
  const std::lock_guard lock(shared().mutex);
  return shared().options;
}

void set_options(const Options& options) {
  const std::lock_guard lock(shared().mutex);
  shared().options = options;
  shared().random = base::Random(options.seed);
  shared().calls = 0;
}

bool has_function(std::string_view symbol) {
  const unsigned version = options().version;
  for (const Newer& newer : kNewer) {
    if (newer.symbol == symbol) return newer.since <= version;
  }
  return true;
}

std::optional<abi::NcclResult> planned_failure(std::string_view symbol) {
  const std::lock_guard lock(shared().mutex);
  const Options& options = shared().options;
  if (options.fail_code == 0 || symbol != std::string_view(options.fail_function)) {
    return std::nullopt;
  }
  if (shared().calls++ != options.fail_after) return std::nullopt;
  return options.fail_code;
}

void count_group(std::uint64_t messages, std::uint64_t bytes, std::uint64_t predicted_ns) {
  const std::lock_guard lock(shared().mutex);
  annulus_simulator_nccl_counters& sum = shared().counters;
  ++sum.groups;
  sum.messages += messages;
  sum.bytes += bytes;
  sum.predicted_ns += predicted_ns;
}

annulus_simulator_nccl_counters counters(bool clear) {
  const std::lock_guard lock(shared().mutex);
  const annulus_simulator_nccl_counters now = shared().counters;
  if (clear) shared().counters = ANNULUS_SIMULATOR_NCCL_COUNTERS_INIT;
  return now;
}

unsigned draw(unsigned bound) {
  const std::lock_guard lock(shared().mutex);
  return bound == 0 ? 0 : shared().random.below(bound + 1);
}

}  // namespace annulus::simulator::nccl
