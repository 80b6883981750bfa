#include "base/shared_cache.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/replaced_new.h"

namespace annulus::base {
namespace {

using Cache = SharedCache<std::string, int, std::hash<std::string>>;

constexpr auto kBytes = [](int value) { return std::int64_t{value}; };

TEST_CASE("threads that ask for one key at once share one making of it") {
  for (int round = 0; round < 50; ++round) {
    Cache cache;
    std::atomic<int> made{0}, wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 4; ++i) {
          const std::string key = std::to_string((i + t) % 4);
          const auto value = cache.get(
              key,
              [&] {
                ++made;
                std::this_thread::yield();
                return std::make_shared<const int>(std::stoi(key));
              },
              kBytes);
          if (*value != std::stoi(key)) ++wrong;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(made == 4);
    CHECK(wrong == 0);
    CHECK(cache.counters().entries == 4);
    CHECK(cache.counters().misses == 4);
  }
}

TEST_CASE("a making that throws reaches everybody who waits, and the next call tries again") {
  Cache cache;
  std::atomic<int> attempts{0}, caught{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&] {
      try {
        cache.get(
            "k",
            [&]() -> Cache::Pointer {
              ++attempts;
              std::this_thread::sleep_for(std::chrono::milliseconds(30));
              throw std::runtime_error("no");
            },
            kBytes);
      } catch (const std::runtime_error& error) {
        if (std::string(error.what()) == "no") ++caught;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(caught == 6);
  CHECK(attempts >= 1);
  CHECK(cache.counters().failures == attempts);
  CHECK(cache.counters().entries == 0);
  CHECK(*cache.get(
            "k", [] { return std::make_shared<const int>(7); }, kBytes) == 7);
  CHECK(*cache.get(
            "k", [] { return std::make_shared<const int>(8); }, kBytes) == 7);
}

TEST_CASE("making one key does not stop others") {
  Cache cache;
  CHECK(*cache.get(
            "a",
            [&] {
              return std::make_shared<const int>(
                  *cache.get(
                      "b", [] { return std::make_shared<const int>(1); }, kBytes) +
                  1);
            },
            kBytes) == 2);
  CHECK(cache.counters().entries == 2);
}

TEST_CASE("what was used longest ago goes first, and what is too large is not kept") {
  Cache cache({.bytes = 10, .entries = 3});
  const auto of = [&](int value) {
    return *cache.get(
        std::to_string(value), [&] { return std::make_shared<const int>(value); }, kBytes);
  };
  // 2 is evicted: the limit is three entries.
  for (const int value : {1, 2, 3, 1, 4}) CHECK(of(value) == value);
  CHECK(cache.counters().evictions == 1);
  CHECK(cache.counters().bytes == 8);
  of(2);  // 3 is evicted, because it was used before 1 and 4
  CHECK(cache.counters().misses == 5);
  of(1);
  CHECK(cache.counters().misses == 5);
  of(6);  // 4 is evicted, and nine bytes stay
  CHECK(cache.counters().evictions == 3);
  CHECK(cache.counters().entries == 3);
  CHECK(of(11) == 11);
  CHECK(cache.counters().too_large == 1);
  CHECK(cache.counters().bytes == 9);
  cache.clear();
  CHECK(cache.counters().entries == 0);
  CHECK(cache.counters().bytes == 0);
}

// A cache of one entry drops the old value when it keeps a new one.
TEST_CASE("an allocation that fails leaves a cache whole, wherever it fails") {
  Cache cache({.entries = 1});
  const auto get = [&](const std::string& key, int value) {
    return *cache.get(
        key, [&] { return std::make_shared<const int>(value); }, kBytes);
  };
  const std::string names[] = {"a key that is longer than any string holds in itself",
                               "another key that is longer than any string holds in itself"};
  get(names[0], 1);
  int failures = 0;
  int next = 1;  // the key that is not in the cache
  for (int n = 0;; ++n) {
    REQUIRE(n < 100);
    bool thrown = false;
    const bool failed = test::with_failing_new(n, [&] {
      try {
        get(names[next], next + 1);
      } catch (const std::bad_alloc&) {
        thrown = true;
      }
    });
    CHECK(thrown == failed);
    // Gets both keys again. The first get is a hit or a miss, and each get drops the other key.
    CHECK(get(names[1 - next], 2 - next) == 2 - next);
    CHECK(get(names[next], next + 1) == next + 1);
    next = 1 - next;
    CHECK(cache.counters().entries == 1);
    CHECK(cache.counters().bytes == 2 - next);
    if (!failed) break;
    ++failures;
  }
  CHECK(failures >= 5);
  cache.clear();
  CHECK(cache.counters().entries == 0);
  CHECK(cache.counters().bytes == 0);
}

TEST_CASE("what nobody holds can be dropped, and nothing else is") {
  Cache cache;
  const auto of = [&](int value) {
    return cache.get(
        std::to_string(value), [&] { return std::make_shared<const int>(value); }, kBytes);
  };
  const Cache::Pointer held = of(2);
  for (const int value : {1, 3, 4}) of(value);
  CHECK(cache.has("3"));
  // A value that is being made is not dropped either.
  cache.get(
      "5",
      [&] {
        CHECK_FALSE(cache.has("5"));
        cache.drop_unused();
        return std::make_shared<const int>(5);
      },
      kBytes);
  CHECK_FALSE(cache.has("3"));
  CHECK(cache.has("2"));
  CHECK(cache.has("5"));
  CHECK(cache.counters().evictions == 3);
  CHECK(cache.counters().entries == 2);
  CHECK(cache.counters().bytes == 7);
  CHECK(of(2) == held);
}

}  // namespace
}  // namespace annulus::base
