#include "autotune/verify.h"

#include <doctest/doctest.h>

#include "annulus/device.h"
#include "api/impl.h"
#include "attention/kernels/mma/config.h"
#include "autotune/changed_templates.h"
#include "autotune/workbench.h"
#include "support/device.h"
#include "support/faulty_files.h"
#include "tuned/space.h"

namespace annulus::autotune {
namespace {

Problem problem() {
  Problem made;
  made.heads = 4;
  made.kv_heads = 2;
  made.seq_q = made.seq_k = 200;
  made.dim_qk = made.dim_v = 32;
  made.pattern = Pattern::parse("causal & (window(90,0) | sink(3))");
  return made;
}

Verifier verifier_for(const Device& device, const Problem& whole) {
  const Device::Impl& impl = api::inside(device);
  return Verifier(impl.context, *impl.kernels, api::limits_of(impl), choose_parts(whole, 1e6, 1),
                  7);
}

TEST_CASE("configurations that ship pass, with every kind of state") {
  const Device device = Device::open(test::device_name());
  for (int carry = 0; carry < 4; ++carry) {
    Problem whole = problem();
    whole.carry_in = carry % 2 == 1;
    whole.carry_out = carry >= 2;
    const Verifier verifier = verifier_for(device, whole);
    const Verdict verdict = verifier.check(attention::MmaConfig{64, 64, 4, 2, false, 4});
    CHECK_MESSAGE(!verdict.reason, *verdict.reason);
    CHECK((verdict.counted.matrix_flop > 0) == device.info().simulated);
  }
}

TEST_CASE("all branches of a sum are run, checked and predicted") {
  const Device device = Device::open(test::device_name());
  const Device::Impl& impl = api::inside(device);
  const attention::KernelConfig config = attention::MmaConfig{64, 64, 4, 2, false, 4};
  for (int carry = 0; carry < 4; ++carry) {
    Problem whole = problem();
    whole.pattern = Pattern::parse("sum(causal, window(40, 9), dense)");
    whole.carry_in = carry % 2 == 1;
    whole.carry_out = carry >= 2;
    const Verifier verifier = verifier_for(device, whole);
    const Verdict verdict = verifier.check(config);
    CHECK_MESSAGE(!verdict.reason, *verdict.reason);
    CHECK(verifier.kernels_of(config).size() == 3 * verifier.parts().size());
  }
  if (!test::on_simulator()) return;
  const auto cycles = [&](const char* pattern) {
    Problem whole = problem();
    whole.seq_q = whole.seq_k = 1024;
    whole.pattern = Pattern::parse(pattern);
    const Verifier verifier = verifier_for(device, whole);
    PredictedWorkbench workbench(verifier, *impl.kernels,
                                 attention::pipe_device(impl.context->info()), whole);
    REQUIRE_FALSE(workbench.prepare(config));
    return workbench.measure(std::span(&config, 1), 1, tuned::CacheState::kWarm)[0][0];
  };
  const double one = cycles("dense"), both = cycles("sum(dense, dense)");
  CHECK(both > 1.9 * one);
  CHECK(both < 2.6 * one);  // the state between them is written and read
}

TEST_CASE("what is counted of parts stands for the whole") {
  if (!test::on_simulator()) return;
  const Device device = Device::open(test::device_name());
  const Device::Impl& impl = api::inside(device);
  // The whole problem is small enough that its kernel can be counted too.
  Problem whole = problem();
  whole.seq_q = whole.seq_k = 2000;
  whole.pattern = causal();
  whole.heads = whole.kv_heads = 1;
  const attention::KernelConfig config = attention::MmaConfig{64, 64, 4, 2, false, 4};
  const attention::KernelFeatures features = attention::features_of(whole);
  const auto work = [&](double max_pairs, bool extend) {
    const std::vector<Problem> parts = choose_parts(whole, max_pairs, 1);
    CHECK((parts.size() == 1) == !extend);
    const Verifier verifier(impl.context, *impl.kernels, api::limits_of(impl), parts, 1);
    const attention::KernelWork counted = verifier.check(config).counted;
    if (!extend) return counted;
    attention::TileCounts sum;
    for (const Problem& part : parts) {
      const auto tiles = attention::count_tiles(part, 64, 64);
      sum.ctas += tiles.ctas;
      sum.full_tiles += tiles.full_tiles;
      sum.partial_tiles += tiles.partial_tiles;
    }
    return attention::extend_work(
        counted, attention::estimate_work(config, features, sum),
        attention::estimate_work(config, features, attention::count_tiles(whole, 64, 64)));
  };
  const attention::KernelWork all = work(1e9, false), extended = work(5e5, true);
  CHECK(extended.matrix_flop == doctest::Approx(all.matrix_flop).epsilon(0.001));
  CHECK(extended.special_lanes == doctest::Approx(all.special_lanes).epsilon(0.01));
  CHECK(extended.shared_wavefronts == doctest::Approx(all.shared_wavefronts).epsilon(0.01));
  CHECK(extended.warp_instructions == doctest::Approx(all.warp_instructions).epsilon(0.03));
  CHECK(extended.read_bytes == doctest::Approx(all.read_bytes).epsilon(0.03));
}

TEST_CASE("what does not compile, is wrong or does wrong is dropped, and the next one is tried") {
  const test::ScratchFolder folder;
  test::write_templates(
      folder / "t", "kernels/mma/mma_forward.cu",
      "tile::online_softmax<Weighing::score()>(\n"
      "        state, scores, tile::softmax_factor<Shape, Weighing>(params), correction);",
      "static_assert(kColumns != 80, \"no eighty\");\n"
      "    tile::online_softmax<Weighing::score()>(\n"
      "        state, scores, Weighing::factor(params.scale) * (kColumns == 96 ? 1.05f : 1.0f),\n"
      "        correction);\n"
      "    if (kColumns == 112) *static_cast<int*>(nullptr) = 1;");
  DeviceOptions options;
  options.name = test::device_name();
  options.template_dir = folder / "t";
  options.cache_dir = "";
  const Device device = Device::open(options);
  Problem whole = problem();
  whole.dim_qk = whole.dim_v = 64;
  const Verifier verifier = verifier_for(device, whole);
  const auto reason = [&](int columns) {
    return verifier.check(attention::MmaConfig{64, columns, 4, 2, false, 2})
        .reason.value_or("passes");
  };
  CHECK(reason(64) == "passes");
  CHECK(reason(80).find("NVRTC rejects") != std::string::npos);
  CHECK(reason(80).find('\n') == std::string::npos);
  CHECK(reason(96).find("wrong: error of a row") != std::string::npos);
  if (test::on_simulator()) {  // on a GPU the context would be lost
    CHECK(reason(112).find("mma_forward.cu") != std::string::npos);
    CHECK(reason(64) == "passes");
  }
}

TEST_CASE("kernels that spill or are serialised are not wanted") {
  jit::ResourceUsage usage;
  CHECK_FALSE(why_costly(usage, false));
  usage.known = true;
  usage.registers = 255;
  CHECK_FALSE(why_costly(usage, false));
  usage.spill_store_bytes = 8;
  CHECK(why_costly(usage, false)->find("spill") != std::string::npos);
  CHECK_FALSE(why_costly(usage, true));
  // Stores and loads are added.
  usage.local_bytes = 80;
  usage.spill_store_bytes = 80;
  usage.spill_load_bytes = 120;
  CHECK_FALSE(why_costly(usage, true));
  usage.spill_load_bytes = 124;
  CHECK(why_costly(usage, true)->find("spills 80 bytes out and 124 in") != std::string::npos);
  usage.spill_store_bytes = usage.spill_load_bytes = 0;
  usage.local_bytes = 16;
  CHECK(why_costly(usage, false));
  CHECK(why_costly(usage, true));
  usage.local_bytes = 0;
  usage.notes = {"(C7510) wgmma serialised"};
  CHECK(why_costly(usage, true)->find("C7510") != std::string::npos);
}

// The clock of a simulated device is the host's clock. The test still shows that it is read in the
// right places.
TEST_CASE("times are taken of every configuration in every round") {
  const Device device = Device::open(test::device_name());
  const Device::Impl& impl = api::inside(device);
  const Verifier verifier = verifier_for(device, problem());
  MeasureOptions options;
  options.max_repeats = 3;
  MeasuredWorkbench bench(verifier, impl.context, *impl.kernels, api::limits_of(impl), problem(), 1,
                          0, options);
  CHECK_FALSE(bench.exact());
  const attention::KernelConfig configs[] = {attention::MmaConfig{64, 64, 4, 2, false, 4},
                                             attention::MmaConfig{64, 32, 4, 1, true, 2}};
  for (const auto& config : configs) CHECK_FALSE(bench.prepare(config));
  for (const tuned::CacheState l2 : {tuned::CacheState::kWarm, tuned::CacheState::kCold}) {
    const auto times = bench.measure(configs, 4, l2);
    REQUIRE(times.size() == 2);
    for (const auto& of_one : times) {
      CHECK(of_one.size() == 4);
      for (const double time : of_one) CHECK(time > 0);
    }
  }
}

}  // namespace
}  // namespace annulus::autotune
