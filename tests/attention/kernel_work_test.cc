// The estimate of a kernel's work, compared with the counters of a simulated device.

#include "attention/kernels/kernel_work.h"
#include "attention/kernels/family.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "api/impl.h"
#include "base/random.h"
#include "device/simulator.h"
#include "support/device.h"
#include "support/device_case.h"

namespace annulus::attention {
namespace {

struct Sample {
  Dims dims;
  std::string config;
  std::string pattern;
  double softcap = 0;
  bool carried = false;
  Dtype dtype = Dtype::kBfloat16;
};

const std::vector<Sample> kSamples = {
    {{32, 32}, "mma m64 n64 w4 s2 x4", "dense"},
    {{64, 64}, "mma m128 n64 w4 s2 x2", "causal"},
    {{64, 64}, "mma m64 n112 w4 s2 q x2", "causal"},
    {{64, 64}, "mma m64 n16 w4 s1 x5", "causal"},
    {{64, 64}, "mma m64 n64 w4 s2 x3", "causal", 30.0},
    {{64, 64}, "mma m64 n64 w4 s2 x3", "dense", 0, true},
    {{96, 96}, "mma m64 n64 w4 s2 x2", "dense"},
    {{128, 128}, "mma m128 n32 w4 s2 x2", "causal & (window(300,0) | global(16))"},
    {{128, 128}, "mma m128 n64 w8 s2", "causal & documents([100, 500])"},
    {{192, 128}, "mma m128 n64 w8 s1", "dense"},
    {{256, 256}, "mma m64 n32 w4 s2 x2", "causal"},
    {{64, 64}, "wgmma m192 n128 w12 s2", "causal"},
    {{64, 64}, "wgmma m128 n64 w8 s2 q b2", "dense"},
    {{256, 256}, "wgmma m128 n64 w8 s2", "dense"},
    {{128, 128}, "wgmma m128 n128 w8 s2", "dense", 0, true},
    {{128, 128}, "wgmma m128 n128 w8 s2", "dense"},
    {{128, 128}, "wgmma m128 n128 w8 s2", "causal"},
    {{128, 128}, "wgmma m128 n128 w8 s2", "causal & (window(300,0) | global(16))"},
    {{128, 128}, "wgmma m128 n128 w8 s2 c2", "dense"},
    {{128, 128}, "wgmma m128 n128 w8 s2", "dense", 30.0},
    {{128, 128}, "wgmma m64 n64 w4 s2 b2", "random(4, 1, 64)"},
    {{256, 256}, "wgmma m128 n64 w8 s2", "dense", 0, true},
    {{128, 128}, "wgmma8 m128 n128 w8 s2", "dense", 0, false, Dtype::kFloat8E4M3},
    {{256, 256}, "wgmma8 m128 n64 w8 s2", "dense", 0, false, Dtype::kFloat8E4M3},
};

TEST_CASE("estimates of work agree with the counters of a simulated device") {
  if (!test::on_simulator()) return;
  const Device device = Device::open(test::device_name());
  const device::Context& context = *api::inside(device).context;
  for (const Sample& sample : kSamples) {
    CAPTURE(sample.config);
    CAPTURE(sample.pattern);
    const KernelConfig config = *parse_config(sample.config);
    if (config.family != &mma_family && device.info().architecture != "sm_90a") continue;
    Problem problem;
    problem.heads = problem.kv_heads = 2;
    problem.seq_q = problem.seq_k = 768;
    problem.dim_qk = sample.dims.qk;
    problem.dim_v = sample.dims.v;
    problem.dtype = sample.dtype;
    problem.pattern = Pattern::parse(sample.pattern);
    problem.score.softcap = sample.softcap;
    problem.carry_in = problem.carry_out = sample.carried;
    PlanOptions options;
    options.config = sample.config;
    options.kv_splits = 1;  // the estimate is for whole rows
    const test::Case host = test::make_case(problem, 1);
    device::simulator_counters(context, true);
    test::run_case(device, host, options);
    const KernelWork counted = counted_work(*device::simulator_counters(context, true));

    const KernelFeatures features = features_of(problem);
    const KernelWork estimated = estimate_work(
        config, features, count_tiles(problem, config.tile_rows, config.tile_columns));
    CHECK(estimated.matrix_flop == counted.matrix_flop);
    CHECK(estimated.special_lanes == doctest::Approx(counted.special_lanes).epsilon(0.02));
    // With 8-bit elements a row is promoted a whole number of times, so the estimate is less exact.
    const double fraction = config.family->element_bytes == 1 ? 0.1 : 0.02;
    CHECK(estimated.shared_wavefronts ==
          doctest::Approx(counted.shared_wavefronts).epsilon(fraction));
    // The estimate for the wgmma family follows the machine code (tools/bench/model). The device
    // counts PTX, which loads the operands of products explicitly.
    const double most = config.family != &mma_family ? 0.2 : 0.15;
    CHECK(estimated.warp_instructions == doctest::Approx(counted.warp_instructions).epsilon(most));
    CHECK(estimated.written_bytes == doctest::Approx(counted.written_bytes).epsilon(0.05));
    // Reads of masks from their lists are not estimated, because they stay in L1.
    if (!evaluated_in_loop(features.mask)) {
      CHECK(estimated.read_bytes == doctest::Approx(counted.read_bytes).epsilon(0.1));
    }
    // Fences, waits and arrivals of the wgmma family count as barriers on the device, but not in
    // the model.
    if (config.family == &mma_family) {
      CHECK(estimated.barriers == doctest::Approx(counted.barriers).epsilon(0.25));
    }
  }
}

TEST_CASE("the share of steps in which a row max of a warp moves") {
  double steps = 0;
  for (int j = 1; j <= 2000; ++j) {
    steps += 1 - std::pow(1 - 1.0 / j, 16);
    CHECK(moved_share(j) * j == doctest::Approx(steps).epsilon(0.004));
  }
  CHECK(moved_share(0) == 1);  // a row without tiles
  CHECK(moved_share(1.5) == doctest::Approx(1));
  for (double j = 1; j < 1e9; j *= 1.1) CHECK(moved_share(j * 1.1) <= moved_share(j));
  // Counts rescaling in random orders: 16 rows, each with the largest scores of 50 steps.
  base::Random random(3);
  constexpr int kWarps = 4000, kSteps = 50;
  int moved = 0;
  for (int warp = 0; warp < kWarps; ++warp) {
    std::vector<std::int64_t> largest(16, -1);
    for (int step = 0; step < kSteps; ++step) {
      bool any = false;
      for (std::int64_t& of_row : largest) {
        const auto score = static_cast<std::int64_t>(random.next() >> 1);
        any = any || score > of_row;
        of_row = std::max(of_row, score);
      }
      moved += any;
    }
  }
  CHECK(moved / (1.0 * kWarps * kSteps) == doctest::Approx(moved_share(kSteps)).epsilon(0.01));
}

// With keys in rising order every step rescales. With keys in falling order only the first does.
// The instructions for normal operands are between the two.
TEST_CASE("a kernel rescales in the share of steps that is estimated") {
  if (!test::on_simulator()) return;
  const Device device = Device::open(test::device_name());
  if (device.info().architecture != "sm_90a") return;
  const device::Context& context = *api::inside(device).context;
  constexpr int kSteps = 64, kColumns = 128;
  Problem problem;
  problem.heads = problem.kv_heads = 1;
  problem.seq_q = 1024;
  problem.seq_k = kSteps * kColumns;
  problem.dim_qk = problem.dim_v = 128;
  PlanOptions options;
  options.config = "wgmma m128 n128 w8 s2";
  options.kv_splits = 1;
  const auto counted = [&](const test::Case& host) {
    device::simulator_counters(context, true);
    test::run_case(device, host, options);
    return counted_work(*device::simulator_counters(context, true)).warp_instructions;
  };
  const test::Case drawn = test::make_case(problem, 1);
  const auto ordered = [&](bool rising) {
    test::Case host = drawn;
    std::ranges::fill(host.q.bits, std::uint16_t{0x3c00});  // 2^-7
    for (std::int64_t row = 0; row < problem.seq_k; ++row) {
      const auto step = static_cast<int>(row / kColumns);
      const auto value = static_cast<float>(rising ? step : kSteps - step);
      std::uint32_t bits = 0;
      std::memcpy(&bits, &value, sizeof bits);
      for (int d = 0; d < 128; ++d) {
        host.k.set(host.k.offset(0, row, 0) + d, static_cast<std::uint16_t>(bits >> 16));
      }
    }
    return counted(host);
  };
  const double all = ordered(true), none = ordered(false);
  const double warps = 8 * 1024 / 128;
  // The first step rescales nothing.
  CHECK(all - none == doctest::Approx(warps * (kSteps - 1) * 64).epsilon(0.1));
  const double expected = (moved_share(kSteps) * kSteps - 1) / (kSteps - 1);
  CHECK((counted(drawn) - none) / (all - none) == doctest::Approx(expected).epsilon(0.06));
}

TEST_CASE("a part extends to the whole by the ratio of the estimates") {
  KernelWork counted, part, whole;
  counted.matrix_flop = 30;
  part.matrix_flop = 20;
  whole.matrix_flop = 200;
  whole.barriers = 7;  // not part of the extension, so the whole's value is used
  const KernelWork extended = extend_work(counted, part, whole);
  CHECK(extended.matrix_flop == doctest::Approx(300));
  CHECK(extended.barriers == 7);
  CHECK(extended.read_bytes == 0);
}

TEST_CASE("the least bytes are each operand once") {
  Problem problem;
  problem.batch = 2;
  problem.heads = 4;
  problem.kv_heads = 2;
  problem.seq_q = 10;
  problem.seq_k = 20;
  problem.dim_qk = 192;
  problem.dim_v = 128;
  CHECK(least_bytes(problem) == 2 * (4 * 10 * 192 + 2 * 20 * 320 + 4 * 10 * 128) * 2);
  problem.carry_in = problem.carry_out = true;
  CHECK(least_bytes(problem) == 2 * (4 * 10 * 192 + 2 * 20 * 320) * 2 + 2 * 2 * 4 * 10 * 130 * 4);
}

}  // namespace
}  // namespace annulus::attention
