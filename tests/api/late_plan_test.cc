// Plans that do not wait for their kernels.

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "annulus/device.h"
#include "annulus/types.h"
#include "support/device.h"
#include "support/device_case.h"
#include "support/faulty_files.h"
#include "support/options.h"

namespace {

using namespace annulus;
using test::Case;
using test::DeviceAnswer;
using test::DeviceCase;

Problem problem_of(const Pattern& pattern) {
  Problem problem;
  problem.heads = 2;
  problem.seq_q = problem.seq_k = 300;
  problem.dim_qk = problem.dim_v = 64;
  problem.pattern = pattern;
  return problem;
}

// A host that runs tasks when the test requests it.
class Host {
 public:
  std::function<void(std::function<void()>)> executor() {
    return [this](std::function<void()> task) { tasks_.push_back(std::move(task)); };
  }
  std::size_t waiting() const { return tasks_.size(); }
  void run_all() {
    while (!tasks_.empty()) {
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      task();
    }
  }
  void drop_all() { tasks_.clear(); }

 private:
  std::deque<std::function<void()>> tasks_;
};

DeviceOptions device_options(Host* host = nullptr) {
  DeviceOptions options;
  options.name = test::device_name();
  if (host != nullptr) options.executor = host->executor();
  return options;
}

PlanOptions not_waiting(Swap swap = Swap::kWhenReady) {
  PlanOptions options;
  options.wait = false;
  options.swap = swap;
  return options;
}

DeviceAnswer answer_of(const Device& device, const Plan& plan, const Case& host) {
  DeviceCase memory(device, host);
  const DeviceMemory workspace = device.allocate(plan.workspace_bytes());
  plan.run(nullptr, memory.operands(), workspace.data());
  return memory.answer();
}

TEST_CASE("a plan answers with a general kernel until its own is compiled") {
  Host host;
  const Device device = Device::open(device_options(&host));
  const Case c = test::make_case(problem_of(causal() & window(70, 0)), 1);
  PlanOptions options = not_waiting();
  std::vector<PlanState> told;
  options.on_ready = [&](PlanState state, const std::string& problem) {
    told.push_back(state);
    CHECK(problem.empty());
  };
  const Plan plan = device.plan(c.problem, options);
  CHECK(plan.state() == PlanState::kCompiling);
  CHECK_FALSE(plan.ready());
  CHECK_FALSE(plan.wait(0));
  CHECK(plan.info().general);
  const DeviceAnswer first = answer_of(device, plan, c);
  CHECK(first == test::run_case(device, c, not_waiting(Swap::kNever)));
  REQUIRE(host.waiting() == 1);
  const PlanInfo* before = &plan.info();

  host.run_all();
  CHECK(plan.ready());
  CHECK(plan.wait());
  CHECK(told == std::vector{PlanState::kReady});
  CHECK_FALSE(plan.info().general);
  CHECK(before->general);  // information that was returned before does not change
  CHECK(answer_of(device, plan, c) == test::run_case(device, c));
  // The kernel is in memory now, so the next plan has it at once.
  const Plan next = device.plan(c.problem, options);
  CHECK(next.ready());
  CHECK(host.waiting() == 0);
  const Metrics metrics = device.metrics();
  CHECK(metrics.general_plans == 1);
  CHECK(metrics.late_plans == 1);
  CHECK(metrics.late_plans_failed == 0);
}

TEST_CASE("the host chooses the moment of the swap, or forbids it") {
  Host host;
  const Device device = Device::open(device_options(&host));
  const Case c = test::make_case(problem_of(window(40, 10)), 2);
  const Plan plan = device.plan(c.problem, not_waiting(Swap::kWhenAsked));
  CHECK_THROWS_AS(plan.swap(), Error);  // it is still being compiled
  host.run_all();
  CHECK(plan.state() == PlanState::kCompiled);
  CHECK(plan.info().general);
  plan.swap();
  CHECK(plan.ready());
  CHECK_FALSE(plan.info().general);
  plan.swap();
  CHECK(plan.ready());

  const Plan kept = device.plan(c.problem, not_waiting(Swap::kNever));
  CHECK(host.waiting() == 0);
  CHECK(kept.state() == PlanState::kGeneral);
  CHECK(kept.why_general().empty());
  CHECK(kept.wait());
  kept.swap();
  CHECK(kept.info().general);
}

TEST_CASE("what no general kernel serves is waited for, and said") {
  Host host;
  const Device device = Device::open(device_options(&host));
  Problem problem = problem_of(causal());
  problem.score = Score::parse("score_mod(score * 2)");
  const Plan plan = device.plan(problem, not_waiting());
  CHECK(plan.ready());
  CHECK(plan.info().waited.find("score expression") != std::string::npos);
  CHECK(host.waiting() == 0);
  CHECK_THROWS_AS(device.plan(problem, not_waiting(Swap::kNever)), Error);

  Pattern deep = window(1, 1) & sink(1);  // a mask program cannot hold it
  for (int level = 0; level < 4; ++level) {
    const Pattern again = deep;
    deep = level % 2 == 0 ? deep | again : deep & again;
  }
  const Plan waited = device.plan(problem_of(deep), not_waiting());
  CHECK(waited.ready());
  CHECK(waited.info().waited.find("inside of one another") != std::string::npos);
}

TEST_CASE(
    "a device that compiles nothing answers with a general kernel, and says what is missing") {
  DeviceOptions options = device_options();
  options.compile = Compile::kNever;
  options.cache_dir = "";
  options.kernels_path = "";
  const Device device = Device::open(options);
  const Problem problem = problem_of(causal() & window(31, 7));
  try {
    device.plan(problem, not_waiting());
    FAIL_CHECK("there is no kernel at all");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kLibrary);
    CHECK(std::string(error.what()).find("--pattern") != std::string::npos);
  }
  try {
    device.plan(problem, not_waiting(Swap::kNever));
    FAIL_CHECK("there is no general kernel");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kLibrary);
    CHECK(std::string(error.what()).find("annulus warm --general") != std::string::npos);
  }
}

// Only the general kernel of one head dim is shipped. A device that compiles makes it.
TEST_CASE("with general kernels that were shipped a plan answers where nothing can be compiled") {
  const test::ScratchFolder folder;
  const Case c = test::make_case(problem_of(causal() & window(29, 5)), 9);
  {
    DeviceOptions options = device_options();
    options.cache_dir = folder.path();
    test::run_case(Device::open(options), c, not_waiting(Swap::kNever));
  }
  DeviceOptions options = device_options();
  options.compile = Compile::kNever;
  options.cache_dir = "";
  options.kernels_path = folder.path();
  const Device device = Device::open(options);
  const Plan plan = device.plan(c.problem, not_waiting());
  CHECK(plan.wait());
  CHECK(plan.state() == PlanState::kGeneral);
  CHECK(plan.why_general().find("--pattern") != std::string::npos);
  CHECK(answer_of(device, plan, c) ==
        test::run_case(Device::open(device_options()), c, not_waiting(Swap::kNever)));
  CHECK(device.metrics().compiles == 0);
  CHECK(device.metrics().late_plans_failed == 1);
}

TEST_CASE("general kernels are loaded beside the caller when a device opens") {
  Host host;
  DeviceOptions options = device_options(&host);
  options.load_general_kernels = true;
  const Device device = Device::open(options);
  REQUIRE(host.waiting() == 1);
  CHECK(device.metrics().kernels == 0);
  host.run_all();
  const std::int64_t kernels = device.metrics().kernels;
  CHECK(kernels >= 20);
  device.plan(problem_of(causal() & window(23, 0)), not_waiting(Swap::kNever));
  CHECK(device.metrics().kernels == kernels);
}

TEST_CASE("a host that refuses or drops the task keeps the general kernel and is told why") {
  const Case c = test::make_case(problem_of(causal() & window(33, 0)), 3);
  SUBCASE("it throws") {
    DeviceOptions options = device_options();
    options.executor = [](std::function<void()>) { throw std::runtime_error("no more tasks"); };
    const Device device = Device::open(options);
    const Plan plan = device.plan(c.problem, not_waiting());
    CHECK(plan.state() == PlanState::kGeneral);
    CHECK(plan.why_general().find("no more tasks") != std::string::npos);
    answer_of(device, plan, c);
  }
  SUBCASE("it drops the task") {
    Host host;
    std::vector<std::string> log;
    DeviceOptions options = device_options(&host);
    options.log = [&](LogLevel, std::string_view text) { log.emplace_back(text); };
    const Device device = Device::open(options);
    std::string told;
    PlanOptions asked = not_waiting();
    asked.on_ready = [&](PlanState state, const std::string& problem) {
      CHECK(state == PlanState::kGeneral);
      told = problem;
    };
    const Plan plan = device.plan(c.problem, asked);
    host.drop_all();
    CHECK(plan.wait());
    CHECK(plan.state() == PlanState::kGeneral);
    CHECK(told.find("dropped") != std::string::npos);
    CHECK(log.size() == 1);
    const Plan again = device.plan(c.problem, asked);
    host.drop_all();
    CHECK(log.size() == 1);  // it is logged once
    answer_of(device, again, c);
  }
}

TEST_CASE("a plan that is destroyed compiles nothing") {
  Host host;
  const Device device = Device::open(device_options(&host));
  {
    const Plan plan = device.plan(problem_of(causal() & window(57, 0)), not_waiting());
    CHECK(host.waiting() == 1);
  }
  const std::int64_t before = device.metrics().compiles + device.metrics().kernels_from_disk;
  host.run_all();
  CHECK(device.metrics().compiles + device.metrics().kernels_from_disk == before);
}

// An allocator of the host. It takes memory from the driver through a separate device.
class CountedPool {
 public:
  explicit CountedPool(std::function<void()> on_call) : on_call_(std::move(on_call)) {}

  AllocatorCallbacks callbacks() const {
    return {.allocate =
                [this](std::size_t bytes, std::size_t) {
                  on_call_();
                  ++slabs_;
                  void* address = nullptr;
                  allocate_(&address, bytes);
                  return address;
                },
            .release =
                [this](void* address, std::size_t) {
                  on_call_();
                  --slabs_;
                  release_(address);
                }};
  }
  int slabs() const { return slabs_; }

 private:
  const Device device_ = Device::open(device_options());  // keeps the context alive
  int (*allocate_)(void**, std::size_t) =
      reinterpret_cast<int (*)(void**, std::size_t)>(device_.driver_entry("cuMemAlloc"));
  int (*release_)(void*) = reinterpret_cast<int (*)(void*)>(device_.driver_entry("cuMemFree"));
  const std::function<void()> on_call_;
  mutable std::atomic<int> slabs_{0};
};

// The host removes its log and its allocator as soon as the device and the plan are destroyed.
TEST_CASE("nothing of the host is called once the device and its plans are gone") {
  for (int delay = 0; delay < 12; ++delay) {
    CAPTURE(delay);
    std::atomic<bool> gone{false};
    std::atomic<int> late{0};
    const auto call = [&] {
      if (gone) ++late;
    };
    DeviceOptions options = device_options();
    options.cache_dir = "";
    options.log_level = LogLevel::kDebug;
    options.log = [&](LogLevel, std::string_view) { call(); };
    const CountedPool pool(call);
    options.allocator = pool.callbacks();
    {
      const Device device = Device::open(options);
      const Plan plan = device.plan(problem_of(causal() & window(90 + delay, 0)), not_waiting());
      std::this_thread::sleep_for(std::chrono::milliseconds(delay % 4 * 30));
    }
    gone = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    CHECK(late == 0);
  }
}

TEST_CASE("a task that a host runs when all is gone does nothing, and holds nothing of the host") {
  Host host;
  const CountedPool pool([] {});
  DeviceOptions options = device_options(&host);
  options.allocator = pool.callbacks();
  {
    const Device device = Device::open(options);
    device.plan(problem_of(causal() & window(77, 0)), not_waiting());
  }
  CHECK(host.waiting() == 1);
  CHECK(pool.slabs() == 0);
  host.run_all();
  CHECK(pool.slabs() == 0);
}

TEST_CASE("the callback may let go of the plan and of the device") {
  std::optional<Device> device = Device::open(device_options());
  std::optional<Plan> plan;
  std::atomic<bool> may{false}, done{false};
  PlanOptions options = not_waiting();
  options.on_ready = [&](PlanState, const std::string&) {
    while (!may) std::this_thread::yield();
    plan.reset();
    device.reset();
    done = true;
  };
  plan = device->plan(problem_of(causal() & window(66, 1)), options);
  may = true;
  while (!done) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK_FALSE(device.has_value());
}

TEST_CASE("runs on one thread while the kernel is swapped on another") {
  const Device device = Device::open(device_options());
  const Case c = test::make_case(problem_of(window(61, 3) | global(5)), 4);
  const DeviceAnswer general = test::run_case(device, c, not_waiting(Swap::kNever));
  const Plan plan = device.plan(c.problem, not_waiting());
  DeviceAnswer last = answer_of(device, plan, c);
  CHECK(last == general);
  while (!plan.ready()) {
    REQUIRE(plan.state() == PlanState::kCompiling);
    answer_of(device, plan, c);
  }
  CHECK(answer_of(device, plan, c) == test::run_case(device, c));
}

}  // namespace
