#ifndef ANNULUS_TESTS_BATCH_APPEND_CASE_H_
#define ANNULUS_TESTS_BATCH_APPEND_CASE_H_

// A step whose new keys and values are appended on a device, and what has to be in memory then,
// computed here in long double. Rows that a run has no business to read are never written, and
// places that it has none to write hold a pattern.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "annulus/batch.h"

namespace annulus::test {

// Row `row` of page `page`; without pages, row `page` of the tensor.
struct KeyRow {
  std::int64_t page = 0;
  std::int64_t row = 0;
};

// What a run has to do with a row of the step.
struct AppendedRow {
  std::int64_t row = 0;
  std::int64_t position = 0;
  bool rotates_q = true;
  std::optional<KeyRow> k;  // where its K and V go; V has K's place where it has none of its own
  std::optional<KeyRow> v = std::nullopt;
};

struct AppendLayout {
  bool heads_first = false;  // [page, Hkv, P, D] instead of [page, P, Hkv, D]
  bool together = false;     // K and V of a page in one block
  bool in_place = false;     // rotated_q is q
  std::uint64_t seed = 0;
};

class AppendCase {
 public:
  // `places` are the pages that K and V have, or without pages their rows.
  AppendCase(const Device& device, const AppendProblem& problem,
             const std::vector<AppendedRow>& rows, std::int64_t places, const AppendLayout& layout);

  // All of the tensors; no slots, step, positions or tables.
  AppendOperands operands() const { return operands_; }
  // Numbers in device memory, which this case owns.
  template <typename T>
  T* put(const std::vector<T>& values) {
    memory_.push_back(device_.allocate(std::max<std::size_t>(values.size(), 1) * sizeof(T)));
    device_.copy_to_device(memory_.back().data(), values.data(), values.size() * sizeof(T));
    return static_cast<T*>(memory_.back().data());
  }
  // Tables of the cosines and sines of positions from 0 on, halves of the rows of one table.
  void give_tables(std::int64_t positions, AppendOperands* operands);

  // Waits, and compares all memory. What is wrong first, or nothing.
  std::string first_wrong() const;
  // The next run has other things to do with rows of those that the case was made with. Forgets
  // what was written.
  void expect(const std::vector<AppendedRow>& rows);

 private:
  void clear() const;
  // A tensor of rows [rows, heads, dim] or of places, on the device and here.
  struct Tensor {
    std::vector<std::uint16_t> bits;
    void* data = nullptr;
  };
  Tensor make(std::int64_t rows, std::int64_t heads, std::int64_t dim, const RowStrides& strides,
              const std::vector<std::int64_t>& written, std::uint64_t seed);
  std::string compare_head(const std::uint16_t* got, const std::uint16_t* given, std::int64_t dim,
                           const AppendedRow* rotated) const;
  long double angle(std::int64_t pair, std::int64_t position) const;

  Device device_;
  AppendProblem problem_;
  std::vector<AppendedRow> rows_;
  AppendOperands operands_;
  Tensor q_, rotated_q_, new_k_, new_v_, k_, v_;
  std::vector<float> table_;  // [positions, dims]: cosines, then sines
  std::vector<DeviceMemory> memory_;
};

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_BATCH_APPEND_CASE_H_
