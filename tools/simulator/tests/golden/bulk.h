#ifndef ANNULUS_SIMULATOR_TESTS_GOLDEN_BULK_H_
#define ANNULUS_SIMULATOR_TESTS_GOLDEN_BULK_H_

// Parts of the programs for bulk copies: one warp, `room` bytes of shared memory at `room`, an
// mbarrier at `bar`.

#include <string>
#include <vector>

#include "golden/golden.h"

namespace annulus::golden {

// The text of a program up to the first instruction that differs. `parameters` follow in and out.
std::string bulk_head(u64 bytes, const std::string& parameters);
// Initialises the mbarrier for one arrival and makes it known to bulk copies.
std::string bulk_wait_head();
// All lanes wait for phase 0.
std::string bulk_wait();
// Copies the words of `in` to `room`, and those of `room` to `out`.
std::string bulk_fill(u64 bytes);
std::string bulk_dump(u64 bytes);

std::vector<u64> random_bulk_words(std::size_t count, u64 seed);

void add_tensor(Set& set);  // tensor.cc

}  // namespace annulus::golden

#endif  // ANNULUS_SIMULATOR_TESTS_GOLDEN_BULK_H_
