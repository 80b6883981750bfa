// Forks while threads of the parent are planning:
//
//   fault_forks --children 10000 [--seed N] [--cache FOLDER]
//
// Eight threads plan problems that are not in the caches, because locks are held longest for these.
// Each child makes the same call as its parent, and must get Error{kDevice} with the reason. Every
// fourth child also opens the device again, and must get the same error. It also makes a layout and
// a new layout cache, which must work. A child that has not ended after 20 seconds counts as hung.
// A second parent has not opened a device yet, but its threads make layouts. Its children may use a
// device: they plan, run and compare. Exit code 1: a child hung, or ended with a code other than 0.

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "annulus/device.h"
#include "annulus/layout.h"
#include "annulus/types.h"
#include "faults/flows.h"
#include "faults/in_children.h"
#include "faults/options.h"

namespace {

using namespace annulus;

constexpr int kThreads = 8;
constexpr unsigned kSeconds = 20;

bool is_refused(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code() == ErrorCode::kDevice &&
           std::string(error.what()).find("fork") != std::string::npos;
  }
  return false;
}

// A problem whose list of tiles is in no cache, because its window is different for each number.
Problem new_problem(int number) {
  Problem problem = test::small_problem();
  problem.pattern = Pattern::parse("causal & keys(0, " + std::to_string(32 + number % 64) + ")");
  return problem;
}

// Threads that call `body` with one number after another, until the object is destroyed.
class Busy {
 public:
  explicit Busy(const std::function<void(int)>& body) {
    for (int i = 0; i < kThreads; ++i) {
      threads_.emplace_back([this, body, i] {
        for (int n = i; !over_; n += kThreads) {
          try {
            body(n);
          } catch (const std::exception& error) {
            std::printf("WRONG: a thread of the parent: %s\n", error.what());
            failed_ = true;
            return;
          }
        }
      });
    }
  }
  ~Busy() {
    over_ = true;
    for (std::thread& each : threads_) each.join();
  }
  bool failed() const { return failed_; }

 private:
  std::atomic<bool> over_{false}, failed_{false};
  std::vector<std::thread> threads_;
};

// Forks `children` children at random moments. Returns the number of wrong ones.
int fork_children(int children, std::uint64_t seed, const char* what,
                  const std::function<bool(int)>& in_child) {
  std::mt19937_64 random(seed);
  int wrong = 0;
  for (int i = 0; i < children && wrong < 10; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 1000));
    const std::string ended = test::run_in_child(kSeconds, [&] {
      if (!in_child(i)) _exit(1);
    });
    if (ended.empty()) continue;
    ++wrong;
    std::printf("WRONG: child %d of %s, seed %llu: %s\n", i, what,
                static_cast<unsigned long long>(seed), ended.c_str());
    std::fflush(stdout);
  }
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  int children = 100;
  std::uint64_t seed = 1;
  std::string cache;
  test::read_options(argc, argv,
                     {test::option("--children", &children), test::option("--seed", &seed),
                      test::option("--cache", &cache)});
  int wrong = 0;
  // The kernels, and the answer that children must get.
  const test::Folders folders{cache, ""};
  const test::SharedWithChildren<std::uint64_t> sum;
  const auto sum_of = [](const test::Answer& answer) {
    std::uint64_t all = 0;
    for (const std::uint16_t value : answer.values) all = all * 31 + value;
    return all;
  };
  const auto run_here = [&] {
    return sum_of(
        test::run_problem(Device::open(test::options_of(folders)), test::small_problem()));
  };
  if (!test::run_in_child(600, [&] { *sum = run_here(); }).empty()) return 2;

  // There is no device yet, so a child may open one. These children take longest, so there are few
  // of them.
  const int fresh = children / 10 + 1;
  {
    LayoutCache layouts;
    const Busy busy([&](int n) {
      layouts.get(
          LayoutQuery(Pattern::parse("causal & keys(0, " + std::to_string(n + 1) + ")"), 16, 16),
          256, 256);
    });
    wrong += fork_children(fresh, seed, "a parent without a device",
                           [&](int) { return run_here() == *sum; });
    wrong += busy.failed();
  }
  const Device device = Device::open(test::options_of(folders));
  const Plan plan = device.plan(test::small_problem());
  {
    const Busy busy([&](int n) { device.plan(new_problem(n)); });
    wrong += fork_children(children - fresh, seed + 1, "a parent that plans", [&](int i) {
      if (!is_refused([&] { device.plan(test::small_problem()); })) return false;
      if (!is_refused([&] { plan.run(nullptr, {}); })) return false;
      if (!is_refused([&] { device.allocate(64); })) return false;
      if (i % 4 != 0) return true;
      LayoutCache own;
      return is_refused([&] { Device::open(test::options_of(folders)); }) &&
             own.get(LayoutQuery(Pattern::parse("causal"), 64, 64), 256, 256) != nullptr;
    });
    wrong += busy.failed();
  }
  std::printf("%d cases: children of a process whose threads plan, %d wrong\n", children, wrong);
  return wrong == 0 ? 0 : 1;
}
