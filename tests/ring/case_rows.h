#ifndef ANNULUS_TESTS_RING_CASE_ROWS_H_
#define ANNULUS_TESTS_RING_CASE_ROWS_H_

// Random rings that several processes draw identically, and the answers of their ranks.

#include <bit>
#include <cstdint>
#include <cstring>

#include "annulus/ring.h"
#include "base/random.h"
#include "support/ring_case.h"

namespace annulus::test {

struct RingCase {
  RingCase(std::uint64_t seed, int index, int ranks)
      : whole(random_ring_case(seed, static_cast<std::uint64_t>(index))) {
    base::Random random(seed * 17 + static_cast<std::uint64_t>(index));
    shards = random_shards(random, ranks, whole.problem.seq_q, whole.problem.seq_k);
    options.route = static_cast<Route>(index % 3);
  }

  Case whole;
  ShardMap shards;
  RingOptions options;
};

// Hashes the bits of a rank's rows of O and LSE.
inline std::uint64_t hash_rows(const RingCase& c, const DeviceAnswer& answer, int rank) {
  const Problem& problem = c.whole.problem;
  std::uint64_t hash = 0x9e3779b97f4a7c15;
  const auto mix = [&](std::uint64_t value) { hash = (hash ^ value) * 0x100000001b3; };
  for (const Segment& segment : c.shards.q[static_cast<std::size_t>(rank)]) {
    for (std::int64_t row = segment.start; row < segment.start + segment.length; ++row) {
      for (std::int64_t b = 0; b < problem.batch; ++b) {
        for (std::int64_t head = 0; head < problem.heads; ++head) {
          const auto* const from = answer.o.bits.data() + answer.o.offset(b, row, head);
          for (std::int64_t i = 0; i < problem.dim_v; ++i) mix(from[i]);
          if (answer.lse.empty()) continue;
          const std::int64_t line = b * problem.heads + head;
          mix(std::bit_cast<std::uint32_t>(
              answer.lse[static_cast<std::size_t>(line * problem.seq_q + row)]));
        }
      }
    }
  }
  return hash;
}

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_RING_CASE_ROWS_H_
