// Blocks of any size R x C with any compute tile, and heads that share their blocks in any way. All
// shipped tiles of the device that --device names are compared with the oracle.

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <array>
#include <memory>
#include <set>
#include <string>

#include "annulus/types.h"
#include "attention/kernels/family.h"
#include "attention/kernels/kernel_config.h"
#include "attention/on_device.h"
#include "support/options.h"

namespace annulus {
namespace {

constexpr std::array<std::int64_t, 11> kSizes = {8, 16, 24, 48, 64, 80, 96, 128, 160, 192, 256};

std::int64_t pick(base::Random& random, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random.below(static_cast<std::uint32_t>(high - low + 1)));
}

// Random kept blocks for up to as many distinct heads as there are query heads. The map of heads
// uses some of them several times, and others never.
std::shared_ptr<const BlockLayout> random_blocks(base::Random& random, const Problem& problem) {
  auto layout = std::make_shared<BlockLayout>();
  layout->block_rows = kSizes[random.below(kSizes.size())];
  layout->block_columns = kSizes[random.below(kSizes.size())];
  layout->seq_q = problem.seq_q;
  layout->seq_k = problem.seq_k;
  layout->heads = pick(random, 1, problem.heads);
  layout->indptr.push_back(0);
  const double keep = 0.2 + 0.6 * random.uniform();
  for (std::int64_t row = 0; row < layout->heads * layout->rows(); ++row) {
    for (std::int64_t column = 0; column < layout->columns(); ++column) {
      if (random.uniform() < keep) layout->indices.push_back(static_cast<std::int32_t>(column));
    }
    layout->indptr.push_back(static_cast<std::int64_t>(layout->indices.size()));
  }
  for (std::int64_t head = 0; head < problem.heads; ++head) {
    layout->head_map.push_back(static_cast<std::int32_t>(pick(random, 0, layout->heads - 1)));
  }
  layout->validate();
  return layout;
}

Problem random_problem(base::Random& random) {
  Problem problem = test::problem_of(pick(random, 1, 300), pick(random, 1, 300), 64, 64, dense());
  problem.kv_heads = pick(random, 1, 2);
  problem.heads = problem.kv_heads * pick(random, 1, 3);
  const Pattern kept = blocks(random_blocks(random, problem));
  problem.pattern = random.below(2) == 0 ? kept : kept & causal();
  return problem;
}

// Returns false if this tile does not support the problem, because the heads of a CTA may not
// differ.
bool matches(const test::Case& c, const std::string& config) {
  PlanOptions options;
  options.config = config;
  std::string refused;
  try {
    test::check(c, test::run_case(test::device(), c, options));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnsupported) throw;
    refused = error.what();
  }
  return refused.empty();
}

TEST_CASE("blocks of any size and heads that share them match the oracle on every tile") {
  base::Random random(test::options().seed * 77);
  const int count = test::options().problems > 0 ? test::options().problems : 3;
  std::set<const attention::ConfigFamily*> families;
  for (const attention::ShippedConfig& shipped : attention::shipped_configs()) {
    if (shipped.dims.qk != 64 || shipped.dims.v != 64) continue;
    const std::string config = attention::to_string(shipped.config);
    CAPTURE(config);
    int taken = 0;
    for (int i = 0; i < count; ++i) {
      Problem problem = random_problem(random);
      if (shipped.config.family->element_bytes == 1) {
        problem.dtype = Dtype::kFloat8E4M3;
        problem.scale_blocks = {32, 64, 32};
      }
      const test::Case c = test::make_case(problem, random.below(1000));
      CAPTURE(c.text);
      const bool matched = matches(c, config);
      taken += matched;
      if (matched) families.insert(shipped.config.family);
    }
    // A tile with one head per CTA supports all problems, if the device has its instructions.
    if (attention::cta_shape(shipped.config).packed_heads() == 1 &&
        families.count(shipped.config.family) > 0) {
      CHECK(taken == count);
    }
  }
  CHECK(families.count(&attention::mma_family) == 1);
  const bool is_hopper = test::device().info().architecture == "sm_90a";
  CHECK(families.count(&attention::wgmma_family) == (is_hopper ? 1 : 0));
  CHECK(families.count(&attention::wgmma8_family) == (is_hopper ? 1 : 0));
}

}  // namespace
}  // namespace annulus
