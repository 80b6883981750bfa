// Random problems on random configurations of the wgmma families, shipped or not: the heuristic
// gives problems of a test's size to others, and the tuner may take any that is legal.

#include <doctest/doctest.h>

#include <vector>

#include "annulus/error.h"
#include "attention/kernel_config.h"
#include "attention/on_device.h"
#include "base/random.h"
#include "support/options.h"

namespace {

using namespace annulus;
using attention::KernelConfig;

std::vector<KernelConfig> legal_configs(const Problem& problem) {
  const attention::Dims dims = {problem.dim_qk, problem.dim_v};
  std::vector<KernelConfig> configs;
  for (const int warps : {4, 8, 12}) {
    for (const int heads : {1, 2, 3}) {
      for (const int blocks : {1, 2}) {
        for (int columns = 16; columns <= 128; columns += 16) {
          for (int stages = 1; stages <= 4; ++stages) {
            const KernelConfig config = {warps * 16 / heads,
                                         columns,
                                         warps,
                                         stages,
                                         false,
                                         1,
                                         problem.dtype == Dtype::kFloat8E4M3
                                             ? attention::Family::kWgmma8
                                             : attention::Family::kWgmma,
                                         blocks,
                                         heads};
            if (!attention::why_illegal(config, dims, {90, 'a'})) configs.push_back(config);
          }
        }
      }
    }
  }
  return configs;
}

// Whether heads of one CTA may differ shows when a problem is planned.
void check_forced(const test::Case& c, PlanOptions options) {
  try {
    const Plan plan = test::device().plan(c.problem, options);
    CHECK(plan.info().config == options.config);
    CHECK(plan.info().local_bytes == 0);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUnsupported);
    const std::string text = error.what();
    CHECK_MESSAGE((text.find("heads in one CTA") != std::string::npos), text);
    return;
  }
  test::check(c, test::run_case(test::device(), c, options));
}

TEST_CASE("random problems on random configurations of the wgmma families match the oracle") {
  if (test::device().info().architecture != "sm_90a") return;
  const int count = test::options().problems > 0 ? test::options().problems : 6;
  for (int index = 0; index < count; ++index) {
    test::CaseLimits limits;
    limits.float8 = index % 2 == 1;
    if (test::options().length > 0) limits.most_length = test::options().length;
    const std::uint64_t seed = test::options().seed + 70;
    test::Case c = test::random_case(seed, static_cast<std::uint64_t>(index), limits);
    if (c.problem.dim_qk < 64) continue;  // of other families
    base::Random random(seed * 31 + static_cast<std::uint64_t>(index));
    const std::vector<KernelConfig> configs = legal_configs(c.problem);
    PlanOptions options;
    options.config = to_string(configs[random.below(static_cast<std::uint32_t>(configs.size()))]);
    options.most_multiprocessors = static_cast<int>(random.below(4));
    CAPTURE(index);
    CAPTURE(options.config);
    CAPTURE(c.text);
    REQUIRE_NOTHROW(check_forced(c, options));
  }
}

}  // namespace
