#ifndef ANNULUS_TESTS_BATCH_SAME_BITS_H_
#define ANNULUS_TESTS_BATCH_SAME_BITS_H_

// Compares the bits of requests computed alone and in batches. A benchmark uses it too.

#include <cstdint>
#include <string>

#include "annulus/device.h"

namespace annulus::test {

struct SameBits {
  // Answers of requests in a batch, compared with the request computed alone.
  std::int64_t answers = 0;
  std::int64_t differing = 0;  // the answers that differ
  std::string first;           // the first answer that differs
};

// Computes random requests alone and without pages, and then each of them in `rounds` random
// batches. The batches have pages of four sizes at other places, with the page numbers in a table
// or in a list.
SameBits compare_bits(const Device& device, std::int64_t requests, std::int64_t rounds,
                      std::uint64_t seed);

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_BATCH_SAME_BITS_H_
