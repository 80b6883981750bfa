#ifndef ANNULUS_TESTS_SUPPORT_MUTANT_H_
#define ANNULUS_TESTS_SUPPORT_MUTANT_H_

// Kernel templates with one mistake each, made by changing their text. The checked mode, the oracle
// or the bank counter must find the mistake. For a change that is not a mistake, nothing may be
// reported.

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
  std::string device;  // a simulated device
  PlanOptions options;
  Problem problem;
  SimulationOptions simulation = {};  // runs use the seeds 0, 1, ..., or other seeds by --seed
  // The number of seeds; a seed determines when effects become visible: at random moments, early,
  // late.
  std::uint64_t seeds = 3;
  std::uint32_t products = 0;  // abi::SimulatorOptions::products
  bool drawn = false;          // works are drawn from a counter, on options.max_multiprocessors
};

struct Mutant {
  std::string name;
  std::vector<Edit> edits;
  // The kinds of faults, of which any may be reported, or "wrong answer", "bank conflicts" or
  // "nothing".
  std::set<std::string> expected;
  std::set<std::string> blamed = {};  // parts of the source lines that a fault may name
  int variant = 0;                    // a variant of the kernel, whose meaning the test defines
};

// The mutants to try: all of them, or with --problems N a sample of N, drawn by --seed.
std::vector<Mutant> to_try(std::vector<Mutant> all);

// Checks with doctest that every seed has the expected outcome. Returns true if the checked mode
// named a fault for every seed.
bool try_mutant(const Mutant& mutant, const MutantRun& run, base::ThreadPool& pool);

// Makes this check for any run on a device: `is_right` runs the kernels and compares their answers.
// The problem and the options of `run` are not used.
bool try_mutant(const Mutant& mutant, const MutantRun& run,
                const std::function<bool(const Device&)>& is_right);

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_SUPPORT_MUTANT_H_
