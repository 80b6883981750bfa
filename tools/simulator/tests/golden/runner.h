#ifndef ANNULUS_SIMULATOR_TESTS_GOLDEN_RUNNER_H_
#define ANNULUS_SIMULATOR_TESTS_GOLDEN_RUNNER_H_

// Runs golden programs on any device, simulated or real, and compares the words that they wrote
// with their definitions.

#include <string>
#include <vector>

#include "device/context.h"
#include "golden/golden.h"

namespace annulus::golden {

struct Mismatch {
  std::size_t index = 0;  // index of the expected Word
  std::uint64_t got = 0;
  std::uint64_t expected = 0;
  std::string text;  // both values as text, with the operands of a form
};

struct Outcome {
  std::vector<std::uint64_t> out;  // empty if the device refused the program
  std::string error;               // the reason of the refusal
  std::size_t mismatches = 0;
  std::vector<Mismatch> first;  // up to four of them
  bool good() const { return error.empty() && mismatches == 0; }
};

// Whether two devices may both be right with different values of this word.
bool may_vary(const Word& word);

// The module's text: the text in `golden`, or the file in `ptx_folder`. The entry is "golden".
std::string program_text(const Golden& golden, const std::string& ptx_folder);

// Whether the device can run the program.
bool runs_on(const Golden& golden, const device::Context& context);

// Runs a program. Errors in the program or on the device are in Outcome::error and never thrown.
Outcome run(const device::ContextPointer& context, const Golden& golden,
            const std::string& ptx_folder);

// Opens "sim:sm_80", "sim:sm_90a:1", "cuda:0". Throws Error if there is no such device.
device::ContextPointer open_device(const std::string& name);

}  // namespace annulus::golden

#endif  // ANNULUS_SIMULATOR_TESTS_GOLDEN_RUNNER_H_
