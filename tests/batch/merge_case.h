#ifndef ANNULUS_TESTS_BATCH_MERGE_CASE_H_
#define ANNULUS_TESTS_BATCH_MERGE_CASE_H_

// Inputs of a merge on a device, and what has to be in memory then, computed here in float64. What
// a run has no business to read is never written, and what it has none to write holds a pattern.

#include <cstdint>
#include <string>
#include <vector>

#include "annulus/merge.h"

namespace annulus::test {

struct MergeLayout {
  bool heads_first = false;  // O is [H, rows, Dv], LSE [H, rows]
  bool in_place = false;     // the answer goes over the first input
  bool want_lse = true;
  // What the O of rows without a key hold; else it is never written.
  bool nan_where_empty = false;
  std::uint64_t seed = 0;
};

// The rows of one head of the inputs, and of an answer.
struct MergeRow {
  std::vector<std::vector<std::uint16_t>> o;  // of each input: [Dv]
  std::vector<float> lse;                     // of each input
};

class MergeCase {
 public:
  // Draws the inputs: of a third of the rows of heads some inputs are empty, or all.
  MergeCase(const Device& device, const MergeProblem& problem, const MergeLayout& layout);

  // Row `row` of head `head`, to be changed before upload().
  MergeRow& at(std::int64_t row, std::int64_t head) {
    return rows_[static_cast<std::size_t>(row * problem_.heads + head)];
  }
  // Copies the inputs of the first `rows` rows to the device, and forgets what was written.
  void upload(std::int64_t rows);
  // Those of the case; no number of rows.
  MergeOperands operands() const;
  // Waits, and compares all memory. What is wrong first, or nothing.
  std::string first_wrong() const;
  // The merged LSE and O of a row of a head, as the device has left them.
  float lse(std::int64_t row, std::int64_t head) const;
  std::vector<std::uint16_t> o(std::int64_t row, std::int64_t head) const;

  std::int32_t* put(std::int32_t value);

 private:
  std::string compare(const MergeRow& row, const std::uint16_t* o, float lse) const;

  Device device_;
  MergeProblem problem_;
  MergeLayout layout_;
  std::vector<MergeRow> rows_;  // [rows, H]
  std::int64_t uploaded_ = 0;
  std::vector<MergeInput> inputs_;
  MergeOperands operands_;
  std::size_t o_elements_ = 0, lse_elements_ = 0;
  std::vector<DeviceMemory> memory_;
};

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_BATCH_MERGE_CASE_H_
