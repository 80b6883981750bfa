// Measures plans that do not wait, on many threads: the number of kernels compiled for a number of
// problems, the time of `plan`, and the longest time that a planning thread waits for a lock of the
// library. This program replaces the locks of pthread and takes their times.

#include <dlfcn.h>
#include <fmt/core.h>
#include <pthread.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "annulus/device.h"
#include "base/fail.h"
#include "harness.h"

namespace {

thread_local bool planning = false;
thread_local double blocked = 0;  // the longest wait for a lock, in seconds

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <typename Function>
Function next(Function, const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

template <typename Wait>
int timed(const Wait& wait) {
  if (!planning) return wait();
  const double start = now();
  const int code = wait();
  blocked = std::max(blocked, now() - start);
  return code;
}

}  // namespace

extern "C" {
int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  static const auto real = next(&pthread_mutex_lock, "pthread_mutex_lock");
  return timed([&] { return real(mutex); });
}
int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  static const auto real = next(&pthread_cond_wait, "pthread_cond_wait");
  return timed([&] { return real(condition, mutex); });
}
}

namespace {

using namespace annulus;

// Problems whose masks have different forms, so that each has a separate kernel.
std::vector<Problem> problems(int count) {
  const char* const parts[] = {"sink(8)",    "window(100,0)",  "window(0,50)",
                               "keys(3,90)", "queries(5,200)", "global(4)"};
  std::vector<Problem> made;
  for (int i = 1; static_cast<int>(made.size()) < count; ++i) {
    std::string text = "causal";
    for (int bit = 0; bit < 6; ++bit) {
      if (i >> bit & 1) text += fmt::format(" {} {}", bit % 2 == 0 ? "&" : "|", parts[bit]);
    }
    Problem problem;
    problem.heads = 2;
    problem.seq_q = problem.seq_k = 512;
    problem.dim_qk = problem.dim_v = 64;
    problem.pattern = Pattern::parse(text);
    made.push_back(std::move(problem));
  }
  return made;
}

struct Outcome {
  double compiles = 0;
  double blocked_ms = 0;  // the longest wait of any thread
  double plan_ms = 0;     // the median of processor time of the thread
  double longest_ms = 0;  // the longest, in wall time
};

// `threads` threads plan all problems without waiting for kernels, each in a different order.
Outcome plan_all(int threads, int count) {
  DeviceOptions options;
  options.name = "sim:sm_80";
  options.cache_dir = "";
  options.load_general_kernels = true;
  const Device device = Device::open(options);
  while (device.metrics().kernels < 20) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const std::int64_t before = device.metrics().compiles;
  const std::vector<Problem> all = problems(count);
  std::barrier start(threads);
  std::vector<std::vector<Plan>> plans(static_cast<std::size_t>(threads));
  std::vector<double> blocks(static_cast<std::size_t>(threads));
  std::vector<std::vector<double>> own(static_cast<std::size_t>(threads));
  std::vector<double> longest(static_cast<std::size_t>(threads));
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      const auto at = static_cast<std::size_t>(t);
      PlanOptions asked;
      asked.wait = false;
      start.arrive_and_wait();
      planning = true;
      for (int i = 0; i < count; ++i) {
        const double wall = now(), cpu = bench::thread_seconds();
        plans[at].push_back(device.plan(all[static_cast<std::size_t>((i + t * 7) % count)], asked));
        own[at].push_back((bench::thread_seconds() - cpu) * 1e3);
        longest[at] = std::max(longest[at], (now() - wall) * 1e3);
      }
      planning = false;
      blocks[at] = blocked;
    });
  }
  for (std::thread& thread : running) thread.join();
  for (const std::vector<Plan>& each : plans) {
    for (const Plan& plan : each) {
      plan.wait();
      if (!plan.ready()) base::fail(ErrorCode::kInternal, "{}", plan.why_general());
    }
  }
  std::vector<double> times;
  for (const std::vector<double>& each : own) times.insert(times.end(), each.begin(), each.end());
  return {static_cast<double>(device.metrics().compiles - before), std::ranges::max(blocks) * 1e3,
          bench::median(times), std::ranges::max(longest)};
}

}  // namespace

int main(int argc, char** argv) {
  bench::Bench bench("late_bench", argc, argv);
  constexpr int kProblems = 50;
  for (const int threads : {8, 64}) {
    // The first figure of a round runs the measurement for the other figures. If the filter left
    // out that figure, another one runs it.
    auto last = std::make_shared<Outcome>();
    const auto outcome = [=]() -> const Outcome& {
      if (last->compiles == 0) *last = plan_all(threads, kProblems);
      return *last;
    };
    bench.add(
        {fmt::format("compilations for {} problems, planned by {} threads", kProblems, threads),
         "kernels", kProblems, true},
        [=] { return (*last = plan_all(threads, kProblems)).compiles; });
    // With more threads than processors, a thread also waits for threads that are not running.
    bench.add({fmt::format("longest wait in a lock, {} threads", threads), "ms",
               threads == 8 ? 1.0 : 0.0, true},
              [=] { return outcome().blocked_ms; });
    bench.add({fmt::format("plan that does not wait, {} threads, of a thread's own time", threads),
               "ms", 1, true},
              [=] { return outcome().plan_ms; });
  }
  return bench.run();
}
