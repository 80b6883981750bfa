#ifndef ANNULUS_TESTS_BATCH_PARTIAL_ANSWERS_H_
#define ANNULUS_TESTS_BATCH_PARTIAL_ANSWERS_H_

// Answers over disjoint sets of keys on a device, as states or as the O and LSE of states, with
// sink logits where the problem has them, and what they come to in float64.

#include <string>
#include <vector>

#include "annulus/merge.h"
#include "annulus/problem.h"

namespace annulus::test {

class PartialAnswers {
 public:
  // Draws them. Of a third of the rows of heads some inputs have seen no key, or all; what those
  // hold is NaN.
  PartialAnswers(const Device& device, const MergeProblem& problem, std::uint64_t seed);

  // All contiguous. The answer's memory holds NaN.
  MergeOperands operands() const;
  // State number `input`, [rows x H].
  const HostState& state(int input) const { return states_[static_cast<std::size_t>(input)]; }
  const std::vector<float>& sinks() const { return sinks_; }

  // What is wrong with the merged O and LSE first, or nothing. Waits.
  std::string first_wrong() const;
  std::vector<float> merged_lse() const;
  std::vector<std::uint16_t> merged_o() const;

 private:
  void* put(const void* data, std::size_t bytes);

  Device device_;
  MergeProblem problem_;
  std::vector<HostState> states_;
  std::vector<std::vector<std::uint16_t>> outputs_;
  std::vector<std::vector<float>> lses_;
  std::vector<float> sinks_;
  std::vector<MergeInput> inputs_;
  MergeOperands operands_;
  std::vector<DeviceMemory> memory_;
};

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_BATCH_PARTIAL_ANSWERS_H_
