// The model's predictions for batches, and the length of parts that follows from them.

#include "batch/batch_cost.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "annulus/types.h"

namespace annulus::batch {
namespace {

const attention::DeviceLimits kH200 = {.arch = {90, 'a'},
                                       .multiprocessors = 132,
                                       .shared_bytes_per_block = 227 * 1024,
                                       .clock_kilohertz = 1980000,
                                       .memory_clock_kilohertz = 3201000,
                                       .memory_bus_bits = 6144};

BatchPlanData plan_of(std::int64_t requests, std::int64_t keys, std::int64_t part_keys = 0) {
  BatchProblem problem;
  problem.heads = 32;
  problem.kv_heads = 8;
  problem.dim_qk = problem.dim_v = 128;
  problem.pattern = causal();
  problem.page_rows = 16;
  problem.most = {.requests = requests, .rows = requests, .rows_of_one = 1, .keys_of_one = keys};
  BatchOptions options;
  options.part_keys = part_keys;
  return make_plan(problem, options, kH200);
}

StepPrediction predict(const BatchPlanData& plan, const std::vector<StepRequest>& requests,
                       const attention::PipeDevice& device = attention::pipe_device(kH200)) {
  return predict_step(device, plan.problem, plan.classes.front(), requests);
}

std::vector<StepRequest> alike(std::size_t count, std::int64_t keys) {
  return std::vector<StepRequest>(count, {1, keys});
}

TEST_CASE("the terms of a prediction are its time") {
  for (const std::int64_t part : {128, 1024, 8192}) {
    for (const StepPrediction& made :
         {predict(plan_of(64, 8192, part), alike(64, 8192)),
          predict(plan_of(64, 8192, part), {{1, 8000}, {1, 0}, {1, 17}, {3, 5000}}),
          predict(plan_of(64, 8192, part), {})}) {
      const double sum = made.keys_micros + made.launch_micros + made.first_micros +
                         made.uneven_micros + made.join_micros;
      CHECK(made.predicted_micros == doctest::Approx(sum));
      CHECK(made.share() >= 0);
      CHECK(made.share() < 1);
    }
  }
}

TEST_CASE("K and V of a step take what their bytes take") {
  const attention::PipeDevice device = attention::pipe_device(kH200);
  const StepPrediction made = predict(plan_of(64, 8192), alike(64, 8192));
  const double bytes = 64.0 * 8192 * 8 * (128 + 128) * 2;
  CHECK(made.keys_micros ==
        doctest::Approx(bytes / device.memory_bytes / device.clock_hertz * 1e6));
  // A device with faster memory takes less time, but not in proportion.
  attention::PipeDevice faster = device;
  faster.memory_bytes *= 2;
  const StepPrediction other = predict(plan_of(64, 8192), alike(64, 8192), faster);
  CHECK(other.predicted_micros < made.predicted_micros);
  CHECK(other.share() < made.share());
}

TEST_CASE("parts cost a launch and loads that wait, and serve few requests") {
  const auto joined = [](std::int64_t part) {
    return predict(plan_of(1, 131072, part), alike(1, 131072));
  };
  CHECK(joined(1024).join_micros > joined(8192).join_micros);
  CHECK(joined(131072).join_micros == 0);
  // Now eight CTAs read all keys, each CTA for one head.
  CHECK(joined(131072).predicted_micros > 4 * joined(8192).predicted_micros);
  CHECK(joined(131072).busiest == doctest::Approx(1));  // relative to the eight CTAs
}

// 32 threads join a row of 128 columns, so a CTA joins four rows at once: the four heads of one
// query. The rows of the three other queries come after them.
TEST_CASE("joining takes as long as a CTA has rows one after another") {
  BatchPlanData plan = plan_of(8, 131072, 8192);
  REQUIRE(plan.classes.front().packing.tile_heads == 4);
  plan.classes.front().packing.tile_queries = 4;
  plan.classes.front().ctas = 64;  // one for each head of keys of each request
  attention::PipeDevice device = attention::pipe_device(kH200);
  device.memory_bytes *= 1e6;  // bandwidth takes no time, but dependent loads do
  const auto joining = [&](std::int64_t queries) {
    return predict(plan, std::vector<StepRequest>(8, {queries, 131072}), device).join_micros;
  };
  CHECK(joining(1) > 0);
  CHECK(joining(4) == doctest::Approx(4 * joining(1)));
}

TEST_CASE("requests of unlike lengths are dealt out as the device deals them") {
  const BatchPlanData plan = plan_of(64, 65536, 1024);
  REQUIRE(plan.classes.front().ctas == 264);
  // Each of eight heads has 64 parts of full length and a short part, so most CTAs have two parts.
  const StepPrediction made = predict(plan, {{1, 65536}, {1, 64}});
  CHECK(made.busiest == doctest::Approx(2 * 16 * 264 / (64.0 * 8 * 16 + 8)));
}

TEST_CASE("rows of the states of parts are counted in 31 bits") {
  const std::int64_t keys = 1 << 20;
  CHECK(plan_of(4096, keys, 128).classes.front().lists.slots > 0);
  try {
    plan_of(16384, keys, 128);  // 2^30 parts of tiles, with four rows each
    FAIL("a plan of 2^32 rows");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUnsupported);
    CHECK(std::string(error.what()).find("of 4 rows if they are joined") != std::string::npos);
  }
}

TEST_CASE("the length of parts is what the model finds best within the bounds") {
  for (const auto& [requests, keys] :
       {std::pair{1, 131072}, {8, 8192}, {64, 8192}, {256, 131072}, {65535, 4096}, {1, 1}}) {
    CAPTURE(requests);
    CAPTURE(keys);
    const BatchPlanData plan = plan_of(requests, keys);
    const ClassPlan& of = plan.classes.front();
    CHECK(of.part_keys % 128 == 0);
    CHECK(of.lists.end <= std::int64_t{48} << 20);
    const auto step = alike(static_cast<std::size_t>(std::min(requests, 64)), keys);
    const double chosen = predict(plan, step).predicted_micros;
    for (std::int64_t part = 256; part <= keys; part *= 2) {
      const BatchPlanData other = plan_of(requests, keys, part);
      if (other.classes.front().lists.end > std::int64_t{48} << 20) continue;
      CAPTURE(part);
      CHECK(chosen < 1.1 * predict(other, step).predicted_micros);
    }
  }
  // Steps with fewer requests than the bounds must not be slow.
  const double alone = predict(plan_of(64, 8192), alike(1, 8192)).predicted_micros;
  CHECK(alone < 1.5 * predict(plan_of(1, 8192), alike(1, 8192)).predicted_micros);
}

}  // namespace
}  // namespace annulus::batch
