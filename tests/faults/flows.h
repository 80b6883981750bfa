#ifndef ANNULUS_TESTS_FAULTS_FLOWS_H_
#define ANNULUS_TESTS_FAULTS_FLOWS_H_

// Whole public flows, as an embedder writes them, for programs that make something fail meanwhile:
// from opening a device to the values that a kernel wrote.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "annulus/device.h"

namespace annulus::test {

// What a flow gave, compared as a whole.
struct Answer {
  std::vector<std::uint16_t> values;
  // What the result itself says did not work: why candidates were dropped.
  std::string told;
  bool operator==(const Answer& other) const { return values == other.values; }
};

// Where a flow may keep files.
struct Folders {
  std::string cache;  // of kernels; its other files are those of the flow
  std::string tuned;  // empty: tuned results are kept in memory
};

DeviceOptions options_of(const Folders& folders);
Problem small_problem();
// Plans the problem, runs the plan on operands that are the same in each call and waits for it.
Answer run_problem(const Device& device, const Problem& problem);

// A flow makes what it works on in `make`, which comes before anything fails.
struct Flow {
  const char* name;
  std::function<std::function<Answer()>(const Folders&)> make;
};
std::vector<Flow> flows();
// Those of `names`, all where it is empty.
std::vector<Flow> flows_of(const std::vector<std::string>& names);

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_FAULTS_FLOWS_H_
