// Workbenches of batches: they verify, measure and predict.

#include "autotune/batch_workbench.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "annulus/device.h"
#include "api/impl.h"
#include "autotune/batch_verify.h"
#include "autotune/changed_templates.h"
#include "autotune/search.h"
#include "batch/batch_choice.h"
#include "device/simulator.h"
#include "support/device.h"
#include "support/faulty_files.h"

namespace annulus::autotune {
namespace {

using attention::Dims;
using attention::KernelConfig;
using batch::RequestClass;

// On the simulator, the two architectures with different kernels.
std::vector<std::string> devices_of_batches() {
  if (!test::on_simulator()) return {test::device_name()};
  return {"sim:sm_80", "sim:sm_90a"};
}

Device counting_device(DeviceOptions options) {
  const Device device = Device::open(options);
  if (device.info().simulated) {
    const device::ContextPointer& context = api::inside(device).context;
    abi::SimulatorOptions counting = device::simulator_options(*context).value();
    counting.checked = 1;
    device::set_simulator_options(*context, counting);
  }
  return device;
}
Device counting_device(const std::string& name) {
  DeviceOptions options;
  options.name = name;
  return counting_device(options);
}

BatchProblem batch_of(const Dims& dims, const char* pattern) {
  BatchProblem problem;
  problem.heads = 12;
  problem.kv_heads = 3;
  problem.dim_qk = dims.qk;
  problem.dim_v = dims.v;
  problem.pattern = Pattern::parse(pattern);
  problem.want_lse = true;
  problem.most = {.requests = 6, .rows = 400, .rows_of_one = 200, .keys_of_one = 5000};
  return problem;
}

tuned::BatchTarget target_of_class(const BatchProblem& problem, RequestClass requests) {
  tuned::BatchTarget target;
  target.problem = problem;
  target.requests = requests;
  target.step = default_step(problem, requests);
  return target;
}

// The shipped configurations that a device can run.
std::vector<KernelConfig> shipped_for(RequestClass requests, const BatchProblem& problem,
                                      const attention::DeviceLimits& limits) {
  const Dims dims = {problem.dim_qk, problem.dim_v};
  std::vector<KernelConfig> configs;
  for (const batch::ShippedBatchConfig& shipped : batch::shipped_batch_configs()) {
    if (shipped.dims.qk != dims.qk || shipped.dims.v != dims.v) continue;
    if (batch::kernel_of(shipped.config).requests != requests) continue;
    if (batch::why_not(shipped.config, problem)) continue;
    if (!batch::why_not(shipped.config, dims, limits)) configs.push_back(shipped.config);
  }
  return configs;
}

// Checks that all shipped configurations pass for both classes, and that the simulator counts their
// work.
void check_shipped(const BatchProblem& problem) {
  for (const std::string& name : devices_of_batches()) {
    const Device device = counting_device(name);
    const Device::Impl& impl = api::inside(device);
    const attention::DeviceLimits limits = api::limits_of(impl);
    for (const RequestClass requests : {RequestClass::kFewQueries, RequestClass::kManyQueries}) {
      const std::vector<KernelConfig> configs = shipped_for(requests, problem, limits);
      REQUIRE_FALSE(configs.empty());
      const BatchVerifier verifier(impl.context, *impl.kernels, limits,
                                   target_of_class(problem, requests), 5, 1);
      for (const KernelConfig& config : configs) {
        CAPTURE(name);
        CAPTURE(to_string(config));
        const Verdict verdict = verifier.check(config);
        CHECK_MESSAGE(!verdict.reason, *verdict.reason);
        CHECK((verdict.counted.matrix_flop > 0) == device.info().simulated);
      }
    }
  }
}

constexpr Dims kDims[] = {{64, 64}, {192, 128}};

TEST_CASE("configurations of batches that ship pass with windows and pages") {
  for (const Dims& dims : kDims) {
    BatchProblem problem = batch_of(dims, "causal & (window(900,0) | sink(3))");
    problem.page_rows = 16;
    check_shipped(problem);
  }
}

TEST_CASE("configurations of batches that ship pass with states that are carried") {
  for (const Dims& dims : kDims) {
    BatchProblem problem = batch_of(dims, "causal");
    problem.carry_in = problem.carry_out = true;
    problem.want_lse = false;
    problem.row_limits = true;
    check_shipped(problem);
  }
}

TEST_CASE("configurations of batches that ship pass with lists of blocks") {
  for (const Dims& dims : kDims) {
    BatchProblem problem = batch_of(dims, "causal");
    problem.page_rows = 1008;
    problem.block_keys = 256;
    problem.max_blocks = 2;
    problem.score.score_mod = ScoreExpression::parse("score + 0.5 * b - 0.01 * h");
    check_shipped(problem);
  }
}

TEST_CASE("configurations of batches that ship pass with keys on other ranks") {
  BatchProblem problem = batch_of({64, 64}, "heads(causal, causal & window(400,0), dense)");
  problem.page_rows = 24;
  problem.interleave = {.block = 8, .ranks = 3, .rank = 1};
  problem.score = Score::parse("softcap(5), alibi([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])");
  check_shipped(problem);
}

TEST_CASE("a small step has the kernels of the whole") {
  const attention::DeviceLimits limits = {{90, 'a'}, 132, 227 * 1024};
  BatchProblem problem = batch_of({64, 64}, "causal & (window(2000,0) | sink(3))");
  problem.heads = 64;
  problem.kv_heads = 8;
  problem.page_rows = 1040;
  problem.block_keys = 512;
  problem.max_blocks = 64;
  problem.most = {.requests = 64, .rows = 8192, .rows_of_one = 0, .keys_of_one = 1 << 20};
  problem.score.alibi.assign(64, 0.5);
  for (const RequestClass requests : {RequestClass::kFewQueries, RequestClass::kManyQueries}) {
    const tuned::BatchTarget target = target_of_class(problem, requests);
    const KernelConfig config = batch::choose_config(requests, problem, limits).config;
    const SmallStep small = small_step(target);
    CHECK_NOTHROW(validate(small.problem));
    CHECK(small.problem.heads == 16);
    CHECK(small.problem.most.keys_of_one > 2000);
    CHECK(small.problem.score.alibi.size() == 16);
    const auto source = [&](const BatchProblem& of) {
      return jit::source_text(class_of(plan_with(config, of, {}, limits), config).spec);
    };
    CHECK(source(small.problem) == source(problem));
  }
}

TEST_CASE("the step that nobody gives fills the bounds") {
  BatchProblem problem = batch_of({64, 64}, "causal");  // up to 16 requests with few queries
  problem.most = {.requests = 8, .rows = 1000, .rows_of_one = 300, .keys_of_one = 4000};
  problem.most.keys = 12000;
  const auto few = default_step(problem, RequestClass::kFewQueries);
  CHECK(few.size() == 8);
  CHECK(few.front().queries == 1);  // the many rows are for prompts
  CHECK(few.front().keys == 1500);
  const auto many = default_step(problem, RequestClass::kManyQueries);
  CHECK(many.size() == 3);
  CHECK(many.front().queries == 300);
  CHECK(many.front().keys == 4000);
  problem.most.rows = 5;
  problem.most.rows_of_one = 0;
  const auto five = default_step(problem, RequestClass::kFewQueries);
  CHECK(five.size() == 5);
  CHECK(five.front().queries == 1);
  CHECK(five.front().keys == 2400);
  problem.most.rows = 40;
  problem.most.rows_of_one = 4;  // drafts, but no prompts
  const auto drafts = default_step(problem, RequestClass::kFewQueries);
  CHECK(drafts.size() == 8);
  CHECK(drafts.front().queries == 4);
}

TEST_CASE("a candidate of a batch that is wrong or does wrong is dropped, and the next one tried") {
  const test::ScratchFolder folder;
  test::write_templates(folder / "t", "kernels/batch/decode_forward.cu",
                        "tile::online_softmax<Weighing::score()>(state, scores, "
                        "Weighing::factor(params.scale),",
                        "static_assert(kStages != 4, \"no four\");\n"
                        "if (kColumns == 64) *static_cast<int*>(nullptr) = 1;\n"
                        "tile::online_softmax<Weighing::score()>(state, scores, "
                        "Weighing::factor(params.scale) * (kStages == 3 ? 1.05f : 1.0f),");
  DeviceOptions options;
  options.name = test::on_simulator() ? "sim:sm_90a" : test::device_name();
  options.template_dir = folder / "t";
  options.cache_dir = "";
  const Device device = counting_device(options);
  const Device::Impl& impl = api::inside(device);
  const tuned::BatchTarget target =
      target_of_class(batch_of({64, 64}, "causal"), RequestClass::kFewQueries);
  const auto bench =
      batch_workbench(impl.context, *impl.kernels, api::limits_of(impl), target, 3, 1, 0);
  const auto reason = [&](int columns, int stages) {
    const auto dropped =
        bench->prepare(batch::BatchConfig{&batch::kDecodeKernel, 16, columns, 4, stages});
    return dropped ? dropped->reason : "passes";
  };
  CHECK(reason(128, 2) == "passes");
  CHECK(reason(128, 3).find("wrong: error of a row") != std::string::npos);
  CHECK(reason(64, 4).find("NVRTC rejects") != std::string::npos);
  if (test::on_simulator()) {  // on a GPU the context would be lost
    CHECK(reason(64, 2).find("decode_forward.cu") != std::string::npos);
  }
  CHECK(reason(128, 2) == "passes");
}

TEST_CASE("a candidate for many queries that is wrong is dropped") {
  if (!test::on_simulator()) return;
  const test::ScratchFolder folder;
  const std::string factor = "const float factor = Weighing::factor(params_.scale)";
  test::write_templates(folder / "t", "kernels/batch/chunk_consumer.cuh", factor + ";",
                        factor + " * (Shape::kStages == 2 ? 1.05f : 1.0f);");
  DeviceOptions options;
  options.name = "sim:sm_90a";
  options.template_dir = folder / "t";
  options.cache_dir = "";
  const Device device = counting_device(options);
  const Device::Impl& impl = api::inside(device);
  const tuned::BatchTarget target =
      target_of_class(batch_of({64, 64}, "causal"), RequestClass::kManyQueries);
  const auto bench =
      batch_workbench(impl.context, *impl.kernels, api::limits_of(impl), target, 3, 1, 0);
  const auto reason = [&](int stages) {
    const auto dropped =
        bench->prepare(batch::BatchConfig{&batch::kChunkWgmmaKernel, 128, 64, 8, stages});
    return dropped ? dropped->reason : "passes";
  };
  CHECK(reason(2).find("wrong: error of a row") != std::string::npos);
  CHECK(reason(3) == "passes");
}

TEST_CASE("times of batches are taken of every configuration in every round") {
  const Device device = counting_device(test::device_name());
  const Device::Impl& impl = api::inside(device);
  const attention::DeviceLimits limits = api::limits_of(impl);
  BatchProblem problem = batch_of({64, 64}, "causal");
  problem.page_rows = 16;
  for (const RequestClass requests : {RequestClass::kFewQueries, RequestClass::kManyQueries}) {
    tuned::BatchTarget target = target_of_class(problem, requests);
    target.step.resize(1);
    target.step.front().keys = 450;
    const auto bench = measured_batch_workbench(impl.context, *impl.kernels, limits, target, 1, 1,
                                                0, {.max_repeats = 3});
    CHECK_FALSE(bench->exact());
    std::vector<KernelConfig> configs = shipped_for(requests, problem, limits);
    configs.resize(1);
    configs.push_back(configs.front());
    for (const KernelConfig& config : configs) CHECK_FALSE(bench->prepare(config));
    for (const tuned::CacheState l2 : {tuned::CacheState::kWarm, tuned::CacheState::kCold}) {
      const auto times = bench->measure(configs, 4, l2);
      REQUIRE(times.size() == 2);
      for (const auto& of_one : times) {
        CHECK(of_one.size() == 4);
        for (const double time : of_one) CHECK(time > 0);
      }
    }
  }
}

// The legal configurations of a class that cannot spill.
std::vector<tuned::Trial> space_of(const tuned::BatchTarget& target,
                                   const attention::DeviceLimits& limits,
                                   const attention::PipeDevice& pipes) {
  const Dims dims = {target.problem.dim_qk, target.problem.dim_v};
  std::vector<tuned::Trial> trials;
  for (const batch::BatchKernel* kernel : batch::batch_kernels()) {
    if (kernel->requests != target.requests) continue;
    kernel->enumerate([&](std::span<const KernelConfig> alternatives) {
      for (const KernelConfig& config : alternatives) {
        if (batch::why_not(config, dims, limits)) continue;
        if (attention::why_spills(config, dims, limits.arch)) continue;
        trials.push_back(
            {.config = config, .predicted = predicted_cycles(pipes, limits, target, config)});
      }
    });
  }
  return trials;
}

TEST_CASE("a search among configurations for few queries finds none slower than the default") {
  if (!test::on_simulator()) return;
  const Device device = counting_device("sim:sm_90a");
  const Device::Impl& impl = api::inside(device);
  const attention::DeviceLimits limits = api::limits_of(impl);
  const attention::PipeDevice pipes = attention::pipe_device(impl.context->info());
  BatchProblem problem = batch_of({64, 64}, "causal");
  problem.page_rows = 16;
  problem.most = {.requests = 32, .rows = 32, .rows_of_one = 1, .keys_of_one = 16384};
  const tuned::BatchTarget target = target_of_class(problem, RequestClass::kFewQueries);
  const std::vector<tuned::Trial> trials = space_of(target, limits, pipes);
  const KernelConfig standard = batch::choose_config(target.requests, problem, limits).config;
  const auto found =
      std::ranges::find_if(trials, [&](const tuned::Trial& of) { return of.config == standard; });
  REQUIRE(found != trials.end());
  const auto bench = batch_workbench(impl.context, *impl.kernels, limits, target, 3, 1, 0);
  CHECK(bench->exact());
  tuned::SearchOptions options;
  options.least_most = 8;
  const SearchResult result =
      search(trials, static_cast<std::size_t>(found - trials.begin()), *bench, options);
  CHECK(result.complete);
  CHECK(result.dropped == 0);
  CHECK(result.tried >= 2);
  CHECK(result.default_time > 0);
  CHECK(result.winner_time <= result.default_time);
}

TEST_CASE("predictions of batches are the same twice, and grow with the step") {
  if (!test::on_simulator()) return;
  const Device device = counting_device("sim:sm_90a");
  const Device::Impl& impl = api::inside(device);
  const attention::DeviceLimits limits = api::limits_of(impl);
  BatchProblem problem = batch_of({64, 64}, "causal");
  problem.page_rows = 16;
  problem.most.keys_of_one = 50000;
  problem.most.requests = 60;  // enough requests that reading their keys takes most of the time
  for (const RequestClass requests : {RequestClass::kFewQueries, RequestClass::kManyQueries}) {
    const std::vector<KernelConfig> configs = shipped_for(requests, problem, limits);
    const auto predict = [&](std::int64_t keys) {
      tuned::BatchTarget target = target_of_class(problem, requests);
      for (batch::StepRequest& request : target.step) request.keys = keys;
      const auto bench = batch_workbench(impl.context, *impl.kernels, limits, target, 3, 1, 0);
      for (const KernelConfig& config : configs) CHECK_FALSE(bench->prepare(config));
      return bench->measure(configs, 2, tuned::CacheState::kWarm);
    };
    const auto times = predict(20000), longer = predict(40000);
    CHECK(predict(20000) == times);
    for (std::size_t i = 0; i < configs.size(); ++i) {
      CAPTURE(to_string(configs[i]));
      CHECK(times[i][0] == times[i][1]);
      CHECK(longer[i][0] > 1.5 * times[i][0]);
      CHECK(longer[i][0] < 2.5 * times[i][0]);
    }
  }
}

}  // namespace
}  // namespace annulus::autotune
