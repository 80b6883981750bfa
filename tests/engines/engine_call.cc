#include "engines/engine_call.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/math.h"
#include "base/random.h"
#include "support/device.h"

namespace annulus::test {
namespace {

constexpr std::uint16_t kNan = 0x7fff;
constexpr std::int64_t kDim = 64;

}  // namespace

Tensor::Tensor(std::vector<std::int64_t> shape, std::vector<std::size_t> order)
    : strides_(shape.size()) {
  if (order.empty()) {
    order.resize(shape.size());
    std::iota(order.begin(), order.end(), 0u);
  }
  std::int64_t elements = 1;
  for (auto dim = order.rbegin(); dim != order.rend(); ++dim) {
    strides_[*dim] = elements;
    elements *= shape[*dim];
  }
  bits.assign(static_cast<std::size_t>(elements), kNan);
}

std::int64_t Tensor::offset(std::initializer_list<std::int64_t> indices) const {
  std::int64_t sum = 0;
  std::size_t dim = 0;
  for (const std::int64_t index : indices) sum += index * strides_[dim++];
  return sum;
}

bool draft_sees(std::size_t request, std::int64_t row, std::int64_t key) {
  const Request& of = kDrafts[request];
  const std::int64_t first = of.keys - of.queries;
  if (key < first || of.queries == 1) return true;
  std::int64_t draft = row;
  while (draft >= 0 && draft != key - first) draft = kParents[draft];
  return draft >= 0;
}

Score all_scores() {
  return Score::parse(
      "scale(0.2), softcap(5), alibi([0.25, 0.0625, 0.015625, 0.00390625]), "
      "sink_logit([0.5, -1, 2, 0])");
}

EngineCall::EngineCall(std::vector<Request> requests, std::int64_t page_rows, Dtype dtype)
    : device(Device::open(device_name())),
      page_rows_(std::max<std::int64_t>(page_rows, 1)),
      requests_(std::move(requests)) {
  problem.heads = 4;
  problem.kv_heads = 2;
  problem.dim_qk = problem.dim_v = kDim;
  problem.dtype = dtype;
  problem.pattern = causal();
  problem.page_rows = page_rows;
  problem.most = program::bounds_of(requests_);
  for (const Request& request : requests_) tensors_.push_back(tensors_of(problem, request));
  if (page_rows == 0) return;
  std::vector<std::int32_t> free(kPool - 2);
  std::iota(free.begin(), free.end(), 1);
  base::Random random(7);
  for (std::size_t i = free.size(); i > 1; --i) {
    std::swap(free[i - 1], free[random.below(static_cast<std::uint32_t>(i))]);
  }
  auto next = free.begin();
  for (const Request& request : requests_) {
    const std::int64_t own = base::ceil_div(request.keys, page_rows_);
    REQUIRE(free.end() - next >= own);
    pages_.emplace_back(next, next + own);
    next += own;
  }
}

std::int64_t EngineCall::rows() const { return q_begins().back(); }

std::int64_t EngineCall::page(std::size_t request, std::int64_t key) const {
  return pages_[request][static_cast<std::size_t>(key / page_rows_)];
}

void* EngineCall::keep(std::size_t bytes) {
  memory_.push_back(device.allocate(bytes));
  return memory_.back().data();
}

const std::int32_t* EngineCall::put(const std::vector<std::int32_t>& values) {
  return put_as(values);
}

std::uint16_t* EngineCall::put(const Tensor& tensor) { return put_as(tensor.bits); }

std::vector<std::int32_t> EngineCall::begins(
    const std::function<std::int64_t(std::size_t)>& of) const {
  std::vector<std::int32_t> begin = {0};
  for (std::size_t r = 0; r < requests_.size(); ++r) {
    begin.push_back(begin.back() + static_cast<std::int32_t>(of(r)));
  }
  return begin;
}

std::vector<std::int32_t> EngineCall::q_begins() const {
  return begins([&](std::size_t r) { return requests_[r].queries; });
}

std::vector<std::int32_t> EngineCall::lengths() const {
  std::vector<std::int32_t> keys;
  for (const Request& request : requests_) keys.push_back(static_cast<std::int32_t>(request.keys));
  return keys;
}

std::vector<std::int32_t> EngineCall::table(std::int64_t width, std::int32_t padding) const {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(count() * width), padding);
  for (std::size_t r = 0; r < pages_.size(); ++r) {
    REQUIRE(std::ssize(pages_[r]) <= width);
    std::ranges::copy(pages_[r], ids.begin() + static_cast<std::int64_t>(r) * width);
  }
  return ids;
}

void EngineCall::write(Tensor* to, const At& at, std::int64_t heads,
                       const std::vector<std::uint16_t> program::RequestTensors::*of,
                       const std::function<std::int64_t(std::size_t)>& rows) const {
  for (std::size_t r = 0; r < requests_.size(); ++r) {
    for (std::int64_t row = 0; row < rows(r); ++row) {
      for (std::int64_t h = 0; h < heads; ++h) {
        const std::int64_t offset = at(r, row, h);
        if (offset < 0) continue;
        std::copy_n((tensors_[r].*of).begin() + (row * heads + h) * kDim, kDim,
                    to->bits.begin() + offset);
      }
    }
  }
}

void EngineCall::write_k(Tensor* to, const At& at) const {
  write(to, at, problem.kv_heads, &program::RequestTensors::k,
        [&](std::size_t r) { return requests_[r].keys; });
}
void EngineCall::write_v(Tensor* to, const At& at) const {
  write(to, at, problem.kv_heads, &program::RequestTensors::v,
        [&](std::size_t r) { return requests_[r].keys; });
}
void EngineCall::write_q(Tensor* to, const At& at) const {
  write(to, at, problem.heads, &program::RequestTensors::q,
        [&](std::size_t r) { return requests_[r].queries; });
}

EngineCall::At EngineCall::old_only(At at) const {
  return [this, at](std::size_t r, std::int64_t key, std::int64_t head) {
    return key < first_new(r) ? at(r, key, head) : -1;
  };
}

void EngineCall::write_new(Tensor* k, Tensor* v) const {
  const auto at = [&, begin = q_begins()](std::size_t r, std::int64_t key, std::int64_t head) {
    const std::int64_t query = key - first_new(r);
    return query < 0 ? -1 : k->offset({begin[r] + query, head});
  };
  write_k(k, at);
  write_v(v, at);
}

void EngineCall::append(const Tensor& k, const Tensor& v, std::uint16_t* to_k, std::uint16_t* to_v,
                        AppendPlace place, AppendOperands step) {
  AppendProblem of;
  of.place = place;
  of.kv_heads = problem.kv_heads;
  of.dim_qk = of.dim_v = kDim;
  of.page_rows = problem.page_rows;
  of.most = problem.most;
  of.most.rows = std::ssize(k.bits) / k.stride(0);
  step.new_k = put(k);
  step.new_v = put(v);
  step.new_k_strides = step.new_v_strides = {k.stride(0), k.stride(1)};
  step.k = to_k;
  step.v = to_v;
  step.k_strides = operands.k_strides;
  step.v_strides = operands.v_strides;
  step.k_pages = operands.k_pages;
  step.v_pages = operands.v_pages;
  plan_append(device, of).run(nullptr, step);
  operands.k = to_k;
  operands.v = to_v;
}

void EngineCall::expect_o(Tensor tensor, const At& at) {
  o_elements_ = std::ssize(tensor.bits);
  operands.o = put(tensor);
  o_at_ = at;
}

void EngineCall::expect_lse(std::int64_t floats, const At& at) {
  problem.want_lse = true;
  lse_elements_ = floats;
  operands.lse = put_as(std::vector<float>(static_cast<std::size_t>(floats), 12345.0f));
  lse_at_ = at;
}

void EngineCall::check_tree(const std::vector<std::uint64_t>& bits) {
  metadata.tree_bits = put_as(bits);
  problem.row_limits = true;
  const BatchPlan plan = plan_batch(device, problem, options);
  // The oracle gets the pairs that the tree hides as a pattern.
  problem.row_limits = false;
  const Request& drafts = requests_.front();
  const std::int64_t first = drafts.keys - drafts.queries;
  for (std::int64_t row = 0; row < drafts.queries; ++row) {
    for (std::int64_t key = first; key < first + row; ++key) {
      if (draft_sees(0, row, key)) continue;
      problem.pattern =
          problem.pattern & ~(queries(first + row, first + row + 1) & keys(key, key + 1));
    }
  }
  check(plan);
}

ErrorCode EngineCall::refused() const {
  try {
    plan_batch(device, problem, options);
  } catch (const Error& error) {
    return error.code();
  }
  FAIL_CHECK("the plan was made");
  return ErrorCode::kInternal;
}

void EngineCall::check() { check(plan_batch(device, problem, options)); }

void EngineCall::run(const BatchPlan& plan) {
  const std::vector<std::int32_t> begin = q_begins();
  const auto packed = [&](const Tensor& tensor) {
    return [begin, tensor](std::size_t r, std::int64_t query, std::int64_t head) {
      return tensor.offset({begin[r] + query, head});
    };
  };
  const Tensor rows_of_q({std::max<std::int64_t>(rows(), 1), problem.heads, kDim});
  if (metadata.q_begin == nullptr) metadata.q_begin = put(begin);
  if (operands.q == nullptr) {
    Tensor q = rows_of_q;
    write_q(&q, packed(q));
    operands.q = put(q);
    operands.q_strides = {q.stride(0), q.stride(1)};
  }
  if (operands.o == nullptr && !problem.carry_out) {
    expect_o(rows_of_q, packed(rows_of_q));
    operands.o_strides = {rows_of_q.stride(0), rows_of_q.stride(1)};
  }
  const DeviceMemory workspace = device.allocate(plan.workspace_bytes());
  plan.prepare(nullptr, metadata, workspace.data());
  plan.run(nullptr, operands, workspace.data());
  const BatchStatus status = plan.status(workspace.data());
  CHECK_MESSAGE(status.rule == BatchRule::kNone, to_string(status.rule));
}

void EngineCall::check(const BatchPlan& plan) {
  run(plan);
  if (problem.carry_out) return;
  BatchProblem alone = problem;  // the incoming state covers keys of the request too
  alone.carry_in = false;
  check_answers(alone);
}

void EngineCall::check_merged(const BatchProblem& whole, MergeOperands merged) {
  const std::int64_t count = rows(), heads = problem.heads;
  const Tensor o({count, heads, kDim});
  const std::vector<std::int32_t> begin = q_begins();
  expect_o(o, [=](std::size_t r, std::int64_t query, std::int64_t head) {
    return o.offset({begin[r] + query, head});
  });
  expect_lse(count * heads, [=](std::size_t r, std::int64_t query, std::int64_t head) {
    return head * count + begin[r] + query;
  });
  merged.o = operands.o, merged.lse = operands.lse;
  merged.o_strides = {o.stride(0), o.stride(1)};
  merged.lse_strides = {1, count};
  const MergePlan plan = plan_merge(device, {.heads = heads,
                                             .dim_v = kDim,
                                             .dtype = problem.dtype,
                                             .lse_base = problem.lse_base,
                                             .inputs = std::ssize(merged.inputs),
                                             .max_rows = count});
  plan.run(nullptr, merged);
  check_answers(whole);
}

void EngineCall::check_answers(const BatchProblem& whole) {
  std::vector<std::uint16_t> o(static_cast<std::size_t>(o_elements_));
  std::vector<float> lse(static_cast<std::size_t>(lse_elements_));
  device.copy_to_host(o.data(), operands.o, o.size() * 2);
  if (whole.want_lse) device.copy_to_host(lse.data(), operands.lse, lse.size() * 4);
  answers_.assign(requests_.size(), {});
  for (std::size_t r = 0; r < requests_.size(); ++r) {
    const Request& request = requests_[r];
    program::RequestAnswer& answer = answers_[r];
    for (std::int64_t i = 0; i < request.queries; ++i) {
      for (std::int64_t h = 0; h < problem.heads; ++h) {
        const auto first = o.begin() + o_at_(r, i, h);
        answer.o.insert(answer.o.end(), first, first + kDim);
      }
    }
    for (std::int64_t h = 0; h < problem.heads && whole.want_lse; ++h) {
      for (std::int64_t i = 0; i < request.queries; ++i) {
        answer.lse.push_back(lse[static_cast<std::size_t>(lse_at_(r, i, h))]);
      }
    }
    if (request.queries == 0) continue;
    const Comparison made =
        program::compare(whole, request, program::reference(whole, request, tensors_[r]), answer);
    CAPTURE(r);
    CAPTURE(made.first_wrong);
    CHECK(made.within_tolerance);
    CHECK(made.checked_rows == problem.heads * request.queries);
  }
}

}  // namespace annulus::test
