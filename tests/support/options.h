#ifndef ANNULUS_TESTS_SUPPORT_OPTIONS_H_
#define ANNULUS_TESTS_SUPPORT_OPTIONS_H_

// The options on the command line of a test program beyond those of doctest (main.cc).

#include <cstdint>

namespace annulus::test {

struct Options {
  int problems = 0;        // --problems N: random problems to try; 0: the few of the ordinary run
  int orders = 0;          // --orders N: random orders of warps to try; 0: a few
  int length = 0;          // --length N: longest sequence of random problems; 0: a few tiles
  int kills = 0;           // --kills N: processes to kill while they write; 0: a few
  bool record = false;     // --record yes: writes what a test compares with, where it has a record
  std::uint64_t seed = 1;  // --seed S: of whatever is random
};

const Options& options();

// The seed of a test whose random numbers begin at `number` in the ordinary run: another one for
// every --seed, and `number` itself without the option.
inline std::uint64_t seed_of(std::uint64_t number) {
  return number + 1000003 * (options().seed - 1);
}

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_SUPPORT_OPTIONS_H_
