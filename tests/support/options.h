#ifndef ANNULUS_TESTS_SUPPORT_OPTIONS_H_
#define ANNULUS_TESTS_SUPPORT_OPTIONS_H_

// The options of a test program in addition to doctest's (main.cc).

#include <cstdint>

namespace annulus::test {

struct Options {
  int problems = 0;  // --problems N: number of random problems; 0: a few
  int orders = 0;    // --orders N: number of random orders of warps; 0: a few
  int length = 0;    // --length N: longest sequence of random problems; 0: a few tiles
  int kills = 0;     // --kills N: number of processes to kill while they write; 0: a few
  // --record yes: writes the record with which the test compares, if it has one.
  bool record = false;
  std::uint64_t seed = 1;  // --seed S: seed of all random choices
};

const Options& options();

// The seed of a test whose random numbers use the seed `number` by default. Each --seed gives
// another one.
inline std::uint64_t seed_of(std::uint64_t number) {
  return number + 1000003 * (options().seed - 1);
}

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_SUPPORT_OPTIONS_H_
