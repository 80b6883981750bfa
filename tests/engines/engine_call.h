#ifndef ANNULUS_TESTS_ENGINES_ENGINE_CALL_H_
#define ANNULUS_TESTS_ENGINES_ENGINE_CALL_H_

// A step in the tensors and arrays that an engine has, handed to a batch as docs/engines.md says.
// Where an engine's element lies is said by the engine's shape and index (Tensor::offset), where a
// batch looks for it by strides and begins, so that a wrong line of the document is a wrong answer.

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
// outermost first; none: that of the shape.
class Tensor {
 public:
  explicit Tensor(std::vector<std::int64_t> shape, std::vector<std::size_t> order = {});

  // Elements from one index of a dimension to the next.
  std::int64_t stride(std::size_t dim) const { return strides_[dim]; }
  // Of the element at these indices of the first dimensions, and 0 of the others.
  std::int64_t offset(std::initializer_list<std::int64_t> indices) const;

  std::vector<std::uint16_t> bits;

 private:
  std::vector<std::int64_t> strides_;
};

// Requests that decode, and those of a mixed step.
inline const std::vector<Request> kDecoding = {{1, 40, 0, 1}, {1, 17, 0, 2}, {1, 100, 0, 3}};
inline const std::vector<Request> kMixed = {{3, 50, 0, 4}, {1, 17, 0, 5}, {20, 60, 0, 6}};

// A request that verifies a tree of five drafts, and two that decode at other positions. Draft i
// follows draft kParents[i], or the accepted text.
inline const std::vector<Request> kDrafts = {{5, 14, 0, 7}, {1, 5, 0, 8}, {1, 17, 0, 9}};
inline constexpr int kParents[5] = {-1, 0, 0, 1, -1};
// Whether row `row` of a request sees its key: its own drafts as the tree says, all older keys.
bool draft_sees(std::size_t request, std::int64_t row, std::int64_t key);

// All that engines do to scores, in one kernel for all tests: a scale, a soft-cap, slopes of ALiBi
// for 4 heads and sinks.
Score all_scores();

class EngineCall {
 public:
  // Causal, 4 query heads on 2 of K and V, head dim 64, bf16. Q and O are [rows, H, D], and the
  // rows of requests follow one another, until something else is said.
  EngineCall(std::vector<Request> requests, std::int64_t page_rows, Dtype dtype = Dtype::kBfloat16);
  EngineCall(const EngineCall&) = delete;
  EngineCall& operator=(const EngineCall&) = delete;

  // What is handed over.
  BatchProblem problem;
  BatchOptions options;
  BatchMetadata metadata;
  BatchOperands operands;

  const std::vector<Request>& requests() const { return requests_; }
  std::int64_t count() const { return std::ssize(requests_); }
  const program::RequestTensors& tensors(std::size_t request) const { return tensors_[request]; }
  // Of all requests.
  std::int64_t rows() const;
  // The page of a pool of kPool that has this key of the request, and the row in it. Pages 0 and
  // kPool - 1 belong to nobody.
  static constexpr std::int64_t kPool = 40;
  std::int64_t page(std::size_t request, std::int64_t key) const;
  std::int64_t slot(std::int64_t key) const { return key % page_rows_; }
  const std::vector<std::int32_t>& pages(std::size_t request) const { return pages_[request]; }

  // Arrays in device memory, which stay as long as the call.
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

  // Begins of the requests' rows, or of what each has `of` of: [R + 1].
  std::vector<std::int32_t> begins(const std::function<std::int64_t(std::size_t)>& of) const;
  std::vector<std::int32_t> q_begins() const;
  std::vector<std::int32_t> lengths() const;
  // [R, width]: pages, and `padding` behind them.
  std::vector<std::int32_t> table(std::int64_t width, std::int32_t padding) const;

  // Of a step that appends: the keys of the queries, which are a request's last, are new. Their
  // rows in tensors of new K and V, [rows, Hkv, D]; -1 for old keys.
  std::int64_t new_row(std::size_t request, std::int64_t key) const;
  // The flat number of a key's place: page * P + row in it.
  std::int64_t slot_number(std::size_t request, std::int64_t key) const {
    return page(request, key) * page_rows_ + slot(key);
  }

  // Writes the requests' K (V, Q) to the offsets that `at` says for (request, key or query, head);
  // what has a negative one is left out.
  using At = std::function<std::int64_t(std::size_t, std::int64_t, std::int64_t)>;
  void write_k(Tensor* to, const At& at) const;
  void write_v(Tensor* to, const At& at) const;
  void write_q(Tensor* to, const At& at) const;

  // Of a step that appends, where the keys of the queries, a request's last, are new: `at` for the
  // others alone; new K and V, [rows, Hkv, D]; and the slot of each row, then `padding` more of -1.
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
  // Appends `k` and `v` as write_new() has made them to `to_k` and `to_v`, which the call then has
  // for K and V, by what `step` says of places. Strides and pages are those of the call.
  void append(const Tensor& k, const Tensor& v, std::uint16_t* to_k, std::uint16_t* to_v,
              AppendPlace place, AppendOperands step);

  // Where O and LSE are to be found: by (request, query, head).
  void expect_o(Tensor tensor, const At& at);
  void expect_lse(std::int64_t floats, const At& at);

  // Plans, prepares and runs, and compares nothing. Rows of Q and O are made where nobody has made
  // them.
  void run() { run(plan_batch(device, problem, options)); }
  // Plans, prepares and runs, and holds the answer of each request against the oracle. Rows of Q
  // and O are made where nobody has made them.
  void check();
  // The same with a plan that is there. `problem` is what the oracle gets.
  void check(const BatchPlan& plan);
  // Of kDrafts: the same with these BatchMetadata::tree_bits.
  void check_tree(const std::vector<std::uint64_t>& bits);
  // Merges inputs whose strides are those of `merged`, in the base of the problem, to O [rows, H,
  // D] and LSE [H, rows], and holds the answer of each request against the oracle of `whole`.
  void check_merged(const BatchProblem& whole, MergeOperands merged);
  // The answers of the last run.
  const std::vector<program::RequestAnswer>& answers() const { return answers_; }
  // The code of the error that planning ends with.
  ErrorCode refused() const;

  const Device device;

 private:
  std::int64_t first_new(std::size_t request) const {
    return requests_[request].keys - requests_[request].queries;
  }
  void* keep(std::size_t bytes);
  void run(const BatchPlan& plan);
  // Takes answers apart and holds them against the oracle of `whole`.
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
