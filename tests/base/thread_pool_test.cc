#include "base/thread_pool.h"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <stdexcept>

#include "support/sanitized.h"

namespace annulus::base {
namespace {

TEST_CASE("every index is visited once, by a worker of the pool") {
  for (int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    CHECK(pool.threads() == threads);
    for (std::int64_t count : {0, 1, 3, 1000}) {
      std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
      std::atomic<bool> legal{true};
      pool.parallel_for(count, [&](std::int64_t index, int worker) {
        ++visits[static_cast<std::size_t>(index)];
        if (worker < 0 || worker >= threads) legal = false;
      });
      for (auto& visit : visits) CHECK(visit == 1);
      CHECK(legal);
    }
    pool.parallel_for(-1, [](std::int64_t, int) { FAIL("nothing to visit"); });
  }
}

TEST_CASE("an exception stops the loop, comes out, and leaves the pool usable") {
  ThreadPool pool(3);
  // The loop is too long for any machine. It ends because it is stopped, whichever thread is slow.
  constexpr std::int64_t kForever = std::int64_t{1} << 60;
  for (int round = 0; round < 20; ++round) {
    std::atomic<std::int64_t> visited{0};
    CHECK_THROWS_AS(pool.parallel_for(kForever,
                                      [&](std::int64_t index, int) {
                                        ++visited;
                                        if (index == 5) throw std::runtime_error("five");
                                      }),
                    std::runtime_error);
    CHECK(visited >= 6);
  }
  std::atomic<int> visited{0};
  pool.parallel_for(100, [&](std::int64_t, int) { ++visited; });
  CHECK(visited == 100);
}

TEST_CASE("loops of several threads run one after another") {
  ThreadPool pool(2);
  std::atomic<int> running{0}, total{0};
  std::atomic<bool> overlapped{false};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      for (int round = 0; round < 50; ++round) {
        pool.parallel_for(8, [&](std::int64_t, int) {
          const int mine = 1 << (8 * caller);
          const int others = running.fetch_add(mine) & ~(0xff << (8 * caller));
          if (others != 0) overlapped = true;
          ++total;
          running.fetch_sub(mine);
        });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(total == 4 * 50 * 8);
  CHECK_FALSE(overlapped);
}

TEST_CASE("a pool makes do with the threads it gets" * doctest::skip(test::kSanitized)) {
  // In a child process, because released address space may not come back.
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::size_t pages = 0;  // pages of address space in use
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t little = pages * static_cast<std::size_t>(getpagesize()) + (std::size_t{64} << 20);
    const rlimit limit{little, little};
    if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(2);
    ThreadPool pool(1000);  // each thread has a stack of 8 MB
    std::atomic<int> visited{0};
    pool.parallel_for(100, [&](std::int64_t, int) { ++visited; });
    _exit(visited == 100 && pool.threads() >= 1 && pool.threads() < 1000 ? 0 : 3);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace annulus::base
