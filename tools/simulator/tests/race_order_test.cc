// Tests of what orders operations and what does not, beyond the pairs of race_test.cc: pipelines,
// frees on streams, functions on the host, neighbouring bytes, and programs that run for a long
// time.

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <string>
#include <thread>

#include "racing.h"
#include "simulator/driver/entries/entries.h"

namespace annulus::simulator {
namespace {

using test::kBytes;
using test::Rank;
using test::Ring;
using namespace annulus::abi;
namespace entry = driver::entry;

constexpr std::uint64_t kSeeds = 60;

std::string kind_of(const Rank& rank) {
  const base::Json fault = rank.fault();
  return fault.is_null() ? "" : fault.at("kind").get<std::string>();
}

// Two buffers alternate: stream 0 fills one while stream 1 works on the other. `skipped` leaves out
// one wait: the worker's wait for its data, or the copy's wait for the worker.
enum class Skipped { kNothing, kData, kReuse };
void ping_pong(const Rank& on, Skipped skipped) {
  for (int turn = 0; turn < 6; ++turn) {
    const int half = turn % 2;
    const CUdeviceptr buffer = on.buffers[static_cast<std::size_t>(half)];
    if (turn >= 2 && !(skipped == Skipped::kReuse && turn == 4)) on.wait(0, 2 + half);
    on.in([&] {
      return on.cuda.memcpy_htod_async(buffer, on.locked[static_cast<std::size_t>(half)], kBytes,
                                       on.at(0));
    });
    on.record(half, 0);
    if (!(skipped == Skipped::kData && turn == 3)) on.wait(1, half);
    on.move(on.buffers[2], buffer, 1);
    on.record(2 + half, 1);
  }
  on.synchronize(1);
}

TEST_CASE("double buffering on two streams, right and with one wait left out") {
  for (const bool later : {false, true}) {
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      CAPTURE(seed);
      {
        const Ring ring(seed, later);
        ping_pong(ring.first, Skipped::kNothing);
        INFO(ring.first.fault().dump());
        REQUIRE(kind_of(ring.first).empty());
        REQUIRE(ring.first.first(ring.first.buffers[2]) == 1);
      }
      {
        const Ring ring(seed, later);
        ping_pong(ring.first, Skipped::kData);
        ring.finish();
        REQUIRE(kind_of(ring.first) == "missing wait");
      }
      const Ring ring(seed, later);
      ping_pong(ring.first, Skipped::kReuse);
      ring.finish();
      REQUIRE(kind_of(ring.first) == "early reuse");
    }
  }
}

// Both devices send to each other and work at the same time. `skipped` has the same meaning as
// above.
void exchange(const Ring& ring, Skipped skipped) {
  const std::array<const Rank*, 2> ranks = {&ring.first, &ring.second};
  for (int step = 0; step < 4; ++step) {
    const auto now = static_cast<std::size_t>(step % 2);
    const std::size_t next = 1 - now;
    for (std::size_t self = 0; self < 2; ++self) {
      const Rank& to = *ranks[self];
      const Rank& from = *ranks[1 - self];
      // Stream 0 computes on buffer `now`, stream 1 fetches the peer's into buffer `next`.
      const bool forget_data = skipped == Skipped::kData && step == 2 && self == 1;
      const bool forget_reuse = skipped == Skipped::kReuse && step == 2 && self == 1;
      if (step > 0 && !forget_data) to.wait(0, 0);   // its data has arrived
      if (step > 0) to.wait(1, from.events[0]);      // the peer has the data to send
      if (step > 0 && !forget_reuse) to.wait(1, 1);  // its own kernel no longer uses `next`
      if (step > 0) to.wait(1, from.events[2]);      // the peer's fetch no longer uses it either
      to.move(to.buffers[2], to.buffers[now], 0);
    }
    for (std::size_t self = 0; self < 2; ++self) {
      const Rank& to = *ranks[self];
      const Rank& from = *ranks[1 - self];
      to.in([&] {
        return to.cuda.memcpy_peer_async(to.buffers[next], to.context, from.buffers[now],
                                         from.context, kBytes, to.at(1));
      });
    }
    for (const Rank* rank : ranks) {
      rank->record(1, 0);
      rank->record(0, 1);
      rank->record(2, 1);
    }
  }
  for (const Rank* rank : ranks) rank->synchronize(0);
}

TEST_CASE("two devices exchange buffers, right and with one wait left out") {
  for (const bool later : {false, true}) {
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      CAPTURE(seed);
      {
        const Ring ring(seed, later);
        exchange(ring, Skipped::kNothing);
        ring.finish();
        INFO(ring.first.fault().dump(), ring.second.fault().dump());
        REQUIRE(kind_of(ring.first).empty());
        REQUIRE(kind_of(ring.second).empty());
      }
      {
        const Ring ring(seed, later);
        exchange(ring, Skipped::kData);
        ring.finish();
        REQUIRE(kind_of(ring.second) == "missing wait");
      }
      const Ring ring(seed, later);
      exchange(ring, Skipped::kReuse);
      ring.finish();
      REQUIRE(kind_of(ring.second) == "early reuse");
    }
  }
}

TEST_CASE("two streams write neighbouring numbers of 2 bytes") {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Ring ring(seed, true);
    const Rank& on = ring.first;
    on.put16(on.buffers[0], 2, 5, 0);
    on.put16(on.buffers[0] + 2, 2, 7, 1);
    on.in([&] { return on.cuda.memset_d8_async(on.buffers[0] + 128, 1, 3, on.at(0)); });
    on.in([&] { return on.cuda.memset_d8_async(on.buffers[0] + 131, 2, 5, on.at(1)); });
    ring.finish();
    INFO(on.fault().dump());
    REQUIRE(kind_of(on).empty());
    std::uint32_t word = 0;
    on.in([&] { return on.cuda.memcpy_dtoh(&word, on.buffers[0] + 4, 4); });
    REQUIRE(word == 0x70005);
  }
}

TEST_CASE("streams may read together, and count together") {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Ring ring(seed, true);
    const Rank& on = ring.first;
    for (int stream = 0; stream < 3; ++stream) {
      on.move(on.buffers[static_cast<std::size_t>(1 + stream)], on.buffers[0], stream);
    }
    ring.finish();
    for (int stream = 0; stream < 3; ++stream) on.count(on.buffers[0], stream);
    ring.finish();
    REQUIRE(kind_of(on).empty());
    // An operation that overwrites data has to wait for every reader.
    for (int stream = 0; stream < 2; ++stream) {
      on.move(on.buffers[static_cast<std::size_t>(1 + stream)], on.buffers[0], stream);
      on.record(stream, stream);
    }
    on.wait(2, static_cast<int>(seed % 2));
    on.fill(on.buffers[0], 0, 2);
    ring.finish();
    REQUIRE(kind_of(on) == "early reuse");
  }
}

TEST_CASE("memory of a stream is used behind its allocation and in front of its end") {
  enum class Case { kRight, kBeforeAllocation, kFreedUnderWork, kUsedAfterwards };
  for (const Case which :
       {Case::kRight, Case::kBeforeAllocation, Case::kFreedUnderWork, Case::kUsedAfterwards}) {
    for (const bool later : {false, true}) {
      for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
        const Ring ring(seed, later);
        const Rank& on = ring.first;
        CUdeviceptr memory = 0;
        REQUIRE(on.in([&] { return entry::mem_alloc_async(&memory, kBytes, on.at(0)); }) ==
                kCudaSuccess);
        on.record(0, 0);
        if (which != Case::kBeforeAllocation) on.wait(1, 0);
        on.fill(memory, 1, 1);
        on.record(1, 1);
        if (which != Case::kFreedUnderWork) on.wait(0, 1);
        on.in([&] { return entry::mem_free_async(memory, on.at(0)); });
        if (which == Case::kUsedAfterwards) {
          on.in([&] { return entry::mem_alloc_async(&memory, kBytes, on.at(0)); });
          on.in([&] { return entry::mem_free_async(memory, on.at(0)); });
          on.scale(memory, 2, 0);
        }
        ring.finish();
        INFO("case ", static_cast<int>(which), ", seed ", seed, ": ", on.fault().dump());
        const std::string kind = kind_of(on);
        if (which == Case::kRight) REQUIRE(kind.empty());
        if (which == Case::kBeforeAllocation) REQUIRE(kind == "unordered writes");
        if (which == Case::kFreedUnderWork) REQUIRE(kind == "freed in use");
        if (which == Case::kUsedAfterwards) REQUIRE(kind == "out of bounds");
      }
    }
  }
}

TEST_CASE("a function on the host tells the host that all before it has ended") {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Ring ring(seed, true);
    const Rank& on = ring.first;
    std::atomic<bool> told{false};
    on.scale(on.buffers[0], 2, 0);
    on.in([&] {
      return entry::launch_host_func(
          on.at(0), [](void* flag) { *static_cast<std::atomic<bool>*>(flag) = true; }, &told);
    });
    while (!told) on.in([&] { return on.cuda.stream_query(on.at(0)); });
    on.scale(on.buffers[0], 3, 1);
    on.synchronize(1);
    REQUIRE(kind_of(on).empty());
    REQUIRE(on.first(on.buffers[0]) == 6);
  }
}

TEST_CASE("a synchronous copy between contexts comes after all and before all") {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Ring ring(seed, true);
    const Rank& from = ring.first;
    const Rank& to = ring.second;
    from.scale(from.buffers[0], 5, 0);
    to.move(to.buffers[1], to.buffers[0], 1);
    REQUIRE(from.in([&] {
      return entry::memcpy_peer(to.buffers[0], to.context, from.buffers[0], from.context, kBytes);
    }) == kCudaSuccess);
    from.scale(from.buffers[0], 2, 1);
    to.scale(to.buffers[0], 3, 0);
    ring.finish();
    REQUIRE(kind_of(from).empty());
    REQUIRE(kind_of(to).empty());
    REQUIRE(to.first(to.buffers[0]) == 15);
  }
}

TEST_CASE("a blocking stream that is gone still comes before the default stream") {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Ring ring(seed, true);
    const Rank& on = ring.first;
    CUstream blocking = nullptr;
    on.in([&] { return on.cuda.stream_create(&blocking, 0); });
    on.in([&] { return on.cuda.memset_d32_async(on.buffers[0], 0x40a00000, 64, blocking); });
    on.in([&] { return on.cuda.stream_destroy(blocking); });
    REQUIRE(on.first(on.buffers[0]) == 5);
    REQUIRE(kind_of(on).empty());
  }
}

TEST_CASE("to wait for a blocking stream is not to wait for the default stream") {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Ring ring(seed, true);
    const Rank& on = ring.first;
    CUstream blocking = nullptr;
    on.in([&] { return on.cuda.stream_create(&blocking, 0); });
    on.fill(on.buffers[0], 0, -1);
    on.in([&] { return on.cuda.stream_synchronize(blocking); });
    on.move(on.buffers[1], on.buffers[0], 0);
    ring.finish();
    REQUIRE(kind_of(on) == "missing wait");
  }
}

TEST_CASE("other threads may wait and submit") {
  const Ring ring(9, true);
  const Rank& on = ring.first;
  for (int turn = 0; turn < 20; ++turn) {
    std::thread([&] {
      on.scale(on.buffers[0], 2, turn % 3);
      on.synchronize(turn % 3);
    }).join();
  }
  REQUIRE(kind_of(on).empty());
  REQUIRE(on.first(on.buffers[0]) == 1048576);
}

TEST_CASE("threads that share nothing do not disturb each other") {
  const CudaTable cuda = make_cuda_table();
  std::array<std::unique_ptr<Rank>, 3> ranks;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    ranks[i] = std::make_unique<Rank>(cuda, static_cast<int>(i), Ring::options(i, true));
  }
  std::array<std::thread, 3> threads;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    threads[i] = std::thread([&rank = *ranks[i]] { ping_pong(rank, Skipped::kNothing); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& rank : ranks) REQUIRE(kind_of(*rank).empty());
}

TEST_CASE("a program that never waits goes on, and its latest races are found") {
  const Ring ring(1, false);
  const Rank& on = ring.first;
  for (int i = 0; i < 20000; ++i) {
    const int stream = i % 2;
    on.put16(on.buffers[static_cast<std::size_t>(stream)], 1, 7, stream);
    if (i % 4 == 0) on.fill(on.buffers[static_cast<std::size_t>(2 + stream)], 1, stream);
  }
  INFO(on.fault().dump());
  REQUIRE(kind_of(on).empty());
  on.put16(on.buffers[0], 1, 7, 1);
  ring.finish();
  REQUIRE(kind_of(on) == "unordered writes");
}

}  // namespace
}  // namespace annulus::simulator
