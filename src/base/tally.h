#ifndef ANNULUS_BASE_TALLY_H_
#define ANNULUS_BASE_TALLY_H_

// Numbers that a device counts about its own work: the counted lines of annulus/metrics.def.
// Threads count in separate stripes. Runs count too, and with one stripe concurrent threads would
// contend for one cache line.
//
//   tally.add(Count::runs);
//   tally.raise(Count::longest_compile_micros, micros);

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/of_thread.h"

namespace annulus::base {

// The counted metrics, with their names in annulus/metrics.def.
enum class Count : unsigned {
#define METRIC(name, kind, meaning)
#define COUNTED_METRIC(name, kind, meaning) name,
#include "annulus/metrics.def"
};
constexpr std::size_t kCounts = 0
#define METRIC(name, kind, meaning)
#define COUNTED_METRIC(name, kind, meaning) +1
#include "annulus/metrics.def"
    ;

class Tally {
 public:
  void add(Count count, std::int64_t number = 1) noexcept {
    stripes_[stripe()].numbers[static_cast<std::size_t>(count)].fetch_add(
        number, std::memory_order_relaxed);
  }
  // Keeps the largest number of all calls.
  void raise(Count count, std::int64_t number) noexcept {
    std::atomic<std::int64_t>& largest = stripes_[0].numbers[static_cast<std::size_t>(count)];
    std::int64_t before = largest.load(std::memory_order_relaxed);
    while (before < number && !largest.compare_exchange_weak(before, number)) {
    }
  }
  // The sum of all calls of add(), or the largest number of raise().
  std::int64_t total(Count count) const noexcept {
    std::int64_t sum = 0;
    for (const Stripe& each : stripes_) {
      sum += each.numbers[static_cast<std::size_t>(count)].load(std::memory_order_relaxed);
    }
    return sum;
  }

 private:
  static constexpr std::size_t kStripes = 16;
  struct alignas(64) Stripe {
    std::array<std::atomic<std::int64_t>, kCounts> numbers = {};
  };

  // Threads get the stripes in turn.
  static std::size_t stripe() noexcept {
    static std::atomic<std::size_t> next{0};
    ANNULUS_THREAD_LOCAL const std::size_t mine =
        next.fetch_add(1, std::memory_order_relaxed) % kStripes;
    return mine;
  }

  std::array<Stripe, kStripes> stripes_ = {};
};

}  // namespace annulus::base

#endif  // ANNULUS_BASE_TALLY_H_
