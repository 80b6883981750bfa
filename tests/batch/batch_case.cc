#include "batch/batch_case.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/half.h"
#include "base/math.h"
#include "base/random.h"
#include "support/random_problem.h"

namespace annulus::test {
namespace {

constexpr std::uint16_t kNan = 0x7fff;
constexpr std::int32_t kGarbage = -1234567;

std::vector<std::uint16_t> normal(std::int64_t rows, std::int64_t heads, std::int64_t dim,
                                  Dtype dtype, base::Random& random) {
  HostTensor tensor = make_tensor(1, rows, heads, dim, Order::kBshd, dtype);
  fill_normal(tensor, dtype, random);
  tensor.bits.resize(static_cast<std::size_t>(rows * heads * dim));
  return tensor.bits;
}

std::size_t size(std::int64_t a, std::int64_t b = 1, std::int64_t c = 1, std::int64_t d = 1) {
  return static_cast<std::size_t>(a * b * c * d);
}

}  // namespace

Tensors tensors_of(const BatchProblem& problem, const Request& request) {
  base::Random random(request.seed * 7919 + 1);
  Tensors made;
  // Keys first and row by row, so that a request with more keys has the same first ones.
  for (std::int64_t key = 0; key < request.keys; ++key) {
    base::Random of_key(request.seed * 1000003 + static_cast<std::uint64_t>(key));
    const auto k = normal(1, problem.kv_heads, problem.dim_qk, problem.dtype, of_key);
    const auto v = normal(1, problem.kv_heads, problem.dim_v, problem.dtype, of_key);
    made.k.insert(made.k.end(), k.begin(), k.end());
    made.v.insert(made.v.end(), v.begin(), v.end());
  }
  made.q = normal(request.queries, problem.heads, problem.dim_qk, problem.dtype, random);
  if (problem.carry_in) {
    const std::int64_t rows = request.queries * problem.heads;
    made.state_in.rows = rows;
    made.state_in.dim_v = problem.dim_v;
    made.state_in.acc.resize(size(rows, problem.dim_v));
    made.state_in.m.resize(size(rows));
    made.state_in.l.resize(size(rows));
    for (float& x : made.state_in.acc) x = random.normal();
    for (std::int64_t row = 0; row < rows; ++row) {
      const bool empty = random.below(4) == 0;
      made.state_in.m[size(row)] = empty ? -INFINITY : random.normal();
      made.state_in.l[size(row)] = empty ? 0.0f : 1.0f + static_cast<float>(random.uniform());
      if (!empty) continue;
      for (std::int64_t d = 0; d < problem.dim_v; ++d) {
        made.state_in.acc[size(row * problem.dim_v + d)] = 0;
      }
    }
  }
  return made;
}

Problem problem_of(const BatchProblem& problem, const Request& request) {
  Problem one;
  one.heads = problem.heads;
  one.kv_heads = problem.kv_heads;
  one.seq_q = request.queries;
  one.seq_k = request.keys;
  one.dim_qk = problem.dim_qk;
  one.dim_v = problem.dim_v;
  one.dtype = problem.dtype;
  one.pattern = problem.pattern;
  one.score = problem.score;
  one.q0 = request.position + request.keys - request.queries;
  one.k0 = request.position;
  one.want_lse = problem.want_lse;
  one.lse_base = problem.lse_base;
  one.carry_in = problem.carry_in;
  one.carry_out = problem.carry_out;
  return one;
}

BatchBounds bounds_of(const std::vector<Request>& requests) {
  BatchBounds most;
  most.requests = std::ssize(requests);
  most.keys_of_one = 1;
  for (const Request& request : requests) {
    most.rows += request.queries;
    most.rows_of_one = std::max(most.rows_of_one, request.queries);
    most.keys_of_one = std::max(most.keys_of_one, request.keys);
    most.keys += request.keys;
  }
  most.rows = std::max<std::int64_t>(most.rows, 1);
  return most;
}

DeviceMemory BatchCase::put(const std::vector<std::int32_t>& values) {
  DeviceMemory memory = device_.allocate(values.size() * 4);
  device_.copy_to_device(memory.data(), values.data(), values.size() * 4);
  return memory;
}

BatchCase::BatchCase(const Device& device, const BatchPlan& plan,
                     const std::vector<Request>& requests, const Placing& placing)
    : device_(device), plan_(plan), requests_(requests) {
  const BatchProblem& problem = plan_.problem();
  std::vector<std::int32_t> q_begin, k_length, k_position;
  std::int64_t row = placing.gap;
  for (const Request& request : requests_) {
    q_begin_.push_back(row);
    q_begin.push_back(static_cast<std::int32_t>(row));
    k_length.push_back(static_cast<std::int32_t>(request.keys));
    k_position.push_back(static_cast<std::int32_t>(request.position));
    row += request.queries;
  }
  q_begin.push_back(static_cast<std::int32_t>(row));
  rows_ = row + placing.gap;
  const std::vector<std::int32_t> count = {static_cast<std::int32_t>(requests_.size())};
  q_begin.resize(static_cast<std::size_t>(problem.most.requests + 1), kGarbage);
  k_length.resize(static_cast<std::size_t>(problem.most.requests), kGarbage);
  k_position.resize(static_cast<std::size_t>(problem.most.requests), kGarbage);
  const auto add = [&](DeviceMemory memory) {
    memory_.push_back(std::move(memory));
    return memory_.back().data();
  };
  metadata_.q_begin = static_cast<const std::int32_t*>(add(put(q_begin)));
  metadata_.k_length = static_cast<const std::int32_t*>(add(put(k_length)));
  metadata_.k_position = static_cast<const std::int32_t*>(add(put(k_position)));
  metadata_.requests = static_cast<const std::int32_t*>(add(put(count)));
  place_keys(placing);

  // Q is written only where it belongs to a request; O is all NaN.
  const std::int64_t q_row = problem.heads * problem.dim_qk;
  const std::int64_t o_row = problem.heads * problem.dim_v;
  DeviceMemory q = device_.allocate(size(std::max<std::int64_t>(rows_, 1), q_row) * 2);
  const std::int64_t states = std::max<std::int64_t>(rows_, 1) * problem.heads;
  DeviceMemory acc, m, l;
  if (problem.carry_in) {
    acc = device_.allocate(size(states, problem.dim_v) * 4);
    m = device_.allocate(size(states) * 4);
    l = device_.allocate(size(states) * 4);
  }
  for (std::size_t r = 0; r < requests_.size(); ++r) {
    const Tensors tensors = tensors_of(problem, requests_[r]);
    const auto begin = static_cast<std::size_t>(q_begin_[r]);
    const auto put_at = [&](const DeviceMemory& memory, std::size_t offset, const auto& values) {
      if (values.empty()) return;
      device_.copy_to_device(static_cast<std::byte*>(memory.data()) + offset, values.data(),
                             values.size() * sizeof(values[0]));
    };
    put_at(q, begin * size(q_row) * 2, tensors.q);
    if (!problem.carry_in) continue;
    // The oracle has states by head, a batch by row.
    const auto turned = [&](const std::vector<float>& values, std::int64_t width) {
      std::vector<float> rows(values.size());
      for (std::int64_t i = 0; i < requests_[r].queries; ++i) {
        for (std::int64_t h = 0; h < problem.heads; ++h) {
          std::copy_n(values.begin() + (h * requests_[r].queries + i) * width, width,
                      rows.begin() + (i * problem.heads + h) * width);
        }
      }
      return rows;
    };
    put_at(acc, begin * size(o_row) * 4, turned(tensors.state_in.acc, problem.dim_v));
    put_at(m, begin * size(problem.heads) * 4, turned(tensors.state_in.m, 1));
    put_at(l, begin * size(problem.heads) * 4, turned(tensors.state_in.l, 1));
  }
  operands_.q = add(std::move(q));
  operands_.q_strides = {q_row, problem.dim_qk};
  if (problem.carry_in) {
    operands_.state_in.acc = static_cast<float*>(add(std::move(acc)));
    operands_.state_in.m = static_cast<float*>(add(std::move(m)));
    operands_.state_in.l = static_cast<float*>(add(std::move(l)));
  }
  const auto filled = [&](std::size_t bytes) {
    const std::vector<std::byte> pattern(bytes, std::byte{0x7f});
    DeviceMemory memory = device_.allocate(bytes);
    device_.copy_to_device(memory.data(), pattern.data(), bytes);
    return add(std::move(memory));
  };
  if (problem.carry_out && placing.in_place) {
    operands_.state_out = operands_.state_in;
  } else if (problem.carry_out) {
    operands_.state_out.acc = static_cast<float*>(filled(size(states, problem.dim_v) * 4));
    operands_.state_out.m = static_cast<float*>(filled(size(states) * 4));
    operands_.state_out.l = static_cast<float*>(filled(size(states) * 4));
  } else {
    operands_.o = filled(size(std::max<std::int64_t>(rows_, 1), o_row) * 2);
    operands_.o_strides = {o_row, problem.dim_v};
  }
  if (problem.want_lse) {
    operands_.lse = static_cast<float*>(filled(size(states) * 4));
    // Both orders are in use.
    operands_.lse_strides = placing.seed % 2 == 0 ? RowStrides{problem.heads, 1}
                                                  : RowStrides{1, std::max<std::int64_t>(rows_, 1)};
  }
  workspace_ = device_.allocate(plan_.workspace_bytes());
}

void BatchCase::place_keys(const Placing& placing) {
  const BatchProblem& problem = plan_.problem();
  const std::int64_t heads = problem.kv_heads;
  const bool paged = problem.page_rows > 0;
  const std::int64_t rows_of_page = paged ? problem.page_rows : 1;
  base::Random random(placing.seed * 31 + 7);
  // Which place each page of each request has; without pages a page is a row, and those of a
  // request follow one another.
  const auto pages_of = [&](const Request& request) {
    return base::ceil_div(request.keys, rows_of_page);
  };
  std::int64_t used = 0;
  for (const Request& request : requests_) used += pages_of(request);
  const std::int64_t slab = problem.most.keys_of_one;
  const std::int64_t pages =
      placing.slabs && !paged ? slab * problem.most.requests : used + 3 + used / 4;
  struct Table {
    std::vector<std::vector<std::int32_t>> of;  // [R]
  };
  const auto draw = [&] {
    Table table;
    std::vector<std::int32_t> free(static_cast<std::size_t>(pages));
    std::iota(free.begin(), free.end(), 0);
    if (paged) {
      for (std::size_t i = free.size(); i > 1; --i) {
        std::swap(free[i - 1], free[random.below(static_cast<std::uint32_t>(i))]);
      }
    }
    auto next = free.begin() + (placing.slabs && !paged ? 0 : 1);
    for (std::size_t r = 0; r < requests_.size(); ++r) {
      if (placing.slabs && !paged) next = free.begin() + static_cast<std::int64_t>(r) * slab;
      table.of.emplace_back(next, next + pages_of(requests_[r]));
      next += pages_of(requests_[r]);
    }
    return table;
  };
  const Table k_table = draw();
  const Table v_table = placing.own_tables && paged ? draw() : k_table;

  // Strides, and memory of which only owned rows are written.
  const auto strides = [&](std::int64_t dim) -> BatchStrides {
    BatchStrides made;
    made.row = placing.heads_first ? dim : heads * dim;
    made.head = placing.heads_first ? rows_of_page * dim : dim;
    made.page = rows_of_page * heads * dim;
    if (!paged) {
      made.row = heads * dim, made.head = dim;
      made.page = slab * heads * dim;
    }
    return made;
  };
  operands_.k_strides = strides(problem.dim_qk);
  operands_.v_strides = strides(problem.dim_v);
  const std::int64_t rows = pages * rows_of_page;
  std::byte* k_base = nullptr;
  std::byte* v_base = nullptr;
  if (placing.together && paged && !placing.own_tables) {
    const std::int64_t page = operands_.k_strides.page + operands_.v_strides.page;
    memory_.push_back(device_.allocate(size(pages, page) * 2));
    k_base = static_cast<std::byte*>(memory_.back().data());
    v_base = k_base + operands_.k_strides.page * 2;
    operands_.k_strides.page = operands_.v_strides.page = page;
  } else {
    memory_.push_back(device_.allocate(size(rows, heads, problem.dim_qk) * 2));
    k_base = static_cast<std::byte*>(memory_.back().data());
    memory_.push_back(device_.allocate(size(rows, heads, problem.dim_v) * 2));
    v_base = static_cast<std::byte*>(memory_.back().data());
  }
  operands_.k = k_base;
  operands_.v = v_base;
  operands_.k_pages = operands_.v_pages = paged ? pages : 0;
  for (std::size_t r = 0; r < requests_.size(); ++r) {
    const Tensors tensors = tensors_of(problem, requests_[r]);
    const auto put_rows = [&](std::byte* base, const Table& table, const BatchStrides& at,
                              const std::vector<std::uint16_t>& values, std::int64_t dim) {
      for (std::int64_t key = 0; key < requests_[r].keys; ++key) {
        const std::int64_t page = table.of[r][size(key / rows_of_page)];
        const std::int64_t first =
            paged ? page * at.page + key % rows_of_page * at.row : page * at.row;
        for (std::int64_t h = 0; h < heads; ++h) {
          device_.copy_to_device(base + (first + h * at.head) * 2,
                                 values.data() + (key * heads + h) * dim, size(dim) * 2);
        }
      }
    };
    put_rows(k_base, k_table, operands_.k_strides, tensors.k, problem.dim_qk);
    put_rows(v_base, v_table, operands_.v_strides, tensors.v, problem.dim_v);
  }

  const auto as_arrays = [&](const Table& table) -> PageTable {
    PageTable made;
    std::vector<std::int32_t> ids, begin;
    if (placing.listed) {
      begin.push_back(0);
      for (const auto& of_request : table.of) {
        ids.insert(ids.end(), of_request.begin(), of_request.end());
        ids.push_back(kGarbage);
        begin.push_back(static_cast<std::int32_t>(ids.size()));
      }
      begin.resize(static_cast<std::size_t>(problem.most.requests + 1), kGarbage);
      ids.push_back(kGarbage);
      memory_.push_back(put(begin));
      made.begin = static_cast<const std::int32_t*>(memory_.back().data());
    } else {
      made.width = base::ceil_div(problem.most.keys_of_one, rows_of_page) + 2;
      ids.assign(size(problem.most.requests, made.width), kGarbage);
      for (std::size_t r = 0; r < table.of.size(); ++r) {
        std::copy(table.of[r].begin(), table.of[r].end(),
                  ids.begin() + static_cast<std::int64_t>(r) * made.width);
      }
    }
    memory_.push_back(put(ids));
    made.ids = static_cast<const std::int32_t*>(memory_.back().data());
    return made;
  };
  if (paged) {
    metadata_.k_pages = as_arrays(k_table);
    if (placing.own_tables) metadata_.v_pages = as_arrays(v_table);
  } else if (!placing.slabs) {
    std::vector<std::int32_t> begin;
    for (const auto& of_request : k_table.of) {
      begin.push_back(of_request.empty() ? 0 : of_request.front());
    }
    begin.resize(static_cast<std::size_t>(problem.most.requests), kGarbage);
    memory_.push_back(put(begin));
    metadata_.k_begin = static_cast<const std::int32_t*>(memory_.back().data());
  }
}

void BatchCase::run() const {
  plan_.prepare(nullptr, metadata_, workspace_.data());
  plan_.run(nullptr, operands_, workspace_.data());
}

std::vector<Answer> BatchCase::answers(bool* untouched) const {
  const BatchProblem& problem = plan_.problem();
  const std::int64_t heads = problem.heads;
  const auto fetch = [&](const void* data, auto* values) {
    device_.copy_to_host(values->data(), data, values->size() * sizeof((*values)[0]));
  };
  std::vector<std::uint16_t> o;
  std::vector<float> lse, acc, m, l;
  if (problem.carry_out) {
    acc.resize(size(rows_, heads, problem.dim_v));
    m.resize(size(rows_, heads));
    l.resize(size(rows_, heads));
    fetch(operands_.state_out.acc, &acc);
    fetch(operands_.state_out.m, &m);
    fetch(operands_.state_out.l, &l);
  } else {
    o.resize(size(rows_, heads, problem.dim_v));
    fetch(operands_.o, &o);
  }
  if (problem.want_lse) {
    lse.resize(size(rows_, heads));
    fetch(operands_.lse, &lse);
  }
  std::vector<Answer> answers(requests_.size());
  std::vector<bool> owned(static_cast<std::size_t>(rows_), false);
  for (std::size_t r = 0; r < requests_.size(); ++r) {
    Answer& answer = answers[r];
    const std::int64_t queries = requests_[r].queries;
    if (problem.carry_out) {
      answer.state.rows = queries * heads;
      answer.state.dim_v = problem.dim_v;
      answer.state.acc.resize(size(queries, heads, problem.dim_v));
      answer.state.m.resize(size(queries, heads));
      answer.state.l.resize(size(queries, heads));
    }
    for (std::int64_t i = 0; i < queries; ++i) owned[size(q_begin_[r] + i)] = true;
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t i = 0; i < queries; ++i) {
        const std::int64_t row = q_begin_[r] + i;
        if (problem.want_lse) {
          answer.lse.push_back(
              lse[size(row * operands_.lse_strides.row + h * operands_.lse_strides.head)]);
        }
        if (!problem.carry_out) continue;
        const std::int64_t to = h * queries + i, from = row * heads + h;
        std::copy_n(acc.begin() + from * problem.dim_v, problem.dim_v,
                    answer.state.acc.begin() + to * problem.dim_v);
        answer.state.m[size(to)] = m[size(from)];
        answer.state.l[size(to)] = l[size(from)];
      }
    }
    if (problem.carry_out) continue;
    const std::int64_t width = heads * problem.dim_v;
    answer.o.assign(o.begin() + q_begin_[r] * width, o.begin() + (q_begin_[r] + queries) * width);
  }
  // Rows of nobody keep what they were filled with.
  for (std::int64_t row = 0; row < rows_ && !problem.carry_out; ++row) {
    if (owned[size(row)]) continue;
    const auto first = o.begin() + row * heads * problem.dim_v;
    const bool kept = std::all_of(first, first + heads * problem.dim_v,
                                  [](std::uint16_t bits) { return bits == 0x7f7f; });
    if (untouched == nullptr) {
      CHECK(kept);
    } else if (!kept) {
      *untouched = false;
    }
  }
  return answers;
}

std::string first_wrong(const BatchProblem& problem, const std::vector<Request>& requests,
                        const std::vector<Answer>& answers) {
  REQUIRE(answers.size() == requests.size());
  for (std::size_t r = 0; r < requests.size(); ++r) {
    if (requests[r].queries == 0) continue;
    const Problem one = problem_of(problem, requests[r]);
    const Tensors tensors = tensors_of(problem, requests[r]);
    HostInputs inputs;
    inputs.q = tensors.q.data();
    inputs.k = tensors.k.data();
    inputs.v = tensors.v.data();
    inputs.q_strides = Strides::bshd(one.seq_q, one.heads, one.dim_qk);
    inputs.k_strides = Strides::bshd(one.seq_k, one.kv_heads, one.dim_qk);
    inputs.v_strides = Strides::bshd(one.seq_k, one.kv_heads, one.dim_v);
    if (problem.carry_in) inputs.state_in = &tensors.state_in;
    HostResult result;
    if (problem.carry_out) {
      result.state = &answers[r].state;
    } else {
      result.o = answers[r].o.data();
      result.o_strides = Strides::bshd(one.seq_q, one.heads, one.dim_v);
    }
    if (problem.want_lse) result.lse = answers[r].lse.data();
    const Comparison made = compare(one, reference(one, inputs), result);
    if (made.within_tolerance && made.checked_rows == one.heads * one.seq_q) continue;
    return fmt::format(
        "request {} of {} queries, {} keys: row {} head {} LSE {} in {} of {} rows: {}", r,
        requests[r].queries, requests[r].keys, made.error_row_max, made.error_o, made.error_lse,
        made.wrong_rows, made.checked_rows, made.first_wrong);
  }
  return {};
}

void check_answers(const BatchProblem& problem, const std::vector<Request>& requests,
                   const std::vector<Answer>& answers, const std::string& what) {
  const std::string wrong = first_wrong(problem, requests, answers);
  if (!wrong.empty()) FAIL_CHECK(what << "\n  " << wrong);
}

}  // namespace annulus::test
