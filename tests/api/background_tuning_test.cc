// Tuning while the host program continues its work.

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "annulus/oracle.h"
#include "annulus/tune.h"
#include "annulus/types.h"
#include "api/tuning_work.h"
#include "support/device.h"
#include "support/device_case.h"
#include "support/faulty_files.h"

namespace {

using namespace annulus;
using State = BackgroundTuningStatus::State;
using test::Case;
using test::DeviceAnswer;
using test::DeviceCase;

// On a simulated sm_80 the heuristic's choice for this problem is not the best.
Problem problem_of(std::int64_t length = 96) {
  Problem problem;
  problem.heads = problem.kv_heads = 2;
  problem.seq_q = problem.seq_k = length;
  problem.dim_qk = problem.dim_v = 32;
  problem.pattern = causal();
  return problem;
}

struct Notes {
  std::mutex mutex;
  std::vector<std::string> lines;
  LogCallback log() {
    return [this](LogLevel, std::string_view text) {
      const std::lock_guard lock(mutex);
      lines.emplace_back(text);
    };
  }
  int count(const std::string& part) {
    const std::lock_guard lock(mutex);
    int found = 0;
    for (const std::string& line : lines) found += line.find(part) != line.npos;
    return found;
  }
};

struct Opened {
  explicit Opened(const std::string& name = test::device_name())
      : device(Device::open(options(name))) {}
  DeviceOptions options(const std::string& name) {
    DeviceOptions made;
    made.name = name;
    made.tuned_path = folder / "tuned";
    made.log = notes.log();
    return made;
  }
  test::ScratchFolder folder;
  Notes notes;
  Device device;
};

BackgroundTuningOptions of(std::vector<Problem> problems) {
  BackgroundTuningOptions options;
  options.problems = std::move(problems);
  return options;
}

// Checks that the device is used either by requests or by the tuning, and never by both.
struct Turn {
  std::mutex mutex;
  std::atomic<bool> measuring{false};
  std::atomic<int> granted{0};
  int ended = 0;
  void share(BackgroundTuningOptions* options) {
    options->may_measure = [this] {
      if (!mutex.try_lock()) return false;
      measuring = true;
      ++granted;
      return true;
    };
    options->measured = [this] {
      ++ended;
      measuring = false;
      mutex.unlock();
    };
  }
};

TEST_CASE("requests are answered while the library tunes, and swap to the result when asked") {
  if (!test::on_simulator()) return;
  Opened opened("sim:sm_80");
  const Device& device = opened.device;
  const Case c = test::make_case(problem_of(), 1);
  const DeviceAnswer untuned = test::run_case(device, c);
  PlanOptions asked;
  asked.follow_tuning = true;
  asked.swap = Swap::kWhenAsked;
  const Plan plan = device.plan(c.problem, asked);
  asked.swap = Swap::kWhenReady;
  const Plan at_once = device.plan(c.problem, asked);
  asked.swap = Swap::kNever;
  const Plan never = device.plan(c.problem, asked);
  const Plan plain = device.plan(c.problem);
  const std::string before = plan.info().config;
  const PlanInfo* first = &plan.info();
  CHECK_FALSE(plan.can_swap());

  Turn turn;
  BackgroundTuningOptions options = of({c.problem});
  turn.share(&options);
  std::vector<TuneResult> results;
  std::atomic<int> told{0};
  options.tuned = [&](const Problem& problem, const TuneResult& result) {
    CHECK(problem.seq_q == 96);
    results.push_back(result);
  };
  options.progress = [&](const TuneProgress&) { ++told; };
  const BackgroundTuning tuning(device, options);
  int requests = 0;
  DeviceCase memory(device, c);
  const DeviceMemory workspace = device.allocate(plan.workspace_bytes());
  while (!tuning.wait(0)) {
    {
      const std::lock_guard lock(turn.mutex);
      CHECK_FALSE(turn.measuring);
      plan.run(nullptr, memory.operands(), workspace.data());
      REQUIRE(memory.answer() == untuned);
      memory.reset();
    }
    ++requests;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK(requests > 3);
  REQUIRE(results.size() == 1);
  CHECK(results[0].status == TuneStatus::kTuned);
  REQUIRE(results[0].config != before);
  const BackgroundTuningStatus status = tuning.status();
  CHECK(status.state == State::kEnded);
  CHECK(status.tuned == 1);
  CHECK(status.failed == 0);
  CHECK(status.measurements == turn.granted);
  CHECK(turn.ended == turn.granted);
  CHECK(turn.granted >= results[0].tried);
  CHECK(told == results[0].tried + results[0].dropped);

  // An existing plan takes the result if it was allowed to, and a new plan always does.
  CHECK(plan.can_swap());
  CHECK(plan.info().config == before);
  plan.swap();
  CHECK_FALSE(plan.can_swap());
  CHECK(plan.ready());
  CHECK(plan.info().config == results[0].config);
  CHECK(first->config == before);  // information that was returned before does not change
  CHECK(at_once.info().config == results[0].config);
  CHECK(never.info().config == before);
  CHECK(plain.info().config == before);
  const Plan next = device.plan(c.problem);
  CHECK(next.info().config == results[0].config);
  CHECK(next.info().tuned == results[0].path);
  plan.run(nullptr, memory.operands(), workspace.data());
  CHECK(memory.answer() == test::run_case(device, c));
  CHECK(compare(c.problem, reference(c.problem, c.inputs()), memory.answer().result())
            .within_tolerance);
  const Metrics metrics = device.metrics();
  CHECK(metrics.background_tunes == 1);
  CHECK(metrics.better_plans == 2);
}

TEST_CASE("nothing is measured while the host says no, and cancelling ends it") {
  Opened opened;
  BackgroundTuningOptions options = of({problem_of()});
  std::atomic<int> asked{0}, measured{0};
  options.may_measure = [&] {
    ++asked;
    return false;
  };
  options.measured = [&] { ++measured; };
  options.ask_again_seconds = 0.001;
  const BackgroundTuning tuning(opened.device, options);
  while (asked < 20) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK_FALSE(tuning.wait(0.02));
  CHECK(tuning.status().state == State::kTuning);
  CHECK(tuning.status().refusals >= 20);
  tuning.cancel();
  CHECK(tuning.wait());
  CHECK(tuning.status().state == State::kEnded);
  CHECK(tuning.status().measurements == 0);
  CHECK(tuning.status().partial == 1);
  CHECK(measured == 0);
  CHECK(opened.device.plan(problem_of()).info().tuned.empty());
}

TEST_CASE("a pause waits for the measurement under way, and none begins in it") {
  Opened opened;
  std::atomic<int> began{0}, ended{0};
  BackgroundTuningOptions options = of({problem_of(), problem_of(40), problem_of(200)});
  options.may_measure = [&] {
    ++began;
    return true;
  };
  options.measured = [&] { ++ended; };
  const BackgroundTuning tuning(opened.device, options);
  for (int i = 0; i < 5; ++i) {
    while (began <= 3 * i && !tuning.wait(0)) std::this_thread::yield();
    tuning.pause();
    tuning.pause();
    tuning.resume();
    const std::int64_t measurements = tuning.status().measurements;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK(tuning.status().measurements == measurements);
    tuning.resume();
  }
  CHECK_THROWS_WITH_AS(tuning.resume(), doctest::Contains("not paused"), Error);
  tuning.cancel();
  CHECK(tuning.wait());
  CHECK(began == ended);
}

// Otherwise their counters would mix, and the host's device would stay in checked mode.
TEST_CASE("two tunings of one device measure one after another") {
  Opened opened;
  const Device::Impl& device = api::inside(opened.device);
  api::TuningWork first(device, of({problem_of()})), second(device, of({problem_of()}));
  first.begin();
  std::atomic<bool> begun{false};
  std::thread other([&] {
    second.begin();
    begun = true;
    second.end();
  });
  while (second.status().measurements == 0) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK_FALSE(begun);
  first.end();
  other.join();
  CHECK(begun);
}

TEST_CASE(
    "a callback that waits for its tuning is refused, and one that is ended early tells none") {
  Opened opened;
  BackgroundTuningOptions options = of({problem_of()});
  std::atomic<const BackgroundTuning*> self{nullptr};
  int tuned = 0;
  std::string refused;
  options.may_measure = [&] {
    if (self == nullptr) return false;
    try {
      self.load()->wait();
    } catch (const Error& error) {
      refused = error.what();
    }
    self.load()->cancel();
    return false;
  };
  options.tuned = [&](const Problem&, const TuneResult&) { ++tuned; };
  options.ask_again_seconds = 1e-3;
  const BackgroundTuning tuning(opened.device, options);
  self = &tuning;
  CHECK(tuning.wait());
  CHECK(refused.find("which waits for the callback") != refused.npos);
  CHECK(tuned == 0);
  CHECK(tuning.status().partial == 1);
}

TEST_CASE("what callbacks throw is noted once and harms nothing") {
  Opened opened;
  BackgroundTuningOptions options = of({problem_of()});
  int asked = 0;
  options.may_measure = [&]() -> bool {
    if (++asked < 4) throw std::runtime_error("not now");
    return true;
  };
  options.measured = [] { throw 1; };
  options.progress = [](const TuneProgress&) { throw std::runtime_error("no interest"); };
  options.tuned = [](const Problem&, const TuneResult&) { throw std::runtime_error("no thanks"); };
  options.ask_again_seconds = 1e-4;
  const BackgroundTuning tuning(opened.device, options);
  CHECK(tuning.wait());
  CHECK(tuning.status().tuned == 1);
  CHECK(tuning.status().refusals == 3);
  CHECK(opened.notes.count("'may_measure' of a background tuning threw: not now") == 1);
  CHECK(opened.notes.count("'measured' of a background tuning threw") == 1);
  CHECK(opened.notes.count("'progress' of a background tuning threw: no interest") == 1);
  CHECK(opened.notes.count("'tuned' of a background tuning threw: no thanks") == 1);
  CHECK_FALSE(opened.device.plan(problem_of()).info().tuned.empty());
}

TEST_CASE("what is planned is tuned, and what comes later as well") {
  Opened opened;
  std::mutex mutex;
  std::vector<std::int64_t> lengths;
  BackgroundTuningOptions options;
  options.tuned = [&](const Problem& problem, const TuneResult&) {
    const std::lock_guard lock(mutex);
    lengths.push_back(problem.seq_q);
  };
  const BackgroundTuning tuning(opened.device, options);
  CHECK(tuning.wait());
  CHECK(tuning.status().state == State::kIdle);
  opened.device.plan(problem_of());
  CHECK(tuning.wait());
  PlanOptions forced;
  forced.config = "mma m64 n64 w4 s2 q";
  opened.device.plan(problem_of(50), forced);
  Problem sum = problem_of(60);
  sum.pattern = Pattern::parse("sum(causal, window(3, 3))");
  opened.device.plan(sum);
  CHECK(tuning.wait());
  opened.device.plan(problem_of(40));
  CHECK(tuning.wait());
  CHECK(lengths == std::vector<std::int64_t>{96, 60, 40});
  CHECK(tuning.status().tuned == 3);
  CHECK(tuning.status().failed == 0);
}

BatchProblem batch_of_two() {
  BatchProblem batch;
  batch.heads = batch.kv_heads = 2;
  batch.dim_qk = batch.dim_v = 64;
  batch.pattern = causal();
  batch.most = {.requests = 2, .rows = 160, .rows_of_one = 80, .keys_of_one = 160};
  batch.page_rows = 16;
  return batch;
}

TEST_CASE("batches that are planned are tuned in the moments that the host allows") {
  if (!test::on_simulator()) return;
  Opened opened("sim:sm_80");
  const Device& device = opened.device;
  Turn turn;
  BackgroundTuningOptions options;
  turn.share(&options);
  std::vector<std::string> shapes;
  options.tuned_batch = [&](const BatchProblem& batch, const TuneResult& result) {
    CHECK(batch.most.rows_of_one == 80);
    CHECK(result.status == TuneStatus::kTuned);
    shapes.push_back(result.shape);
  };
  options.tuned = [](const Problem&, const TuneResult&) { FAIL("no problem was planned"); };
  const BackgroundTuning tuning(device, options);
  CHECK(tuning.wait());
  const BatchPlan before = plan_batch(device, batch_of_two());
  CHECK(before.info().tuned.empty());
  CHECK(tuning.wait());
  const BackgroundTuningStatus status = tuning.status();
  CHECK(status.tuned == 2);
  CHECK(status.failed == 0);
  CHECK(status.measurements > 6);
  CHECK(turn.granted == turn.ended);
  REQUIRE(shapes.size() == 2);
  CHECK(shapes[0].find("few queries") != std::string::npos);
  CHECK(shapes[1].find("many queries") != std::string::npos);
  // The existing plan keeps its kernels, and the next plan has the new result.
  CHECK(before.info().tuned.empty());
  const BatchInfo after = plan_batch(device, batch_of_two()).info();
  CHECK(after.tuned.find(", ") != std::string::npos);
  CHECK(tuning.wait());
  CHECK(tuning.status().tuned == 2);
}

TEST_CASE("batches that are given are tuned behind the problems") {
  if (!test::on_simulator()) return;
  Opened opened("sim:sm_80");
  BackgroundTuningOptions options = of({problem_of()});
  options.batches = {batch_of_two(), batch_of_two()};
  std::string order;
  options.tuned = [&](const Problem&, const TuneResult&) { order += 'p'; };
  options.tuned_batch = [&](const BatchProblem&, const TuneResult&) { order += 'b'; };
  const BackgroundTuning tuning(opened.device, options);
  CHECK(tuning.wait());
  const BackgroundTuningStatus status = tuning.status();
  CHECK(status.state == State::kEnded);
  CHECK(status.tuned == 3);
  CHECK(status.already_there == 2);
  CHECK(order == "pbbbb");
  options.batches[0].most.requests = 0;
  CHECK_THROWS_WITH_AS(BackgroundTuning(opened.device, options), doctest::Contains("requests"),
                       Error);
}

TEST_CASE("what was planned before a tuning lived is none of its problems") {
  Opened opened;
  std::function<void()> task;
  BackgroundTuningOptions first;
  first.executor = [&](std::function<void()> given) { task = std::move(given); };
  {
    const BackgroundTuning tuning(opened.device, first);
    opened.device.plan(problem_of());
  }
  // The host still holds the task of the destroyed tuning.
  opened.device.plan(problem_of(50));
  const BackgroundTuning tuning(opened.device, {});
  CHECK(tuning.wait());
  CHECK(tuning.status().state == State::kIdle);
  opened.device.plan(problem_of(40));
  CHECK(tuning.wait());
  CHECK(tuning.status().tuned == 1);
}

TEST_CASE("a device that goes ends its tuning, and nothing of the host is called any more") {
  for (int delay = 0; delay < 8; ++delay) {
    CAPTURE(delay);
    test::ScratchFolder folder;
    std::atomic<bool> gone{false};
    std::atomic<int> late{0}, calls{0};
    const auto call = [&] {
      ++calls;
      if (gone) ++late;
    };
    DeviceOptions device_options;
    device_options.name = test::device_name();
    device_options.tuned_path = folder / "tuned";
    device_options.log_level = LogLevel::kDebug;
    device_options.log = [&](LogLevel, std::string_view) { call(); };
    std::optional<Device> device = Device::open(device_options);
    BackgroundTuningOptions options = of({problem_of(), problem_of(300)});
    options.may_measure = [&] {
      call();
      return true;
    };
    options.measured = call;
    options.progress = [&](const TuneProgress&) { call(); };
    const BackgroundTuning tuning(*device, options);
    std::this_thread::sleep_for(std::chrono::milliseconds(delay * 15));
    device.reset();
    gone = true;
    CHECK(tuning.wait(0));
    CHECK(tuning.status().state == State::kEnded);
    tuning.pause();
    tuning.resume();
    tuning.cancel();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK(late == 0);
  }
}

TEST_CASE("two devices are tuned at a time") {
  if (!test::on_simulator()) return;
  Opened first("sim:sm_80:0"), second("sim:sm_80:1");
  const BackgroundTuning one(first.device, of({problem_of()}));
  const BackgroundTuning other(second.device, of({problem_of(40), problem_of()}));
  CHECK(one.wait());
  CHECK(other.wait());
  CHECK(one.status().tuned == 1);
  CHECK(other.status().tuned == 2);
  CHECK(first.device.plan(problem_of()).info().config ==
        second.device.plan(problem_of()).info().config);
}

TEST_CASE("a host lends a thread, or drops the task") {
  Opened opened;
  std::function<void()> task;
  BackgroundTuningOptions options = of({problem_of(40)});
  options.executor = [&](std::function<void()> given) { task = std::move(given); };
  {
    const BackgroundTuning tuning(opened.device, options);
    CHECK_FALSE(tuning.wait(0));
    task();
    CHECK(tuning.status().tuned == 1);
    CHECK(tuning.status().state == State::kEnded);
  }
  {
    const BackgroundTuning tuning(opened.device, options);
    task = nullptr;
    CHECK(tuning.wait());
    CHECK(tuning.status().last_error.find("dropped") != std::string::npos);
  }
  { const BackgroundTuning tuning(opened.device, options); }
  task();  // the tuning no longer exists
  options.executor = [](std::function<void()>) { throw std::runtime_error("no threads"); };
  CHECK_THROWS_WITH(BackgroundTuning(opened.device, options), "no threads");
}

TEST_CASE("what cannot be tuned is said once, counted, and the next one comes") {
  Opened opened;
  Problem nothing = problem_of(60);
  nothing.batch = 0;
  const BackgroundTuning tuning(opened.device, of({nothing, nothing, problem_of(40)}));
  CHECK(tuning.wait());
  const BackgroundTuningStatus status = tuning.status();
  CHECK(status.failed == 2);
  CHECK(status.tuned == 1);
  CHECK(status.last_error.find("nothing to tune") != std::string::npos);
  CHECK(opened.notes.count("could not be tuned in the background") == 1);
  CHECK(opened.device.metrics().background_tunes_failed == 2);
}

TEST_CASE("a limit of time counts work and no waits") {
  Opened opened;
  BackgroundTuningOptions options = of({problem_of()});
  int asked = 0;
  options.may_measure = [&] { return ++asked > 3; };
  options.ask_again_seconds = 0.1;
  options.time_limit_seconds = 1e-9;
  const BackgroundTuning limited(opened.device, options);
  CHECK(limited.wait());
  CHECK(limited.status().partial == 1);
  options.time_limit_seconds = 100;
  asked = 0;
  const BackgroundTuning tuning(opened.device, options);
  CHECK(tuning.wait());
  CHECK(tuning.status().tuned == 1);
  CHECK(tuning.status().refusals == 3);
}

TEST_CASE("options out of range are refused, and a child of the process is") {
  Opened opened;
  const auto refused = [&](const std::string& part, const auto& change) {
    BackgroundTuningOptions options = of({problem_of()});
    change(options);
    CHECK_THROWS_WITH_AS(BackgroundTuning(opened.device, options), doctest::Contains(part.c_str()),
                         Error);
  };
  refused("ask_again_seconds", [](auto& options) { options.ask_again_seconds = 0; });
  refused("time limit", [](auto& options) { options.time_limit_seconds = -1; });
  refused("threads", [](auto& options) { options.threads = -1; });
  refused("heads", [](auto& options) { options.problems[0].heads = 0; });
  auto tuning = std::make_unique<BackgroundTuning>(opened.device, of({problem_of()}));
  CHECK_THROWS_AS(tuning->wait(std::nan("")), Error);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    bool is_refused = false;
    try {
      tuning->pause();
    } catch (const Error& error) {
      is_refused = error.code() == ErrorCode::kDevice;
    }
    tuning.reset();
    _exit(is_refused ? 0 : 1);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace
