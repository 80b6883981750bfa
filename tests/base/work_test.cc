#include "base/work.h"

#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <thread>

#include "annulus/types.h"
#include "base/shared_cache.h"
#include "base/thread_pool.h"

namespace annulus::base {
namespace {

// The error of a call, or "" if there is none.
template <typename Call>
std::string error_of(ErrorCode code, const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  return "";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void charge_often(std::int64_t times, std::int64_t steps) {
  for (std::int64_t i = 0; i < times; ++i) charge(steps);
}

TEST_CASE("a call that needs more steps than its limit is refused, and one that does not is not") {
  charge(std::int64_t{1} << 62);  // without a limit nothing is counted
  CHECK(steps_done() == 0);
  {
    const Work work({.steps = 1'000'000}, "planning");
    charge_often(100, 10'000);
    CHECK(work.steps() == 1'000'000);
    CHECK(steps_done() == 1'000'000);
    const std::string text = error_of(ErrorCode::kLimit, [] { charge_often(10, 10'000); });
    CHECK(has(text, "planning: not done after 1000000 steps"));
    CHECK(has(text, "--max-work"));
  }
  CHECK(current_work() == nullptr);
  const Work work({.steps = 0}, "planning");
  charge_often(3, std::int64_t{1} << 62);  // neither a limit nor an overflow ends the work
  CHECK(steps_done() == INT64_MAX);
}

TEST_CASE("what an estimate shows is refused before it is begun") {
  const Work work({.steps = 1000}, "planning");
  charge(400);
  expect(600, "the list");
  const std::string text = error_of(ErrorCode::kLimit, [] { expect(601, "the list"); });
  CHECK(has(text, "planning: the list would take about 601 steps of work"));
  CHECK(has(text, "400 of the call's 1000 are done"));
  CHECK(work.steps() == 400);
  CHECK(error_of(ErrorCode::kLimit, [] { expect(INT64_MAX, "the list"); }) != "");
}

TEST_CASE("a call inside another has the limit of the outer one") {
  const Work outer({.steps = 0}, "outer");
  {
    const Work inner({.steps = 10}, "inner");
    charge_often(10, 100'000);
    CHECK(inner.steps() == 1'000'000);
  }
  charge(5);
  CHECK(outer.steps() == 1'000'005);
  CHECK(current_work() == &outer);
}

TEST_CASE("a flag ends a call, also one that was set before") {
  std::atomic<bool> flag{true};
  const WorkLimit limit{.steps = 0, .cancelled = [&] { return flag.load(); }};
  const std::string early = error_of(ErrorCode::kCancelled, [&] { Work(limit, "planning"); });
  CHECK(has(early, "planning: cancelled by the caller after 0 steps"));
  CHECK(current_work() == nullptr);
  flag = false;
  const Work work(limit, "planning");
  std::atomic<bool> begun{false};
  std::thread other([&] {
    while (!begun) std::this_thread::yield();
    flag = true;
  });
  const std::string late = error_of(ErrorCode::kCancelled, [&] {
    while (true) {
      charge(1);
      begun = true;
    }
  });
  other.join();
  CHECK(has(late, "cancelled by the caller"));
}

TEST_CASE("threads of a pool share the caller's limit and count exactly") {
  for (const int threads : {1, 2, 5}) {
    CAPTURE(threads);
    ThreadPool pool(threads);
    {
      const Work work({.steps = 1'000'000}, "a loop");
      pool.parallel_for(1000, [](std::int64_t, int) { charge_often(10, 100); });
      CHECK(work.steps() == 1'000'000);
    }
    // One step more is refused, whichever thread makes it.
    const Work work({.steps = 999'999}, "a loop");
    CHECK(error_of(ErrorCode::kLimit, [&] {
            pool.parallel_for(1000, [](std::int64_t, int) { charge_often(10, 100); });
          }) != "");
  }
  // Afterwards the pool's threads have no limit.
  ThreadPool pool(3);
  pool.parallel_for(100, [](std::int64_t, int) { CHECK(current_work() == nullptr); });
}

TEST_CASE("who waits for a value whose maker was cancelled makes it himself") {
  SharedCache<int, int, std::hash<int>> cache;
  std::atomic<bool> making{false}, waiting{false};
  const auto bytes = [](int) { return std::int64_t{1}; };
  for (const ErrorCode code : {ErrorCode::kCancelled, ErrorCode::kLimit}) {
    making = waiting = false;
    const int key = static_cast<int>(code);
    std::thread maker([&] {
      const auto make = [&]() -> std::shared_ptr<const int> {
        making = true;
        while (cache.counters().waits == (code == ErrorCode::kLimit ? 1 : 0)) {
          std::this_thread::yield();
        }
        throw Error(code, "ended");
      };
      CHECK(error_of(code, [&] { cache.get(key, make, bytes); }) == "ended");
    });
    while (!making) std::this_thread::yield();
    CHECK(*cache.get(
              key, [] { return std::make_shared<const int>(7); }, bytes) == 7);
    maker.join();
  }
}

TEST_CASE("a limit that is none is refused") {
  CHECK(has(error_of(ErrorCode::kInvalidArgument, [] { Work({.steps = -1}, "planning"); }),
            "a limit of -1 steps"));
}

}  // namespace
}  // namespace annulus::base
