#include "c_api/handle_table.h"

#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace annulus::c_api {
namespace {

struct Counted {
  explicit Counted(std::atomic<int>* count) : live(count) { ++*live; }
  ~Counted() {
    alive = false;
    --*live;
  }
  std::atomic<int>* live;
  bool alive = true;
};
using Table = HandleTable<Counted>;

void refused(Table& table, std::uintptr_t handle, const std::string& part) {
  CAPTURE(handle);
  const auto refuses = [&](auto use) {
    try {
      use();
      FAIL("accepted");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kInvalidArgument);
      CHECK_MESSAGE(std::string(error.what()).find(part) != std::string::npos, error.what());
    }
  };
  refuses([&] { const Table::Pin pin(table, handle); });
  refuses([&] { table.erase(handle); });
}

TEST_CASE("handles are distinct, odd, and gone when they were given back") {
  std::atomic<int> live{0};
  Table table("thing", 0x51);
  std::vector<std::uintptr_t> handles;
  for (int i = 0; i < 300; ++i) {
    handles.push_back(table.insert(std::make_unique<Counted>(&live)));
    CHECK(handles.back() % 2 == 1);
    for (int j = 0; j < i; ++j) REQUIRE(handles[static_cast<std::size_t>(j)] != handles.back());
  }
  CHECK(live == 300);
  for (const std::uintptr_t handle : handles) CHECK(Table::Pin(table, handle)->alive);
  for (const std::uintptr_t handle : handles) table.erase(handle);
  CHECK(live == 0);
  // Places are reused, but old handles stay invalid.
  const std::uintptr_t again = table.insert(std::make_unique<Counted>(&live));
  for (const std::uintptr_t handle : handles) refused(table, handle, "given back already");
  CHECK(Table::Pin(table, again)->alive);
  table.erase(again);
}

TEST_CASE("what is no handle is refused without being followed") {
  std::atomic<int> live{0};
  Table table("thing", 0x51);
  Table other("other", 0x53);
  const std::uintptr_t handle = table.insert(std::make_unique<Counted>(&live));
  refused(table, 0, "the thing is null");
  refused(other, handle, "is not a handle of type other");
  refused(table, reinterpret_cast<std::uintptr_t>(&live), "is not a handle of type thing");
  refused(table, 0x51, "given back already");  // generation 0 is never used
  for (int bit = 0; bit < 64; ++bit) {
    const std::uintptr_t wrong = handle ^ (std::uintptr_t{1} << bit);
    refused(table, wrong, "");
  }
  table.erase(handle);
}

TEST_CASE("an object stays for as long as somebody uses it") {
  std::atomic<int> live{0};
  Table table("thing", 0x51);
  const std::uintptr_t handle = table.insert(std::make_unique<Counted>(&live));
  {
    const Table::Pin first(table, handle);
    const Table::Pin second(table, handle);
    table.erase(handle);
    CHECK(live == 1);
    CHECK(first->alive);
    refused(table, handle, "given back already");
  }
  CHECK(live == 0);
}

// Threads use handles that other threads make and erase. No object may be used after its
// destruction, none may be lost, and each must be erased once.
TEST_CASE("making, using and erasing from many threads") {
  constexpr int kThreads = 4;
  constexpr int kRounds = 3000;
  constexpr std::size_t kPlaces = 8;
  std::atomic<int> live{0};
  std::atomic<int> made{0};
  std::atomic<int> erased{0};
  std::atomic<int> dead{0};
  Table table("thing", 0x51);
  std::vector<std::atomic<std::uintptr_t>> places(kPlaces);
  const auto work = [&](unsigned seed) {
    for (int round = 0; round < kRounds; ++round) {
      seed = seed * 1664525u + 1013904223u;
      std::atomic<std::uintptr_t>& place = places[seed >> 29];
      const std::uintptr_t handle = place.load();
      try {
        if (seed >> 16 & 1) {
          if (handle != 0) dead += !Table::Pin(table, handle)->alive;
        } else {
          place = table.insert(std::make_unique<Counted>(&live));
          ++made;
          if (handle != 0) {
            table.erase(handle);
            ++erased;
          }
        }
      } catch (const Error&) {
        // Another thread erased it first.
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) threads.emplace_back(work, i + 1);
  for (std::thread& thread : threads) thread.join();
  CHECK(dead == 0);
  CHECK(live == made - erased);
  CHECK(erased > kRounds / 2);
}

}  // namespace
}  // namespace annulus::c_api
