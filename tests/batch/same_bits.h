#ifndef ANNULUS_TESTS_BATCH_SAME_BITS_H_
#define ANNULUS_TESTS_BATCH_SAME_BITS_H_

// The bits of requests alone and among others. A benchmark uses it as well.

#include <cstdint>
#include <string>

#include "annulus/device.h"

namespace annulus::test {

struct SameBits {
  std::int64_t answers = 0;    // of requests in a batch, compared with those of the request alone
  std::int64_t differing = 0;  // of those
  std::string first;           // which one differs first
};

// Computes random requests alone and without pages, and then each of them in `rounds` random
// batches: in pages of four sizes, whose numbers are in a table or in a list, and at other places.
SameBits compare_bits(const Device& device, std::int64_t requests, std::int64_t rounds,
                      std::uint64_t seed);

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_BATCH_SAME_BITS_H_
