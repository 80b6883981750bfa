// The limits of work and the cancel flags of every public call that can take long.
#include "annulus/types.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "annulus/device.h"
#include "annulus/layout.h"
#include "annulus/ring.h"
#include "annulus/selection.h"
#include "annulus/tune.h"

namespace {

using namespace annulus;

Device device_of(const char* name) {
  DeviceOptions options;
  options.name = name;
  options.tuned_path = "";
  return Device::open(options);
}

// A problem whose list takes seconds to make.
Problem long_problem() {
  Problem problem;
  problem.batch = 1;
  problem.heads = problem.kv_heads = 2;
  problem.seq_q = problem.seq_k = 8'388'608;
  problem.dim_qk = problem.dim_v = 64;
  problem.pattern = Pattern::parse("causal & strided(512, 4, 64)");
  problem.want_lse = true;
  return problem;
}

Problem short_problem() {
  Problem problem = long_problem();
  problem.seq_q = problem.seq_k = 300;
  return problem;
}

ErrorCode code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    CAPTURE(error.what());
    return error.code();
  }
  return ErrorCode{0};
}

// A call that takes a limit.
struct Call {
  const char* name;
  std::function<void(const WorkLimit&)> run;
};

std::vector<Call> long_calls(const Device& device) {
  const Problem problem = long_problem();
  const LayoutSizes sizes = {16, 16, problem.seq_q, problem.seq_k, 2};
  const auto options_of = [](const WorkLimit& work) {
    PlanOptions options;
    options.work = work;
    return options;
  };
  return {
      {"plan", [=](const WorkLimit& work) { device.plan(problem, options_of(work)); }},
      {"plan with a selection",
       [=](const WorkLimit& work) {
         Problem selecting = problem;
         selecting.seq_q = selecting.seq_k = 1 << 20;
         selecting.pattern = Pattern::parse("causal & strided(8, 4, 64)");
         Selection selection;
         selection.block_rows = selection.block_columns = 64;
         selection.max_blocks = 8;
         device.plan(selecting, selection, options_of(work));
       }},
      {"memory_needed",
       [=](const WorkLimit& work) { device.memory_needed(problem, options_of(work)); }},
      {"prefetch", [=](const WorkLimit& work) { device.prefetch(problem, options_of(work)); }},
      {"plan_ring",
       [=](const WorkLimit& work) {
         const Device devices[] = {device, device};
         plan_ring(devices, problem,
                   make_shards(Sharding::kContiguous, 2, problem.seq_q, problem.seq_k),
                   {options_of(work)});
       }},
      {"pair_density", [=](const WorkLimit& work) { pair_density(problem, work); }},
      {"make_layout",
       [=](const WorkLimit& work) { make_layout(problem.pattern, sizes, {.work = work}); }},
      {"statistics",
       [=](const WorkLimit& work) { statistics(problem.pattern, sizes, {.work = work}); }},
      {"LayoutCache::get",
       [=](const WorkLimit& work) {
         LayoutCache().get(LayoutQuery(problem.pattern, 16, 16, 2), sizes.seq_q, sizes.seq_k, work);
       }},
  };
}

TEST_CASE("every call that can take long has a limit, of steps and not of time") {
  for (const Call& call : long_calls(device_of("sim:sm_80"))) {
    CAPTURE(call.name);
    CHECK(code_of([&] { call.run({.steps = 1'000'000}); }) == ErrorCode::kLimit);
    CHECK(code_of([&] { call.run({.steps = -3}); }) == ErrorCode::kInvalidArgument);
  }
}

TEST_CASE("every call that can take long ends soon after its flag is set") {
  for (const Call& call : long_calls(device_of("sim:sm_80"))) {
    CAPTURE(call.name);
    std::atomic<bool> flag{true};
    const WorkLimit limit{.steps = 0, .cancelled = [&] { return flag.load(); }};
    CHECK(code_of([&] { call.run(limit); }) == ErrorCode::kCancelled);
    flag = false;
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      flag = true;
    });
    CHECK(code_of([&] { call.run(limit); }) == ErrorCode::kCancelled);
    other.join();
  }
}

TEST_CASE("a search that is cancelled while it counts tiles is partial") {
  const Device device = device_of("sim:sm_80");
  Problem problem = long_problem();
  std::atomic<bool> flag{false};
  TuneOptions options;
  options.cancel = &flag;
  options.dry_run = true;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    flag = true;
  });
  CHECK(tune(device, problem, options).status == TuneStatus::kPartial);
  other.join();
}

TEST_CASE("a plan says what it took, and the same the next time") {
  const Device device = device_of("sim:sm_80");
  PlanOptions options;
  const std::int64_t steps = device.plan(short_problem(), options).info().work_steps;
  CHECK(steps > 0);
  CHECK(steps < kDefaultWorkSteps / 10);
  // A device with empty caches for lists and kernels takes the same number of steps, and this
  // number suffices as a limit.
  options.work.steps = steps;
  CHECK(device_of("sim:sm_80:1").plan(short_problem(), options).info().work_steps == steps);
  // Steps of earlier calls in a scope do not count for the plan.
  const WorkScope scope({.steps = 0});
  make_layout(causal(), {16, 16, 1 << 14, 1 << 14, 1});
  CHECK(scope.steps() > 0);
  CHECK(device_of("sim:sm_80:2").plan(short_problem(), options).info().work_steps == steps);
}

TEST_CASE("a thread that waits for a list outlives the cancelling of the one that makes it") {
  // Both threads plan the same problem. Only the first is cancelled.
  const Device device = device_of("sim:sm_80");
  Problem problem = long_problem();
  problem.seq_q = problem.seq_k = 1 << 20;
  std::atomic<bool> flag{false};
  PlanOptions first;
  first.work = {.steps = 0, .cancelled = [&] { return flag.load(); }};
  std::thread other([&] { code_of([&] { device.prefetch(problem, first); }); });
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    flag = true;
  });
  PlanOptions second;
  second.work.steps = 0;
  CHECK(code_of([&] { device.prefetch(problem, second); }) == ErrorCode{0});
  other.join();
  canceller.join();
}

}  // namespace
