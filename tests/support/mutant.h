#ifndef ANNULUS_TESTS_SUPPORT_MUTANT_H_
#define ANNULUS_TESTS_SUPPORT_MUTANT_H_

// Kernel templates with one mistake each, made by changing their text. The checked mode, the oracle
// or the bank counter must find it. For changes that are no mistake nothing may be reported.

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "annulus/device.h"
#include "base/thread_pool.h"

namespace annulus::test {

struct Edit {
  std::string file;  // below templates/
  std::string from;  // a text that occurs there exactly once, apart from white space
  std::string to;
};

// The device, the options and the problem with which a mutant is run.
struct MutantRun {
  std::string device;  // a simulated one
  PlanOptions options;
  Problem problem;
  SimulationOptions simulation = {};  // with the seeds 0, 1, ..., or others by --seed
  std::uint64_t seeds = 3;     // of which effects land at drawn moments, early, late, and so on
  std::uint32_t products = 0;  // abi::SimulatorOptions::products
  bool drawn = false;          // works are drawn from a counter, on options.max_multiprocessors
};

struct Mutant {
  std::string name;
  std::vector<Edit> edits;
  // The kinds of faults of which any may be reported, or "wrong answer", "bank conflicts",
  // "nothing".
  std::set<std::string> expected;
  std::set<std::string> blamed = {};  // pieces of the lines that a fault may name
  int variant = 0;                    // of the kernel; the test defines what it means
};

// The mutants to try: all, or with --problems N that many, drawn by --seed.
std::vector<Mutant> to_try(std::vector<Mutant> all);

// Checks by doctest that every seed has the expected outcome. True where the checked mode named a
// fault for every seed.
bool try_mutant(const Mutant& mutant, const MutantRun& run, base::ThreadPool& pool);

// The same of any run on a device: `is_right` runs the kernels and compares their answers. What is
// fixed is taken of `run`, but for its problem and options.
bool try_mutant(const Mutant& mutant, const MutantRun& run,
                const std::function<bool(const Device&)>& is_right);

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_SUPPORT_MUTANT_H_
