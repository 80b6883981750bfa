#ifndef ANNULUS_TESTS_BATCH_PARTIAL_ANSWERS_H_
#define ANNULUS_TESTS_BATCH_PARTIAL_ANSWERS_H_

// Answers over disjoint sets of keys on a device, as states or as O and LSE of states, with sink
// logits if the problem has them. The expected merged answer is computed in float64.

#include <string>
#include <vector>

#include "annulus/merge.h"
#include "annulus/problem.h"

namespace annulus::test {

class PartialAnswers {
 public:
  // Makes random answers. For a third of the (row, head) pairs some inputs have seen no keys, or
  // all inputs. Such inputs contain NaN.
  PartialAnswers(const Device& device, const MergeProblem& problem, std::uint64_t seed);

  // Operands without gaps. The memory of the answer contains NaN.
  MergeOperands operands() const;
  // The state of input `input`, [rows x H].
  const HostState& state(int input) const { return states_[static_cast<std::size_t>(input)]; }
  const std::vector<float>& sinks() const { return sinks_; }

  // Waits. Returns the first error in the merged O and LSE, or "".
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
