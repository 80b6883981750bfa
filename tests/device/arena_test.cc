// The arena: which allocation gets which memory, and when. The tests use the simulator, which names
// work that still uses memory which the arena has taken back (annulusSimulatorRemoveBlock).

#include "device/arena.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "annulus/types.h"
#include "device/buffer.h"
#include "device/module.h"
#include "device/simulator.h"
#include "device/stream.h"
#include "support/kernels.h"
#include "support/simulator.h"

namespace annulus::device {
namespace {

constexpr std::size_t kSlab = std::size_t{2} << 20;

// Counts the calls that allocate, free and wait. Only one such table exists at a time.
struct CountedTable {
  static inline abi::CudaTable real;
  static inline std::atomic<int> allocations{0}, frees{0}, waits{0}, markers{0};

  static abi::CudaTable wrap(bool markers_there = true) {
    real = test::simulator_table();
    allocations = frees = waits = markers = 0;
    abi::CudaTable table = real;
    table.mem_alloc = [](abi::CUdeviceptr* pointer, std::size_t bytes) -> abi::CUresult {
      ++allocations;
      return real.mem_alloc(pointer, bytes);
    };
    table.mem_free = [](abi::CUdeviceptr pointer) -> abi::CUresult {
      ++frees;
      return real.mem_free(pointer);
    };
    table.ctx_synchronize = []() -> abi::CUresult {
      ++waits;
      return real.ctx_synchronize();
    };
    table.ctx_record_event = [](abi::CUcontext context, abi::CUevent event) -> abi::CUresult {
      ++markers;
      return real.ctx_record_event(context, event);
    };
    if (!markers_there) table.ctx_record_event = nullptr;
    return table;
  }
};

ContextPointer open(const abi::CudaTable& table, AllocatorCallbacks allocator = {},
                    ArenaLimits limits = {}, std::uint64_t seed = 0) {
  const auto driver = std::make_shared<const Driver>(table, "counted");
  const ContextPointer context = Context::retain(
      driver, test::number_of_simulated(*driver, "sm_80", 6), std::move(allocator), limits);
  abi::SimulatorOptions options;
  options.checked = 1;
  options.streams = 1;  // work runs when a call waits for it
  options.seed = seed;
  set_simulator_options(*context, options);
  return context;
}

void scale(const Function& function, const Buffer& value, float factor, abi::CUstream stream) {
  const abi::CUdeviceptr pointer = value.address();
  launch(function, {1}, {1}, 0, stream, {&pointer, &factor});
}

ArenaStatistics statistics(const ContextPointer& context) { return context->arena().statistics(); }

TEST_CASE("blocks share a slab, and holes next to each other become one") {
  const ContextPointer context = open(CountedTable::wrap());
  {
    std::vector<Buffer> buffers;
    for (int i = 0; i < 100; ++i) buffers.emplace_back(context, 1000, MemoryUse::kLists);
    const ArenaStatistics now = statistics(context);
    CHECK(CountedTable::allocations == 1);
    CHECK(now.held_bytes == kSlab);
    CHECK(now.used_bytes == 100000);
    CHECK(now.used_by[static_cast<std::size_t>(MemoryUse::kLists)] == 100000);
    CHECK(now.blocks == 100);
    CHECK(now.largest_free_bytes < kSlab - 100000);
    for (std::size_t i = 0; i < 100; i += 2) buffers[i] = Buffer();
  }
  ArenaStatistics now = statistics(context);
  CHECK(now.used_bytes == 0);
  CHECK(now.waiting_bytes == 100000);
  CHECK(now.peak_used_bytes == 100000);
  CHECK(CountedTable::waits == 0);
  context->synchronize();
  now = statistics(context);
  CHECK(now.waiting_bytes == 0);
  CHECK(now.largest_free_bytes == kSlab);
  const ContextScope scope(*context);
  CHECK(context->arena().trim(1) == kSlab);
  CHECK(CountedTable::frees == 1);
  CHECK(statistics(context).held_bytes == 0);
  CHECK(context->arena().trim(0) == 0);
}

TEST_CASE("memory is not handed out while work of any stream may use it") {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    CAPTURE(seed);
    const ContextPointer context = open(CountedTable::wrap(), {}, {}, seed);
    const Function function = Module::load(context, test::kKernels)->function("scale");
    const Stream stream(context);
    constexpr std::size_t kBytes = std::size_t{256} << 10;
    std::map<abi::CUdeviceptr, int> seen;
    for (int i = 0; i < 200; ++i) {
      const Buffer value(context, kBytes);
      ++seen[value.address()];
      const float one = 1;
      copy_to_device_async(*context, value.address(), &one, sizeof(one), stream.handle());
      scale(function, value, 3, stream.handle());
      if (i % 16 == 15) stream.synchronize();
    }
    // The same few blocks are reused after events, and no call waits for the device.
    CHECK(CountedTable::waits == 0);
    CHECK(CountedTable::frees == 0);
    CHECK(CountedTable::markers > 0);
    CHECK(statistics(context).held_bytes <= 16 * kSlab);
    CHECK(seen.size() < 60);
    context->synchronize();
    CHECK(simulator_fault(*context).empty());
  }
}

TEST_CASE("threads with streams of their own take, use and give back") {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    CAPTURE(seed);
    const ContextPointer context = open(CountedTable::wrap(), {}, {}, seed);
    const Function function = Module::load(context, test::kKernels)->function("scale");
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (unsigned number = 0; number < 4; ++number) {
      threads.emplace_back([&, number] {
        std::mt19937 random(number + 10 * static_cast<unsigned>(seed));
        const Stream streams[2] = {Stream(context), Stream(context)};
        std::vector<Buffer> held;
        for (int i = 0; i < 60; ++i) {
          Buffer value(context, std::size_t{64} << (random() % 14));
          const abi::CUstream on = streams[random() % 2].handle();
          const auto initial = static_cast<float>(random() % 100);
          copy_to_device_async(*context, value.address(), &initial, sizeof(initial), on);
          scale(function, value, 2, on);
          scale(function, value, 2, on);
          if (random() % 4 == 0) {
            float result = 0;
            copy_to_host_async(*context, &result, value.address(), sizeof(result), on);
            synchronize(*context, on);
            if (result != 4 * initial) ++wrong;
          }
          if (random() % 3 == 0) held.push_back(std::move(value));
          if (random() % 5 == 0) held.clear();
          if (random() % 20 == 0) {
            const ContextScope scope(*context);
            context->arena().trim(random() % 2 == 0 ? 0 : 4 * kSlab);
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
    context->synchronize();
    CHECK(simulator_fault(*context).empty());
    const ArenaStatistics now = statistics(context);
    CHECK(now.used_bytes == 0);
    CHECK(now.blocks == 0);
    CHECK(now.waiting_bytes == 0);
    CHECK(now.slabs == now.slabs_taken - now.slabs_given_back);
  }
}

TEST_CASE("a driver without events of a context is waited for when much memory waits") {
  const ContextPointer context = open(CountedTable::wrap(false));
  for (int i = 0; i < 1000; ++i) {
    const Buffer value(context, std::size_t{256} << 10);
  }
  // 250 MiB were allocated in total.
  CHECK(CountedTable::waits >= 5);
  CHECK(CountedTable::waits <= 10);
  CHECK(statistics(context).peak_held_bytes <= std::size_t{40} << 20);
}

TEST_CASE("what is beyond a block, and what nobody wrote since it was handed out, is found") {
  const ContextPointer context = open(CountedTable::wrap());
  const Function function = Module::load(context, test::kKernels)->function("scale");
  const auto fault_of = [&](abi::CUdeviceptr pointer) {
    const float factor = 2;
    launch(function, {1}, {1}, 0, nullptr, {&pointer, &factor});
    CHECK_THROWS_AS(context->synchronize(), Error);
    const std::string fault = simulator_fault(*context);
    clear_simulator_fault(*context);
    return fault;
  };
  const float one = 1;
  abi::CUdeviceptr before = 0;
  {
    const Buffer value = upload(context, std::span(&one, 1));
    before = value.address();
    CHECK(fault_of(value.address() + 4).find("\"kind\"") != std::string::npos);
  }
  context->synchronize();
  CHECK(fault_of(before) != "");
  const Buffer again(context, sizeof(float));
  CHECK(again.address() == before);
  CHECK(fault_of(before).find("uninit") != std::string::npos);
}

// A pool of `room` bytes in a separate context.
struct Pool {
  explicit Pool(std::size_t bytes) : context(open(test::simulator_table())), room(bytes) {}
  AllocatorCallbacks callbacks() {
    return {.allocate = [this](std::size_t bytes, std::size_t) -> void* {
              if (bytes > room) return nullptr;
              room -= bytes;
              const ContextScope scope(*context);
              abi::CUdeviceptr address = 0;
              REQUIRE(context->table().mem_alloc(&address, bytes) == abi::kCudaSuccess);
              return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
            },
            .release =
                [this](void* address, std::size_t bytes) {
                  room += bytes;
                  const ContextScope scope(*context);
                  context->table().mem_free(reinterpret_cast<std::uintptr_t>(address));
                }};
  }
  ContextPointer context;
  std::size_t room;
};

TEST_CASE("a pool that is smaller than a slab serves, and errors say what is held") {
  Pool pool(300000);
  {
    const ContextPointer context = open(test::simulator_table(), pool.callbacks());
    const Buffer first(context, 100000, MemoryUse::kLists);
    const Buffer second(context, 150000, MemoryUse::kCaller);
    try {
      const Buffer third(context, 100000);
      FAIL("there is no room");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kOutOfMemory);
      const std::string text = error.what();
      CHECK_MESSAGE(text.find("250000 of them in use: lists 100000, caller 150000") != text.npos,
                    text);
    }
  }
  CHECK(pool.room == 300000);
}

TEST_CASE("memory that waits or is kept is given back before an error") {
  Pool pool(300000);
  const ContextPointer context = open(test::simulator_table(), pool.callbacks());
  const Function function = Module::load(context, test::kKernels)->function("scale");
  const Stream stream(context);
  Buffer kept(context, 100000);
  const float one = 1;
  copy_to_device(*context, kept.address(), &one, sizeof(one));
  scale(function, kept, 2, stream.handle());
  const auto trimmer = context->arena().add_trimmer([&] { kept = Buffer(); });
  { const Buffer waits(context, 150000); }
  const Buffer all(context, 290000);
  CHECK(kept.address() == 0);
  CHECK(simulator_fault(*context).empty());
  context->arena().remove_trimmer(trimmer);
}

TEST_CASE("a limit holds, also for threads that allocate at a time") {
  const ContextPointer context = open(CountedTable::wrap(), {}, {.max_bytes = 3 * kSlab});
  std::vector<std::thread> threads;
  std::atomic<int> refused{0};
  for (int number = 0; number < 4; ++number) {
    threads.emplace_back([&] {
      std::vector<Buffer> held;
      for (int i = 0; i < 80; ++i) {
        try {
          held.emplace_back(context, std::size_t{100} << 10);
        } catch (const Error& error) {
          CHECK(error.code() == ErrorCode::kOutOfMemory);
          ++refused;
          held.clear();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(refused > 0);
  CHECK(statistics(context).peak_held_bytes <= 3 * kSlab);
  CHECK_THROWS_WITH_AS(Buffer(context, 4 * kSlab), doctest::Contains("max_device_bytes, 6291456"),
                       Error);
}

TEST_CASE("an allocator may wait for a thread that gives memory back") {
  Pool pool(100 << 20);
  AllocatorCallbacks callbacks = pool.callbacks();
  Buffer other;
  callbacks.allocate = [&, allocate = callbacks.allocate](std::size_t bytes,
                                                          std::size_t alignment) {
    if (other.address() != 0) {
      auto gone = std::async(std::launch::async, [&] { other = Buffer(); });
      CHECK(gone.wait_for(std::chrono::seconds(20)) == std::future_status::ready);
    }
    return allocate(bytes, alignment);
  };
  const ContextPointer context = open(test::simulator_table(), callbacks);
  other = Buffer(context, 1000);
  const Buffer large(context, 8 << 20);
  CHECK(other.address() == 0);
}

}  // namespace
}  // namespace annulus::device
