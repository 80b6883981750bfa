// Every shipped configuration with every kind of features, on the device that --device names. The
// pipelines go round several times, and all lengths are ragged. There must be no bank conflicts.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "annulus/device.h"
#include "api/impl.h"
#include "attention/kernels/family.h"
#include "attention/kernels/kernel_config.h"
#include "base/random.h"
#include "base/thread_pool.h"
#include "device/simulator.h"
#include "support/device.h"
#include "support/device_case.h"
#include "support/options.h"

namespace {

using namespace annulus;

const Device& device() {
  static const Device opened = Device::open(test::device_name());
  return opened;
}

std::uint64_t counter(const Counters& counters, const std::string& name) {
  for (const auto& [key, value] : counters) {
    if (key == name) return value;
  }
  FAIL("no counter " << name);
  return 0;
}

// The four kinds of kernels whose code differs. KernelFeatures describes them.
Problem problem_of(const attention::ShippedConfig& shipped, int kind) {
  const attention::KernelConfig& config = shipped.config;
  Problem problem;
  const attention::CtaShape cta = attention::cta_shape(config);
  const int together = cta.packed_heads();
  problem.heads = std::max(2, together);
  problem.kv_heads = problem.heads / together;
  problem.dim_qk = shipped.dims.qk;
  problem.dim_v = shipped.dims.v;
  // There are more tiles than stages, so that stages are used twice, and both lengths have a tail.
  problem.seq_q = config.tile_rows + 5;
  problem.seq_k = cta.step_tiles * config.tile_columns * (2 * cta.stages + 2) + 3;
  problem.dtype = kind % 2 == 0 ? Dtype::kBfloat16 : Dtype::kFloat16;
  if (config.family->element_bytes == 1) {
    problem.dtype_o = problem.dtype;
    problem.dtype = Dtype::kFloat8E4M3;
    constexpr ScaleBlocks kScaleBlocks[] = {{0, 0, 0}, {64, 128, 256}, {32, 32, 64}, {128, 0, 64}};
    problem.scale_blocks = kScaleBlocks[kind];
  }
  switch (kind) {
    case 0:
      problem.want_lse = true;
      problem.lse_base = LseBase::kTwo;
      break;
    case 1:
      problem.pattern = causal() & (window(90, 0) | sink(3));
      problem.score.softcap = 5;
      problem.carry_in = true;
      problem.want_lse = true;
      break;
    case 2: {
      // Blocks that do not align with tile edges, and rows without blocks.
      BlockLayout layout;
      layout.block_rows = 48;
      layout.block_columns = 24;
      layout.seq_q = problem.seq_q;
      layout.seq_k = problem.seq_k;
      layout.indptr = {0};
      for (std::int64_t row = 0; row < layout.rows(); ++row) {
        for (std::int64_t column = row % 3; row != 1 && column < layout.columns(); column += 3) {
          layout.indices.push_back(static_cast<std::int32_t>(column));
        }
        layout.indptr.push_back(static_cast<std::int64_t>(layout.indices.size()));
      }
      problem.pattern = blocks(std::make_shared<const BlockLayout>(layout));
      problem.score.scale = -0.2;
      problem.carry_in = problem.carry_out = true;
      break;
    }
    default:
      problem.pattern = documents(std::vector<std::int64_t>{0, 40, 100, 130}) | global(2);
      problem.carry_out = true;
  }
  return problem;
}

// Varies the lengths of warps' turns, the times at which copies and products complete, whether
// products complete by warp or by warpgroup, and the elected lanes. No bit may change, and no fault
// may be reported.
int run_in_orders(const Plan& plan, test::DeviceCase& memory, const test::DeviceAnswer& first) {
  const device::Context& context = *api::inside(device()).context;
  const auto before = device::simulator_options(context);
  if (!before) return 0;
  const int orders = test::options().orders > 0 ? test::options().orders : 2;
  for (int order = 1; order <= orders; ++order) {
    CAPTURE(order);
    constexpr std::uint32_t kQuanta[] = {0, 1, 5, 60, 400};
    abi::SimulatorOptions options = *before;
    options.seed = test::options().seed * 100000 + static_cast<std::uint64_t>(order);
    options.landing = static_cast<std::uint32_t>(order % 3);
    options.products = static_cast<std::uint32_t>((order + order / 3) % 3);
    options.quantum = kQuanta[order % 5];
    REQUIRE(device::set_simulator_options(context, options));
    memory.reset();
    plan.run(nullptr, memory.operands());
    CHECK(memory.answer() == first);
  }
  REQUIRE(device::set_simulator_options(context, *before));
  return orders;
}

// The configurations for this device's architecture: all of them, or with --problems N a sample of
// N, drawn by --seed.
std::vector<attention::ShippedConfig> configs_to_try() {
  const jit::Arch arch = jit::parse_arch(device().info().architecture);
  std::vector<attention::ShippedConfig> configs;
  for (const attention::ShippedConfig& shipped : attention::shipped_configs()) {
    if (attention::why_illegal(shipped.config, shipped.dims, arch)) continue;
    // On architectures with the wgmma family, the mma family is tested on other devices only,
    // because it is the same there.
    if (arch.feature == 'a' && shipped.config.family == &attention::mma_family) continue;
    configs.push_back(shipped);
  }
  if (test::options().problems <= 0) return configs;
  base::Random random(test::options().seed);
  while (configs.size() > static_cast<std::size_t>(test::options().problems)) {
    configs.erase(configs.begin() + random.below(static_cast<std::uint32_t>(configs.size())));
  }
  return configs;
}

TEST_CASE("every shipped configuration with every family of features") {
  base::ThreadPool pool;
  int runs = 0;
  std::uint64_t seed = test::seed_of(20);
  for (const attention::ShippedConfig& shipped : configs_to_try()) {
    PlanOptions options;
    options.config = attention::to_string(shipped.config);
    options.max_multiprocessors = 1;  // one persistent CTA then takes all tiles
    CAPTURE(options.config);
    CAPTURE(shipped.dims.qk);
    // On a simulator each configuration has one kind, because compiling takes longer than
    // everything else. The configurations of a head dim together cover most of the four kinds.
    // Another seed begins with another kind.
    const int kinds = device().info().simulated ? 1 : 2;
    for (int i = 0; i < kinds; ++i) {
      const int kind = static_cast<int>(seed++ % 4);
      CAPTURE(kind);
      const test::Case c = test::make_case(problem_of(shipped, kind), seed);
      device().counters(true);
      const Plan plan = device().plan(c.problem, options);
      test::DeviceCase memory(device(), c);
      plan.run(nullptr, memory.operands());
      const test::DeviceAnswer answer = memory.answer();
      const Comparison comparison = annulus::compare(
          c.problem, attention::reference(c.problem, c.inputs(), pool), answer.result());
      CAPTURE(comparison.first_wrong);
      CHECK(comparison.within_tolerance);
      if (!device().info().simulated) continue;
      const Counters counters = device().counters();
      CHECK(counter(counters, "shared_wavefronts") == counter(counters, "shared_wavefronts_ideal"));
      runs += run_in_orders(plan, memory, answer);
    }
  }
  MESSAGE(runs, " runs in other orders");
}

TEST_CASE("scores beyond fp32 give NaN and never a row that seems empty") {
  Problem problem;
  problem.seq_q = problem.seq_k = 70;
  problem.dim_qk = problem.dim_v = 32;
  problem.pattern = causal() & ~window(4, 4);  // leaves the first five rows empty
  problem.score.scale = 1024;
  problem.want_lse = true;
  test::Case c = test::make_case(problem, 1);
  for (auto* tensor : {&c.q, &c.k}) {
    for (std::uint16_t& bits : tensor->bits) bits = 0x5d80;  // 2^60: products are 2^125
  }
  const test::DeviceAnswer answer = test::run_case(device(), c);
  for (std::int64_t row = 0; row < 70; ++row) {
    CAPTURE(row);
    const int bits = answer.o.bits[static_cast<std::size_t>(answer.o.offset(0, row, 0))] & 0x7fff;
    const float lse = answer.lse[static_cast<std::size_t>(row)];
    if (row < 5) {
      CHECK(bits == 0);
      CHECK(lse == -std::numeric_limits<float>::infinity());
    } else {
      CHECK(bits > 0x7f80);
      CHECK(lse != lse);
    }
  }
}

}  // namespace
