#ifndef ANNULUS_TESTS_FAULTS_FLOWS_H_
#define ANNULUS_TESTS_FAULTS_FLOWS_H_

// Whole public flows, as a user of the library writes them, from opening a device to the values
// that a kernel wrote. Programs make calls fail during these flows.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "annulus/device.h"

namespace annulus::test {

// The answer of a flow, which is compared as a whole.
struct Answer {
  std::vector<std::uint16_t> values;
  // The reasons in the result for parts that did not work, such as dropped candidates. Not
  // compared.
  std::string told;
  bool operator==(const Answer& other) const { return values == other.values; }
};

// Folders in which a flow may keep files.
struct Folders {
  std::string cache;  // kernels and other files of the flow
  std::string tuned;  // empty: tuned results are kept in memory
};

DeviceOptions options_of(const Folders& folders);
Problem small_problem();
// Plans the problem, runs the plan on the same operands in each call, and waits for it.
Answer run_problem(const Device& device, const Problem& problem);

// A flow. Its `make` prepares its objects before anything fails, and returns the function in which
// calls fail.
struct Flow {
  const char* name;
  std::function<std::function<Answer()>(const Folders&)> make;
};
std::vector<Flow> flows();
// The flows with these names, or all flows if `names` is empty.
std::vector<Flow> flows_of(const std::vector<std::string>& names);

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_FAULTS_FLOWS_H_
