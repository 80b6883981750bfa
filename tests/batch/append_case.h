#ifndef ANNULUS_TESTS_BATCH_APPEND_CASE_H_
#define ANNULUS_TESTS_BATCH_APPEND_CASE_H_

// A step whose new keys and values are appended on a device, and the expected contents of memory,
// computed here in long double. Rows that a run must not read are never written, and places that it
// must not write contain a pattern.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "annulus/batch.h"

namespace annulus::test {

// Row `row` of page `page`. Without pages, row `page` of the tensor.
struct KeyRow {
  std::int64_t page = 0;
  std::int64_t row = 0;
};

// The expected work of a run for one row of the step.
struct AppendedRow {
  std::int64_t row = 0;
  std::int64_t position = 0;
  bool rotates_q = true;
  std::optional<KeyRow> k;  // the row for its K and V; V gets the same row number if `v` is empty
  std::optional<KeyRow> v = std::nullopt;
};

struct AppendLayout {
  bool heads_first = false;  // [page, Hkv, P, D] instead of [page, P, Hkv, D]
  bool together = false;     // K and V of a page are in one block
  bool in_place = false;     // rotated_q is the same memory as q
  std::uint64_t seed = 0;
};

class AppendCase {
 public:
  // `places` is the number of pages of K and of V, or without pages the number of rows.
  AppendCase(const Device& device, const AppendProblem& problem,
             const std::vector<AppendedRow>& rows, std::int64_t places, const AppendLayout& layout);

  // The operands with all tensors, without slots, step, positions or tables.
  AppendOperands operands() const { return operands_; }
  // Copies numbers to device memory, which this case owns.
  template <typename T>
  T* put(const std::vector<T>& values) {
    memory_.push_back(device_.allocate(std::max<std::size_t>(values.size(), 1) * sizeof(T)));
    device_.copy_to_device(memory_.back().data(), values.data(), values.size() * sizeof(T));
    return static_cast<T*>(memory_.back().data());
  }
  // Adds tables of the cosines and sines of the positions from 0 on. They are the two halves of the
  // rows of one table.
  void give_tables(std::int64_t positions, AppendOperands* operands);

  // Waits, and compares all memory. Returns the first error, or "".
  std::string first_wrong() const;
  // Sets other expected work for the next run, and clears what was written.
  void expect(const std::vector<AppendedRow>& rows);

 private:
  void clear() const;
  // A tensor of rows [rows, heads, dim], or of places, on the device and on the host.
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
  std::vector<float> table_;  // [positions, dims]: cosines, followed by sines
  std::vector<DeviceMemory> memory_;
};

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_BATCH_APPEND_CASE_H_
