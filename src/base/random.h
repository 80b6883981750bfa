#ifndef ANNULUS_BASE_RANDOM_H_
#define ANNULUS_BASE_RANDOM_H_

// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): computes
// four random words from a counter. The result is the same on every machine and in any order of
// calls.

#include <array>
#include <cstdint>
#include <span>

namespace annulus::base {

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key);

// Writes the first two words, low word first, of each of the counters {counter[0] + i, counter[1],
// ...}, for i from 0 on. Several counters are computed at once.
void philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key,
            std::span<std::uint64_t> out);

// A sequence from philox() with key = seed, for tests, schedules and generated data.
class Random {
 public:
  explicit Random(std::uint64_t seed) : seed_(seed) {}

  std::uint32_t next();
  std::uint32_t below(std::uint32_t bound);  // uniform in [0, bound); Requires: bound > 0
  double uniform();                          // uniform in [0, 1)
  float normal();                            // standard normal, by Box and Muller

 private:
  std::uint64_t seed_;
  std::uint64_t block_ = 0;
  std::array<std::uint32_t, 4> words_{};
  int used_ = 4;
};

}  // namespace annulus::base

#endif  // ANNULUS_BASE_RANDOM_H_
