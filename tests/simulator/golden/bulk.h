#ifndef ANNULUS_TESTS_SIMULATOR_GOLDEN_BULK_H_
#define ANNULUS_TESTS_SIMULATOR_GOLDEN_BULK_H_

// Pieces of the programs about bulk copies: one warp, `room` bytes of shared memory at `room`, an
// mbarrier at `bar`.

#include <string>
#include <vector>

#include "simulator/golden/golden.h"

namespace annulus::golden {

// Everything up to the first instruction that differs. `parameters` follow in and out.
std::string bulk_head(u64 bytes, const std::string& parameters);
// The mbarrier for one arrival, ready for the copies.
std::string bulk_wait_head();
// All wait for phase 0.
std::string bulk_wait();
// The words of `in` go to `room` / those of `room` to `out`.
std::string bulk_fill(u64 bytes);
std::string bulk_dump(u64 bytes);

std::vector<u64> random_bulk_words(std::size_t count, u64 seed);

void add_tensor(Set& set);  // tensor.cc

}  // namespace annulus::golden

#endif  // ANNULUS_TESTS_SIMULATOR_GOLDEN_BULK_H_
