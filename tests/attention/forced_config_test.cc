// Random problems on random configurations of the wgmma families, shipped or not. The heuristic
// chooses other configurations for small problems, but the tuner may choose any legal one.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "annulus/types.h"
#include "attention/kernels/family.h"
#include "attention/kernels/kernel_config.h"
#include "attention/kernels/mma/config.h"
#include "attention/on_device.h"
#include "base/random.h"
#include "support/options.h"
#include "tuned/space.h"

namespace {

using namespace annulus;
using attention::KernelConfig;

// The configurations that a tuner may choose.
std::vector<KernelConfig> wgmma_configs(const Problem& problem) {
  const DeviceInfo& info = test::device().info();
  const attention::DeviceLimits limits = {
      {90, 'a'}, info.multiprocessors, static_cast<int>(info.shared_bytes_per_block)};
  std::vector<KernelConfig> configs =
      tuned::enumerate({problem.dim_qk, problem.dim_v}, problem.dtype, limits,
                       attention::pipe_device(limits), info.simulated)
          .candidates;
  std::erase_if(configs,
                [](const KernelConfig& config) { return config.family == &attention::mma_family; });
  return configs;
}

// Whether the heads of a CTA or a cluster may differ is known only when a problem is planned.
// Returns whether the plan was accepted.
bool check_forced(const test::Case& c, const PlanOptions& options) {
  try {
    const Plan plan = test::device().plan(c.problem, options);
    CHECK(plan.info().config == options.config);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUnsupported);
    const std::string text = error.what();
    CHECK_MESSAGE((text.find("heads in one CTA") != std::string::npos ||
                   text.find("heads share copies") != std::string::npos),
                  text);
    return false;
  }
  test::check(c, test::run_case(test::device(), c, options));
  return true;
}

TEST_CASE("random problems on random configurations of the wgmma families match the oracle") {
  if (test::device().info().architecture != "sm_90a") return;
  const int count = test::options().problems > 0 ? test::options().problems : 6;
  int checked = 0;
  for (int index = 0; checked < count; ++index) {
    REQUIRE(index < 10 * count);
    test::CaseLimits limits;
    limits.float8 = index % 2 == 1;
    if (test::options().length > 0) limits.max_length = test::options().length;
    const std::uint64_t seed = test::options().seed + 70;
    const test::Case c = test::random_case(seed, static_cast<std::uint64_t>(index), limits);
    if (c.problem.dim_qk < 64) continue;  // other families support these
    base::Random random(seed * 31 + static_cast<std::uint64_t>(index));
    const std::vector<KernelConfig> configs = wgmma_configs(c.problem);
    PlanOptions options;
    options.config = to_string(configs[random.below(static_cast<std::uint32_t>(configs.size()))]);
    options.max_multiprocessors = static_cast<int>(random.below(4));
    CAPTURE(index);
    CAPTURE(options.config);
    CAPTURE(c.text);
    bool planned = false;
    REQUIRE_NOTHROW(planned = check_forced(c, options));
    checked += planned ? 1 : 0;
  }
}

}  // namespace
