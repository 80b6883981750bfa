#include "jit/once_map.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace annulus::jit {
namespace {

using Map = OnceMap<std::string, int, std::hash<std::string>>;

TEST_CASE("threads that ask for one key at once share one making of it") {
  for (int round = 0; round < 50; ++round) {
    Map map;
    std::atomic<int> made{0}, wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 4; ++i) {
          const std::string key = std::to_string((i + t) % 4);
          const auto value = map.get(key, [&] {
            ++made;
            std::this_thread::yield();
            return std::make_shared<const int>(std::stoi(key));
          });
          if (*value != std::stoi(key)) ++wrong;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(made == 4);
    CHECK(wrong == 0);
    CHECK(map.size() == 4);
  }
}

TEST_CASE("a making that throws reaches everybody who waits, and the next call tries again") {
  Map map;
  std::atomic<int> attempts{0}, caught{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&] {
      try {
        map.get("k", [&]() -> Map::Pointer {
          ++attempts;
          std::this_thread::sleep_for(std::chrono::milliseconds(30));
          throw std::runtime_error("no");
        });
      } catch (const std::runtime_error& error) {
        if (std::string(error.what()) == "no") ++caught;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(caught == 6);
  CHECK(attempts >= 1);
  CHECK(map.find("k") == nullptr);
  CHECK(*map.get("k", [] { return std::make_shared<const int>(7); }) == 7);
  CHECK(*map.find("k") == 7);
}

TEST_CASE("making one key does not stop others") {
  Map map;
  CHECK(*map.get("a", [&] {
    return std::make_shared<const int>(
        *map.get("b", [] { return std::make_shared<const int>(1); }) + 1);
  }) == 2);
  CHECK(map.size() == 2);
}

}  // namespace
}  // namespace annulus::jit
