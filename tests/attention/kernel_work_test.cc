// What is estimated of a kernel's work, held against what a simulated device counts.

#include "attention/kernels/kernel_work.h"
#include "attention/kernels/family.h"

#include <doctest/doctest.h>

#include <vector>

#include "api/impl.h"
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
    options.kv_splits = 1;  // whole rows are what is estimated
    const test::Case host = test::make_case(problem, 1);
    device::simulator_counters(context, true);
    test::run_case(device, host, options);
    const KernelWork counted = counted_work(*device::simulator_counters(context, true));

    const KernelFeatures features = features_of(problem);
    const KernelWork estimated = estimate_work(
        config, features, count_tiles(problem, config.tile_rows, config.tile_columns));
    CHECK(estimated.matrix_flop == counted.matrix_flop);
    CHECK(estimated.special_lanes == doctest::Approx(counted.special_lanes).epsilon(0.02));
    // Of 8 bits: what a row puts by is a whole number of times.
    const double fraction = config.family->element_bytes == 1 ? 0.1 : 0.02;
    CHECK(estimated.shared_wavefronts ==
          doctest::Approx(counted.shared_wavefronts).epsilon(fraction));
    // What the estimate says of the wgmma family follows the machine code
    // (tools/bench/static_proof), and the device counts PTX, which spells out the operands of
    // products.
    const double most = config.family != &mma_family ? 0.2 : 0.15;
    CHECK(estimated.warp_instructions == doctest::Approx(counted.warp_instructions).epsilon(most));
    CHECK(estimated.written_bytes == doctest::Approx(counted.written_bytes).epsilon(0.05));
    // What masks read of their lists is not estimated: it stays in L1.
    if (!evaluated_in_loop(features.mask)) {
      CHECK(estimated.read_bytes == doctest::Approx(counted.read_bytes).epsilon(0.1));
    }
    // Fences, waits and arrivals of the wgmma family count as barriers, and the model knows that.
    if (config.family == &mma_family) {
      CHECK(estimated.barriers == doctest::Approx(counted.barriers).epsilon(0.25));
    }
  }
}

TEST_CASE("a part extends to the whole by the ratio of the estimates") {
  KernelWork counted, part, whole;
  counted.matrix_flop = 30;
  part.matrix_flop = 20;
  whole.matrix_flop = 200;
  whole.barriers = 7;  // nothing of the part: taken as it is
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
