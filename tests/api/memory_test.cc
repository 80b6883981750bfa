// The device memory that planning takes: how often the driver allocates, and what is released
// before an error.

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "annulus/device.h"
#include "annulus/ring.h"
#include "annulus/types.h"
#include "api/impl.h"
#include "support/idle_launches.h"
#include "support/simulator.h"

namespace {

using namespace annulus;

// Counts the calls that allocate, that free, or that wait for more than one of the library's
// copies.
struct CountedTable {
  static inline abi::CudaTable real;
  static inline int allocations = 0, waits = 0, copies = 0;

  static abi::CudaTable wrap() {
    real = test::IdleLaunches::wrap(test::simulator_table());
    allocations = waits = copies = 0;
    abi::CudaTable table = real;
    table.mem_alloc = [](abi::CUdeviceptr* pointer, std::size_t bytes) -> abi::CUresult {
      ++allocations;
      return real.mem_alloc(pointer, bytes);
    };
    table.mem_alloc_host = [](void** pointer, std::size_t bytes) -> abi::CUresult {
      ++allocations;
      return real.mem_alloc_host(pointer, bytes);
    };
    // These calls wait for the device, or may wait.
    table.mem_free = [](abi::CUdeviceptr pointer) -> abi::CUresult {
      ++waits;
      return real.mem_free(pointer);
    };
    table.mem_free_host = [](void* pointer) -> abi::CUresult {
      ++waits;
      return real.mem_free_host(pointer);
    };
    table.ctx_synchronize = []() -> abi::CUresult {
      ++waits;
      return real.ctx_synchronize();
    };
    table.stream_synchronize = [](abi::CUstream stream) -> abi::CUresult {
      ++waits;
      return real.stream_synchronize(stream);
    };
    table.memcpy_htod = [](abi::CUdeviceptr to, const void* from, std::size_t bytes) {
      ++waits;
      return real.memcpy_htod(to, from, bytes);
    };
    table.event_synchronize = [](abi::CUevent event) -> abi::CUresult {
      ++copies;
      return real.event_synchronize(event);
    };
    return table;
  }
};

Device open_counted(const DeviceOptions& options = {}) {
  return api::open_on(std::make_shared<const device::Driver>(CountedTable::wrap(), "counted"),
                      api::parse_device_name("sim:sm_80:4"), options, base::read_environment());
}

Problem decode(std::int64_t keys, const Pattern& pattern) {
  Problem problem;
  problem.seq_q = 1;
  problem.seq_k = keys;
  problem.heads = 2;
  problem.dim_qk = problem.dim_v = 64;
  problem.pattern = pattern;
  return problem;
}

TEST_CASE("a decode that grows by a token for a thousand steps allocates and waits for nothing") {
  for (const char* text : {"causal", "hierarchical([(1, 1, 64)]) | global(128) | random(3, 0, 64)",
                           "causal & (window(127,0) | sink(4))"}) {
    CAPTURE(text);
    const Device device = open_counted();
    const Pattern pattern = Pattern::parse(text);
    const DeviceMemory memory = device.allocate(1300 * 2 * 64 * 2);
    const DeviceMemory workspace = device.allocate(std::size_t{900} << 10);
    // The first plan compiles, and the first plan with a list makes the memory for uploads.
    device.plan(decode(200, strided(2, 0, 8)));
    std::optional<Plan> plan = device.plan(decode(200, pattern));
    const int allocations = CountedTable::allocations;
    const int waits = CountedTable::waits;
    const int copies = CountedTable::copies;
    test::IdleLaunches::launches = 0;
    for (std::int64_t keys = 201; keys <= 1200; ++keys) {
      const Problem problem = decode(keys, pattern);
      plan = device.plan(problem);
      Operands operands;
      operands.q = operands.k = operands.v = memory.data();
      operands.o = static_cast<std::byte*>(memory.data()) + 1250 * 2 * 64 * 2;
      operands.q_strides = operands.o_strides = Strides::bshd(1, 2, 64);
      operands.k_strides = operands.v_strides = Strides::bshd(keys, 2, 64);
      REQUIRE(plan->workspace_bytes() <= workspace.bytes());
      test::IdleLaunches::idle = true;
      plan->run(nullptr, operands, workspace.data());
      test::IdleLaunches::idle = false;
    }
    CHECK(test::IdleLaunches::launches >= 1000);
    CHECK(CountedTable::allocations - allocations == 0);
    CHECK(CountedTable::waits - waits == 0);
    // One copy for each new list, and one for its parts. There is a new list at most every 16
    // tokens.
    CHECK(CountedTable::copies - copies <= 2 * 1000 / 16);
    CHECK(device.memory_statistics().slabs_taken == 1);
  }
}

// Each step of this decode sees other blocks, so it has a different list.
TEST_CASE("a decode whose every step has its own list waits for its copies alone") {
  DeviceOptions options;
  options.device_lists.entries = 16;
  const Device device = open_counted(options);
  const Pattern pattern = Pattern::parse("causal & strided(3,0,8)");
  std::optional<Plan> plan = device.plan(decode(200, pattern));
  const int allocations = CountedTable::allocations;
  const int waits = CountedTable::waits;
  for (std::int64_t keys = 201; keys <= 1200; ++keys) plan = device.plan(decode(keys, pattern));
  CHECK(device.list_counters().device.misses > 900);
  CHECK(CountedTable::waits - waits == 0);
  CHECK(CountedTable::allocations - allocations <= 1);
}

TEST_CASE("a plan without lists takes no memory") {
  const Device device = open_counted();
  for (const char* text : {"dense", "causal", "causal & window(100,0)"}) {
    CAPTURE(text);
    Problem problem = decode(300, Pattern::parse(text));
    problem.seq_q = 300;
    CHECK(device.memory_needed(problem).device_bytes == 0);
    const Plan plan = device.plan(problem);
    CHECK(plan.info().device_bytes == 0);
  }
  CHECK(CountedTable::allocations == 0);
  CHECK(device.memory_statistics().held_bytes == 0);
}

TEST_CASE("what a plan needs is known before, and what it shares") {
  const Device device = open_counted();
  Problem problem = decode(900, Pattern::parse("causal & strided(3,0,8) | random(3,0,64)"));
  problem.seq_q = 900;
  const MemoryNeeded needed = device.memory_needed(problem);
  CHECK(needed.device_bytes > 0);
  CHECK(needed.shared_bytes == 0);
  CHECK(CountedTable::allocations == 0);
  const Plan plan = device.plan(problem);
  CHECK(plan.info().device_bytes == needed.device_bytes);
  CHECK(static_cast<std::int64_t>(plan.workspace_bytes()) == needed.workspace_bytes);
  CHECK(device.memory_needed(problem).shared_bytes > 0);
  const MemoryStatistics now = device.memory_statistics();
  CHECK(now.lists_bytes + now.tables_bytes == now.used_bytes);
  CHECK(now.used_bytes >= needed.device_bytes);
}

// A pool with room for a number of bytes, over the simulator's memory.
struct Pool {
  explicit Pool(std::int64_t bytes) : room(bytes) {}
  AllocatorCallbacks callbacks() {
    return {.allocate = [this](std::size_t bytes, std::size_t) -> void* {
              if (static_cast<std::int64_t>(bytes) > room) return nullptr;
              abi::CUdeviceptr address = 0;
              if (table.mem_alloc(&address, bytes) != abi::kCudaSuccess) return nullptr;
              room -= static_cast<std::int64_t>(bytes);
              return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
            },
            .release =
                [this](void* address, std::size_t bytes) {
                  room += static_cast<std::int64_t>(bytes);
                  table.mem_free(reinterpret_cast<std::uintptr_t>(address));
                }};
  }
  abi::CudaTable table = test::simulator_table();
  std::int64_t room;
};

Problem listed(std::int64_t length, std::uint64_t seed) {
  Problem problem = decode(length, Pattern::parse("random(12," + std::to_string(seed) + ",64)"));
  problem.seq_q = length;
  return problem;
}

TEST_CASE("a plan does not fail for memory that only the cache of lists holds") {
  std::int64_t needed = 0;
  {
    const Device device = open_counted();
    needed = device.memory_needed(listed(4000, 1)).device_bytes;
    needed = std::max(needed, device.memory_needed(listed(4000, 2)).device_bytes);
  }
  REQUIRE(needed > 1000);
  Pool pool(needed + needed / 2);
  {
    DeviceOptions options;
    options.allocator = pool.callbacks();
    const Device device = open_counted(options);
    for (int round = 0; round < 3; ++round) {
      CHECK_NOTHROW(device.plan(listed(4000, 1)));
      CHECK_NOTHROW(device.plan(listed(4000, 2)));
    }
    CHECK(device.list_counters().device.evictions >= 4);
    // Lists that plans hold stay, and then there is no more room.
    const Plan plan = device.plan(listed(4000, 1));
    try {
      device.plan(listed(4000, 2));
      FAIL("there is room for one");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kOutOfMemory);
      CHECK_MESSAGE(std::string(error.what()).find("of them in use: lists") != std::string::npos,
                    error.what());
    }
  }
  CHECK(pool.room == needed + needed / 2);
}

TEST_CASE("no plan fails while the library holds a slab that nobody uses") {
  DeviceOptions options;
  options.max_device_bytes = 20000;
  const Device device = open_counted(options);
  std::mt19937 random(7);
  std::vector<Plan> held;
  int failed = 0;
  int with_empty = 0;
  for (int i = 0; i < 300; ++i) {
    const Problem problem = listed(500 + 100 * (random() % 30), random() % 9);
    if (random() % 3 == 0) held.clear();
    try {
      held.push_back(device.plan(problem));
      if (random() % 2 == 0) held.pop_back();
    } catch (const Error& error) {
      REQUIRE(error.code() == ErrorCode::kOutOfMemory);
      ++failed;
      // All slabs contain blocks of plans, including the blocks of the plan that failed.
      const MemoryStatistics now = device.memory_statistics();
      if (held.empty() || now.waiting_bytes > 0) ++with_empty;
      CHECK(now.slabs <= now.blocks);
      CHECK(device.list_counters().device.entries <= static_cast<std::int64_t>(held.size() + 1));
    }
    CHECK(device.memory_statistics().held_bytes <= options.max_device_bytes);
  }
  CHECK(failed > 0);
  CHECK(with_empty == 0);
}

TEST_CASE("trim gives back what nobody uses, and keeps what plans use") {
  const Device device = open_counted();
  const Plan plan = device.plan(listed(2000, 3));
  { const Plan other = device.plan(listed(3000, 4)); }
  DeviceMemory large = device.allocate(std::size_t{30} << 20);
  large = DeviceMemory();
  MemoryStatistics now = device.memory_statistics();
  CHECK(now.waiting_bytes == std::int64_t{30} << 20);
  CHECK(now.peak_used_bytes > std::int64_t{30} << 20);
  CHECK(device.trim() >= std::size_t{30} << 20);
  now = device.memory_statistics();
  CHECK(now.used_bytes >= plan.info().device_bytes);  // including the alignment of its arrays
  CHECK(now.used_bytes < plan.info().device_bytes + 4096);
  CHECK(now.slabs == 1);
  CHECK(device.list_counters().device.entries == 1);
}

TEST_CASE("a selection and a ring that need more workspace than allowed are refused") {
  const Device device = open_counted();
  Problem problem = decode(300, dense());
  problem.seq_q = 300;
  PlanOptions options;
  options.max_workspace_bytes = 1;
  Selection selection;
  selection.max_blocks = 2;
  const std::vector<Device> ranks(2, device);
  const ShardMap shards = make_shards(Sharding::kContiguous, 2, 300, 300);
  const doctest::Contains text("max_workspace_bytes is 1");
  CHECK_THROWS_WITH_AS(device.plan(problem, selection, options), text, Error);
  CHECK_THROWS_WITH_AS(plan_ring(ranks, problem, shards, {options}), text, Error);
  options.max_workspace_bytes = 10 << 20;
  CHECK_NOTHROW(device.plan(problem, selection, options));
  CHECK_NOTHROW(plan_ring(ranks, problem, shards, {options}));
}

TEST_CASE("a limit that is no number of bytes is refused") {
  DeviceOptions options;
  options.max_device_bytes = -5;
  CHECK_THROWS_WITH_AS(open_counted(options), doctest::Contains("max_device_bytes is -5"), Error);
}

}  // namespace
