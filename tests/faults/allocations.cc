// Makes allocations of the library fail in whole public flows. In each pass one allocation fails,
// or all allocations from one on:
//
//   fault_allocations --for 3600 [--flow NAME]... [--seed N] [--cache FOLDER]
//   fault_allocations --list                                                  names of the flows
//   fault_allocations --flow plan_disk --stack 0123456789abcdef --visit 2 --for-good 1
//                                                                         repeats one pass
//
// An allocation is named by its call stack in the library. Each distinct stack fails at its first,
// a middle and its last visit, alone and together with all later allocations, on a thread that has
// not called the library before. A pass is right in two cases: the flow reports the failure (out of
// memory), or the failure has no effect. In both cases the same flow, run again on the same device,
// must give the same bits and leave as much device memory free as before. While all allocations
// fail, a wrong C call must return an error with a text. The passes run in a child, so that the end
// of a process counts as one more outcome. Exit code 1: a pass was wrong. Each such pass is printed
// with the arguments that repeat it.

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <new>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "annulus/c.h"
#include "annulus/device.h"
#include "annulus/types.h"
#include "faults/failing_malloc.h"
#include "faults/flows.h"
#include "faults/options.h"

namespace {

using namespace annulus;
using test::Answer;
using test::Flow;
using Clock = std::chrono::steady_clock;

struct Arguments {
  std::vector<std::string> flows;
  double seconds = 10;
  std::uint64_t seed = 0;
  std::size_t points = ~std::size_t{0};  // the most points of each flow
  std::string cache;
  std::uint64_t stack = 0;
  std::uint32_t visit = 1;
  std::uint32_t for_good = 0;
};

// Measures free device memory with functions of the driver that the device uses.
class FreeMemory {
 public:
  explicit FreeMemory(const Device& device) {
    const auto entry = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(device.driver_entry(name));
    };
    int (*retain)(void**, int) = nullptr;
    int (*push)(void*) = nullptr;
    entry(retain, "cuDevicePrimaryCtxRetain");
    entry(push, "cuCtxPushCurrent_v2");
    entry(get_info_, "cuMemGetInfo_v2");
    void* context = nullptr;
    if (retain(&context, device.info().ordinal) != 0 || push(context) != 0) std::abort();
  }
  std::size_t bytes() const {
    std::size_t free_bytes = 0, total = 0;
    return get_info_(&free_bytes, &total) == 0 ? free_bytes : 0;
  }

 private:
  int (*get_info_)(std::size_t*, std::size_t*) = nullptr;
};

// Results that the child writes for its parent, which lives longer.
struct Shared {
  std::size_t next = 0;  // the next point to try
  std::size_t tried = 0;
  std::size_t refused = 0;   // passes in which the answer was an error
  std::size_t absorbed = 0;  // passes in which the answer was right in spite of the failure
  std::size_t wrong = 0;
  std::size_t unreached = 0;
  bool done = false;
  test::AllocationPoint at;
};

class Passes {
 public:
  Passes(const Flow& flow, const Arguments& arguments, Clock::time_point end, Shared* shared)
      : flow_(flow), arguments_(arguments), end_(end), shared_(*shared) {}

  // Runs in the child.
  void run() {
    const Device keeper = Device::open(test::options_of({arguments_.cache, ""}));
    const FreeMemory free_memory(keeper);
    const std::function<Answer()> body = flow_.make({arguments_.cache, ""});
    const Answer expected = body();
    body();
    const std::size_t free_before = free_memory.bytes();
    test::begin_counting();
    body();
    std::vector<test::AllocationPoint> points = points_of(test::end_counting());
    for (; shared_.next < points.size() && Clock::now() < end_; ++shared_.next) {
      shared_.at = points[shared_.next];
      alarm(600);  // the time limit of each pass
      pass(body, expected, keeper, free_memory, free_before);
    }
    shared_.done = true;
  }

 private:
  std::vector<test::AllocationPoint> points_of(const std::vector<test::CountedStack>& stacks) {
    if (arguments_.stack != 0) {
      return {{arguments_.stack, arguments_.visit, arguments_.for_good != 0}};
    }
    std::vector<test::AllocationPoint> points;
    for (const test::CountedStack& each : stacks) {
      std::uint32_t last = 0;
      for (const std::uint32_t visit : {1u, (each.visits + 1) / 2, each.visits}) {
        if (visit <= last) continue;
        points.push_back({each.stack, visit, false});
        points.push_back({each.stack, visit, true});
        last = visit;
      }
    }
    std::ranges::sort(points, {},
                      [](const auto& p) { return std::tuple(p.stack, p.visit, p.for_good); });
    std::mt19937_64 random(arguments_.seed);
    std::ranges::shuffle(points, random);
    if (points.size() > arguments_.points) points.resize(arguments_.points);
    return points;
  }

  struct Failed {
    bool reached = false;
    bool refused = false;
    std::string wrong;
  };

  // Runs on a new thread.
  Failed fail(const std::function<Answer()>& body, const Answer& expected) const {
    Failed failed;
    std::string& wrong = failed.wrong;
    test::begin_failing(shared_.at);
    try {
      const Answer answer = body();
      if (answer != expected) wrong = "another answer";
    } catch (const Error& error) {
      failed.refused = true;
      if (error.code() != ErrorCode::kOutOfMemory) wrong = error.what();
    } catch (const std::bad_alloc&) {
      failed.refused = true;
    } catch (const std::exception& error) {
      wrong = error.what();
    }
    if (annulus_device_close(nullptr) == ANNULUS_OK || annulus_last_error()[0] == '\0') {
      wrong = "a wrong call of C without an error or without a text";
    }
    failed.reached = test::end_failing();
    return failed;
  }

  void pass(const std::function<Answer()>& body, const Answer& expected, const Device& keeper,
            const FreeMemory& free_memory, std::size_t free_before) {
    Failed failed;
    std::thread([&] { failed = fail(body, expected); }).join();
    auto& [reached, refused, wrong] = failed;
    // Work that was queued before the failure may have failed too. The next wait reports that once.
    try {
      if (refused) keeper.synchronize();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kOutOfMemory) wrong = error.what();
    }
    try {
      if (wrong.empty() && body() != expected) wrong = "another answer afterwards";
    } catch (const std::exception& error) {
      wrong = std::string("the device is not usable afterwards: ") + error.what();
    }
    if (wrong.empty() && free_memory.bytes() != free_before) {
      wrong = "device memory: " + std::to_string(free_before) + " bytes free before, " +
              std::to_string(free_memory.bytes()) + " afterwards";
    }
    ++shared_.tried;
    shared_.unreached += !reached;
    (refused ? shared_.refused : shared_.absorbed) += 1;
    if (!wrong.empty()) {
      ++shared_.wrong;
      tell(wrong, test::last_failed_stack());
    }
  }

 public:
  void tell(const std::string& what, const std::string& stack) const {
    std::printf("WRONG --flow %s --stack %016llx --visit %u --for-good %d: %s\n     %s\n",
                flow_.name, static_cast<unsigned long long>(shared_.at.stack), shared_.at.visit,
                shared_.at.for_good, what.c_str(), stack.c_str());
    std::fflush(stdout);
  }

 private:
  const Flow& flow_;
  const Arguments& arguments_;
  const Clock::time_point end_;
  Shared& shared_;
};

// Returns the number of wrong passes.
std::size_t run_flow(const Flow& flow, const Arguments& arguments, Clock::time_point end) {
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  auto* const shared = new (memory) Shared;
  Passes passes(flow, arguments, end, shared);
  std::size_t ends = 0;
  while (!shared->done && ends < 1000) {
    const std::size_t before = shared->next;
    const pid_t child = fork();
    if (child == 0) {
      alarm(600);
      passes.run();
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (shared->done) break;
    ++ends;
    ++shared->tried;
    passes.tell(WIFSIGNALED(status)
                    ? "the process was ended by signal " + std::to_string(WTERMSIG(status))
                    : "the process ended",
                "");
    // The first pass did not even begin.
    if (shared->next == before && shared->at.stack == 0) break;
    ++shared->next;
  }
  std::printf(
      "%-12s %5zu allocations failed: %zu errors, %zu without effect, %zu not reached, "
      "%zu wrong, %zu ends of the process\n",
      flow.name, shared->tried, shared->refused, shared->absorbed, shared->unreached, shared->wrong,
      ends);
  std::fflush(stdout);
  const std::size_t wrong = shared->wrong + ends;
  munmap(memory, sizeof(Shared));
  return wrong;
}

Arguments parse(int argc, char** argv) {
  using test::option;
  Arguments arguments;
  test::read_options(
      argc, argv,
      {option("--flow", &arguments.flows), option("--for", &arguments.seconds),
       option("--seed", &arguments.seed), option("--points", &arguments.points),
       option("--cache", &arguments.cache), option("--stack", &arguments.stack, 16),
       option("--visit", &arguments.visit), option("--for-good", &arguments.for_good)});
  return arguments;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--list") {
    for (const Flow& flow : test::flows()) std::printf("%s\n", flow.name);
    return 0;
  }
  Arguments arguments = parse(argc, argv);
  std::string scratch;
  if (arguments.cache.empty()) {
    scratch = (std::filesystem::temp_directory_path() / "annulus-faults-XXXXXX").string();
    if (mkdtemp(scratch.data()) == nullptr) return 2;
    arguments.cache = scratch;
  }
  const std::vector<Flow> chosen = test::flows_of(arguments.flows);
  if (chosen.empty()) return 2;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    // The time is shared evenly among the flows.
    const auto share =
        std::chrono::duration<double>(arguments.seconds / static_cast<double>(chosen.size()));
    wrong += run_flow(chosen[i], arguments,
                      Clock::now() + std::chrono::duration_cast<Clock::duration>(share));
  }
  if (!scratch.empty()) std::filesystem::remove_all(scratch);
  return wrong == 0 ? 0 : 1;
}
