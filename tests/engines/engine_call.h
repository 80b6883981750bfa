#ifndef ANNULUS_TESTS_ENGINES_ENGINE_CALL_H_
#define ANNULUS_TESTS_ENGINES_ENGINE_CALL_H_

// A step in the tensors and arrays of an engine, passed to a batch as docs/engines.md describes.
// The engine's shape and index (Tensor::offset) determine where an engine's element lies. Strides
// and begins determine where a batch reads it. So a wrong line of the document gives a wrong
// answer.

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "annulus/batch.h"
#include "annulus/device.h"
#include "annulus/merge.h"
#include "annulus/types.h"
#include "program/input/request.h"

namespace annulus::test {

using program::Request;

// 16-bit numbers in an engine's shape, all NaN. `order` is the order of the dimensions in memory,
// outermost first. If it is empty, the order is the order of the shape.
class Tensor {
 public:
  explicit Tensor(std::vector<std::int64_t> shape, std::vector<std::size_t> order = {});

  // The number of elements from one index of a dimension to the next.
  std::int64_t stride(std::size_t dim) const { return strides_[dim]; }
  // The offset of the element with these indices in the first dimensions, and 0 in the others.
  std::int64_t offset(std::initializer_list<std::int64_t> indices) const;

  std::vector<std::uint16_t> bits;

 private:
  std::vector<std::int64_t> strides_;
};

// Requests that decode, and the requests of a mixed step.
inline const std::vector<Request> kDecoding = {{1, 40, 0, 1}, {1, 17, 0, 2}, {1, 100, 0, 3}};
inline const std::vector<Request> kMixed = {{3, 50, 0, 4}, {1, 17, 0, 5}, {20, 60, 0, 6}};

// A request that verifies a tree of five drafts, and two requests that decode at other positions.
// Draft i follows draft kParents[i], or the accepted text if that is -1.
inline const std::vector<Request> kDrafts = {{5, 14, 0, 7}, {1, 5, 0, 8}, {1, 17, 0, 9}};
inline constexpr int kParents[5] = {-1, 0, 0, 1, -1};
// Whether row `row` of a request sees the key. It sees all older keys, and drafts as the tree
// states.
bool draft_sees(std::size_t request, std::int64_t row, std::int64_t key);

// All changes of scores that engines make, in one kernel for all tests: a scale, a soft-cap, slopes
// of ALiBi for 4 heads, and sinks.
Score all_scores();

class EngineCall {
 public:
  // Makes a causal problem with 4 query heads on 2 heads of K and V, head dim 64, and bf16. Until
  // they are changed, Q and O are [rows, H, D], and the rows of requests are consecutive.
  EngineCall(std::vector<Request> requests, std::int64_t page_rows, Dtype dtype = Dtype::kBfloat16);
  EngineCall(const EngineCall&) = delete;
  EngineCall& operator=(const EngineCall&) = delete;

  // The arguments of the batch.
  BatchProblem problem;
  BatchOptions options;
  BatchMetadata metadata;
  BatchOperands operands;

  const std::vector<Request>& requests() const { return requests_; }
  std::int64_t count() const { return std::ssize(requests_); }
  const program::RequestTensors& tensors(std::size_t request) const { return tensors_[request]; }
  // The number of rows of all requests.
  std::int64_t rows() const;
  // The page, in a pool of kPool pages, that has this key of the request. slot() is the row in the
  // page. Pages 0 and kPool - 1 belong to no request.
  static constexpr std::int64_t kPool = 40;
  std::int64_t page(std::size_t request, std::int64_t key) const;
  std::int64_t slot(std::int64_t key) const { return key % page_rows_; }
  const std::vector<std::int32_t>& pages(std::size_t request) const { return pages_[request]; }

  // Copies an array to device memory, which stays valid as long as the call.
  const std::int32_t* put(const std::vector<std::int32_t>& values);
  std::uint16_t* put(const Tensor& tensor);
  template <typename T>
  T* room(std::int64_t count) {
    return static_cast<T*>(keep(static_cast<std::size_t>(count) * sizeof(T)));
  }
  template <typename T>
  T* put_as(const std::vector<T>& values) {
    T* const to = room<T>(std::ssize(values));
    device.copy_to_device(to, values.data(), values.size() * sizeof(T));
    return to;
  }

  // The begins of the requests' rows, or of `of(r)` elements for request r: [R + 1].
  std::vector<std::int32_t> begins(const std::function<std::int64_t(std::size_t)>& of) const;
  std::vector<std::int32_t> q_begins() const;
  std::vector<std::int32_t> lengths() const;
  // A table [R, width] of pages, with `padding` after each request's pages.
  std::vector<std::int32_t> table(std::int64_t width, std::int32_t padding) const;

  // For a step that appends. The keys of the queries, which are a request's last keys, are new.
  // Returns their row in tensors of new K and V, [rows, Hkv, D], or -1 for old keys.
  std::int64_t new_row(std::size_t request, std::int64_t key) const;
  // The flat number of a key's place: page * P + the row in the page.
  std::int64_t slot_number(std::size_t request, std::int64_t key) const {
    return page(request, key) * page_rows_ + slot(key);
  }

  // Writes the requests' K (V, Q) to the offsets that `at` returns for (request, key or query,
  // head). An element with a negative offset is left out.
  using At = std::function<std::int64_t(std::size_t, std::int64_t, std::int64_t)>;
  void write_k(Tensor* to, const At& at) const;
  void write_v(Tensor* to, const At& at) const;
  void write_q(Tensor* to, const At& at) const;

  // These are for a step that appends. The last keys of a request are new, namely the keys of its
  // queries. old_only() returns `at` for the other keys only. write_new() writes new K and V,
  // [rows, Hkv, D]. slots() returns the slot of each row, followed by `padding` times -1.
  At old_only(At at) const;
  void write_new(Tensor* k, Tensor* v) const;
  template <typename T>
  std::vector<T> slots(std::int64_t padding = 0) const {
    std::vector<T> made;
    for (std::size_t r = 0; r < requests_.size(); ++r) {
      for (std::int64_t key = first_new(r); key < requests_[r].keys; ++key) {
        made.push_back(static_cast<T>(slot_number(r, key)));
      }
    }
    made.resize(made.size() + static_cast<std::size_t>(padding), T{-1});
    return made;
  }
  // Appends `k` and `v`, as write_new() makes them, to `to_k` and `to_v`, which the call then uses
  // as K and V. `step` gives the places. Strides and pages are those of the call.
  void append(const Tensor& k, const Tensor& v, std::uint16_t* to_k, std::uint16_t* to_v,
              AppendPlace place, AppendOperands step);

  // Sets the place of each expected row of O and of LSE, by (request, query, head).
  void expect_o(Tensor tensor, const At& at);
  void expect_lse(std::int64_t floats, const At& at);

  // Plans, prepares and runs, without comparing. Makes Q and O if they were not made before.
  void run() { run(plan_batch(device, problem, options)); }
  // Plans, prepares and runs, and compares the answer of each request with the oracle. Makes Q and
  // O if they were not made before.
  void check();
  // Does what check() does, with an existing plan. The oracle gets `problem`.
  void check(const BatchPlan& plan);
  // Does what check() does, for kDrafts with these BatchMetadata::tree_bits.
  void check_tree(const std::vector<std::uint64_t>& bits);
  // Merges inputs with the strides of `merged`, in the base of the problem, to O [rows, H, D] and
  // LSE [H, rows]. Compares the answer of each request with the oracle of `whole`.
  void check_merged(const BatchProblem& whole, MergeOperands merged);
  // The answers of the last run.
  const std::vector<program::RequestAnswer>& answers() const { return answers_; }
  // The code of the error that planning throws.
  ErrorCode refused() const;

  const Device device;

 private:
  std::int64_t first_new(std::size_t request) const {
    return requests_[request].keys - requests_[request].queries;
  }
  void* keep(std::size_t bytes);
  void run(const BatchPlan& plan);
  // Reads the answers and compares them with the oracle of `whole`.
  void check_answers(const BatchProblem& whole);
  void write(Tensor* to, const At& at, std::int64_t heads,
             const std::vector<std::uint16_t> program::RequestTensors::*of,
             const std::function<std::int64_t(std::size_t)>& rows) const;

  std::int64_t page_rows_;
  std::vector<Request> requests_;
  std::vector<program::RequestTensors> tensors_;
  std::vector<std::vector<std::int32_t>> pages_;
  std::vector<DeviceMemory> memory_;
  std::int64_t o_elements_ = 0, lse_elements_ = 0;
  At o_at_, lse_at_;
  std::vector<program::RequestAnswer> answers_;
};

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_ENGINES_ENGINE_CALL_H_
