#ifndef ANNULUS_TESTS_BATCH_MERGE_CASE_H_
#define ANNULUS_TESTS_BATCH_MERGE_CASE_H_

// The inputs of a merge on a device, and the expected contents of memory, computed here in float64.
// Memory that a run must not read is never written, and memory that it must not write contains a
// pattern.

#include <cstdint>
#include <string>
#include <vector>

#include "annulus/merge.h"

namespace annulus::test {

struct MergeLayout {
  bool heads_first = false;  // O is [H, rows, Dv], LSE [H, rows]
  bool in_place = false;     // the answer overwrites the first input
  bool want_lse = true;
  // If true, O of rows without keys is NaN. If false, it is never written.
  bool nan_where_empty = false;
  std::uint64_t seed = 0;
};

// The rows of one head in the inputs.
struct MergeRow {
  std::vector<std::vector<std::uint16_t>> o;  // [Dv] for each input
  std::vector<float> lse;                     // one number for each input
};

class MergeCase {
 public:
  // Makes random inputs. For a third of the (row, head) pairs some inputs are empty, or all.
  MergeCase(const Device& device, const MergeProblem& problem, const MergeLayout& layout);

  // Row `row` of head `head`. It may be changed before upload().
  MergeRow& at(std::int64_t row, std::int64_t head) {
    return rows_[static_cast<std::size_t>(row * problem_.heads + head)];
  }
  // Copies the inputs of the first `rows` rows to the device, and clears what was written.
  void upload(std::int64_t rows);
  // The operands of the case, without a number of rows.
  MergeOperands operands() const;
  // Waits, and compares all memory. Returns the first error, or "".
  std::string first_wrong() const;
  // The merged LSE and O of a row of a head, as they are on the device.
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
