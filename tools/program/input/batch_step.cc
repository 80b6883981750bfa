#include "program/input/batch_step.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

#include "base/math.h"
#include "base/random.h"

namespace annulus::program {
namespace {

constexpr std::uint16_t kNan = 0x7fff;
constexpr std::uint16_t kUnwritten = 0x7f7f;  // two of them are a NaN as a float too
// Marks an unused entry of a table.
constexpr std::int32_t kUnused = std::numeric_limits<std::int32_t>::min();

std::size_t size(std::int64_t a, std::int64_t b = 1, std::int64_t c = 1) {
  return static_cast<std::size_t>(a * b * c);
}

// The contents of device memory of 16-bit elements, with a mark on the elements that a request
// owns.
class Image {
 public:
  explicit Image(std::size_t elements) : bits_(elements, kNan), owned_(elements, false) {}

  void put(std::int64_t at, const std::uint16_t* values, std::int64_t count) {
    std::copy_n(values, count, bits_.begin() + at);
    std::fill_n(owned_.begin() + at, count, true);
  }
  // Allocates memory for all elements. Copies the owned elements into it, or all elements if `nan`.
  DeviceMemory on(const Device& device, bool nan) const {
    DeviceMemory memory = device.allocate(bits_.size() * 2);
    const auto copy = [&](std::size_t begin, std::size_t end) {
      device.copy_to_device(static_cast<std::uint16_t*>(memory.data()) + begin,
                            bits_.data() + begin, (end - begin) * 2);
    };
    if (nan) {
      copy(0, bits_.size());
      return memory;
    }
    auto begin = owned_.begin();
    while ((begin = std::find(begin, owned_.end(), true)) != owned_.end()) {
      const auto end = std::find(begin, owned_.end(), false);
      copy(size(begin - owned_.begin()), size(end - owned_.begin()));
      begin = end;
    }
    return memory;
  }

 private:
  std::vector<std::uint16_t> bits_;
  std::vector<bool> owned_;
};

// Turns [H, queries, width] into [queries, H, width]. The oracle stores states by head, and a batch
// stores them by row.
std::vector<float> by_row(const std::vector<float>& values, std::int64_t heads,
                          std::int64_t queries, std::int64_t width) {
  std::vector<float> rows(values.size());
  for (std::int64_t i = 0; i < queries; ++i) {
    for (std::int64_t h = 0; h < heads; ++h) {
      std::copy_n(values.begin() + (h * queries + i) * width, width,
                  rows.begin() + (i * heads + h) * width);
    }
  }
  return rows;
}

// The numbers of the pages of each request. Without pages each number is a row, and the rows of a
// request are consecutive.
using Names = std::vector<std::vector<std::int32_t>>;

// All page numbers of a pool, in random order unless `random` is null.
std::vector<std::int32_t> names_of(std::int64_t pages, base::Random* random) {
  std::vector<std::int32_t> names(size(pages));
  std::iota(names.begin(), names.end(), 0);
  for (std::size_t i = names.size(); i > 1 && random != nullptr; --i) {
    std::swap(names[i - 1], names[random->below(static_cast<std::uint32_t>(i))]);
  }
  return names;
}

// Gives request r own[r] page numbers of `names`. With `slab` 0 the requests follow one another,
// after one page that no request owns. Otherwise request r begins at r * slab.
Names deal(const std::vector<std::int64_t>& own, std::int64_t slab,
           const std::vector<std::int32_t>& names) {
  Names dealt;
  std::int64_t at = slab > 0 ? 0 : 1;
  for (const std::int64_t count : own) {
    dealt.emplace_back(names.begin() + at, names.begin() + at + count);
    at += slab > 0 ? slab : count;
  }
  return dealt;
}

// The index in the request of the key at index `number` among the keys that the rank holds.
std::int64_t key_of(const KeyInterleave& of, std::int64_t number) {
  return (number / of.block * of.ranks + of.rank) * of.block + number % of.block;
}

// The strides of K or V in a separate tensor.
BatchStrides strides_of(const BatchProblem& problem, std::int64_t dim, bool heads_first) {
  const std::int64_t row = problem.kv_heads * dim;
  if (problem.page_rows == 0) return {problem.most.keys_of_one * row, row, dim};
  const std::int64_t page = problem.page_rows * row;
  return heads_first ? BatchStrides{page, dim, problem.page_rows * dim}
                     : BatchStrides{page, row, dim};
}

}  // namespace

BatchStep::BatchStep(const Device& device, const BatchPlan& plan,
                     const std::vector<Request>& requests, const Placing& placing)
    : device_(device), plan_(plan), requests_(requests), placing_(placing) {
  const BatchProblem& problem = plan_.problem();
  std::vector<std::int32_t> q_begin, k_length, k_position;
  std::int64_t row = placing.gap;
  for (const Request& request : requests_) {
    tensors_.push_back(tensors_of(problem, request));
    q_begin_.push_back(row);
    q_begin.push_back(static_cast<std::int32_t>(row));
    k_length.push_back(static_cast<std::int32_t>(request.keys));
    k_position.push_back(static_cast<std::int32_t>(request.position));
    row += request.queries;
  }
  q_begin.push_back(static_cast<std::int32_t>(row));
  rows_ = row + placing.gap;
  q_begin.resize(size(problem.most.requests + 1), kUnused);
  k_length.resize(size(problem.most.requests), kUnused);
  k_position.resize(size(problem.most.requests), kUnused);
  metadata_.q_begin = put(q_begin);
  metadata_.k_length = put(k_length);
  metadata_.k_position = put(k_position);
  metadata_.requests = put({static_cast<std::int32_t>(requests_.size())});
  place_keys();
  if (problem.block_keys > 0) place_blocks();
  if (problem.row_limits) place_limits();
  place_rows();
  workspace_ = device_.allocate(plan_.workspace_bytes());
}

void* BatchStep::keep(DeviceMemory memory) {
  memory_.push_back(std::move(memory));
  return memory_.back().data();
}

// Unused entries become numbers that look like pages or lengths, but that no request owns.
const std::int32_t* BatchStep::put(std::vector<std::int32_t> values) {
  DeviceMemory memory = device_.allocate(values.size() * 4);
  if (placing_.nan) {
    constexpr std::int32_t kWrong[] = {-1234567, std::numeric_limits<std::int32_t>::max(), 0, 1};
    base::Random random(placing_.seed + values.size());
    for (std::int32_t& value : values) {
      const std::int32_t wrong = kWrong[random.below(std::size(kWrong))];
      if (value == kUnused) value = wrong;
    }
  }
  auto begin = values.begin();
  const auto used = [](std::int32_t value) { return value != kUnused; };
  while ((begin = std::find_if(begin, values.end(), used)) != values.end()) {
    const auto end = std::find(begin, values.end(), kUnused);
    device_.copy_to_device(static_cast<std::int32_t*>(memory.data()) + (begin - values.begin()),
                           &*begin, size(end - begin) * 4);
    begin = end;
  }
  return static_cast<const std::int32_t*>(keep(std::move(memory)));
}

// The entries of a list are in random order, with unused entries (-1) in between.
void BatchStep::place_blocks() {
  const BatchProblem& problem = plan_.problem();
  base::Random random(placing_.seed + 77);
  std::vector<std::int32_t> entries(
      size(problem.most.requests, problem.kv_heads, problem.max_blocks), kUnused);
  auto list_at = entries.begin();
  for (const Request& request : requests_) {
    for (const std::vector<std::int32_t>& list : blocks_of(problem, request)) {
      const auto list_end = list_at + problem.max_blocks;
      std::fill(std::copy(list.begin(), list.end(), list_at), list_end, -1);
      for (std::int64_t i = problem.max_blocks - 1; i > 0; --i) {
        std::swap(list_at[i], list_at[random.below(static_cast<std::uint32_t>(i + 1))]);
      }
      list_at = list_end;
    }
  }
  metadata_.blocks = put(std::move(entries));
}

// Rows that no request owns have unused entries as ends and bits.
void BatchStep::place_limits() {
  const std::int64_t rows = std::max<std::int64_t>(rows_, 1);
  std::vector<std::int32_t> row_end(size(rows), kUnused);
  std::vector<std::int32_t> words(size(rows, 2), kUnused);
  for (std::size_t r = 0; r < requests_.size(); ++r) {
    const RowLimits limits = limits_of(requests_[r]);
    for (std::size_t row = 0; row < limits.row_end.size(); ++row) {
      const std::size_t at = size(q_begin_[r]) + row;
      row_end[at] = limits.row_end[row];
      const std::uint64_t bits = limits.tree_bits[row];
      words[2 * at] = static_cast<std::int32_t>(bits & 0xffffffffu);
      words[2 * at + 1] = static_cast<std::int32_t>(bits >> 32);
    }
  }
  metadata_.row_end = put(std::move(row_end));
  metadata_.tree_bits = reinterpret_cast<const std::uint64_t*>(put(std::move(words)));
}

void* BatchStep::put_nan(std::size_t bytes) {
  const std::vector<std::uint16_t> values(bytes / 2, kUnwritten);
  DeviceMemory memory = device_.allocate(bytes);
  device_.copy_to_device(memory.data(), values.data(), bytes);
  return keep(std::move(memory));
}

void BatchStep::place_rows() {
  const Placing& placing = placing_;
  const BatchProblem& problem = plan_.problem();
  const std::int64_t rows = std::max<std::int64_t>(rows_, 1);
  const std::int64_t q_row = problem.heads * problem.dim_qk;
  const std::int64_t o_row = problem.heads * problem.dim_v;
  Image q(size(rows, q_row));
  for (std::size_t r = 0; r < requests_.size(); ++r) {
    q.put(q_begin_[r] * q_row, tensors_[r].q.data(), std::ssize(tensors_[r].q));
  }
  operands_.q = keep(q.on(device_, placing.nan));
  operands_.q_strides = {q_row, problem.dim_qk};

  if (problem.carry_in) {
    const auto put_state = [&](const std::vector<float> HostState::*array, std::int64_t width) {
      DeviceMemory memory = device_.allocate(size(rows, problem.heads, width) * 4);
      for (std::size_t r = 0; r < requests_.size(); ++r) {
        const std::vector<float> values =
            by_row(tensors_[r].state_in.*array, problem.heads, requests_[r].queries, width);
        if (values.empty()) continue;
        device_.copy_to_device(
            static_cast<float*>(memory.data()) + q_begin_[r] * problem.heads * width, values.data(),
            values.size() * 4);
      }
      return static_cast<float*>(keep(std::move(memory)));
    };
    operands_.state_in.acc = put_state(&HostState::acc, problem.dim_v);
    operands_.state_in.m = put_state(&HostState::m, 1);
    operands_.state_in.l = put_state(&HostState::l, 1);
  }
  const auto nan_floats = [&](std::int64_t width) {
    return static_cast<float*>(put_nan(size(rows, problem.heads, width) * 4));
  };
  if (problem.carry_out && placing.in_place) {
    operands_.state_out = operands_.state_in;
  } else if (problem.carry_out) {
    operands_.state_out.acc = nan_floats(problem.dim_v);
    operands_.state_out.m = nan_floats(1);
    operands_.state_out.l = nan_floats(1);
  } else {
    operands_.o = put_nan(size(rows, o_row) * 2);
    operands_.o_strides = {o_row, problem.dim_v};
  }
  if (problem.want_lse) {
    operands_.lse = nan_floats(1);
    // Engines use both orders.
    operands_.lse_strides =
        placing.seed % 2 == 0 ? RowStrides{problem.heads, 1} : RowStrides{1, rows};
  }
}

PageTable BatchStep::put_table(const std::vector<std::vector<std::int32_t>>& names,
                               std::int64_t* entries) {
  const BatchProblem& problem = plan_.problem();
  std::vector<std::int32_t> ids, begin = {0};
  if (placing_.listed) {
    for (const auto& of_request : names) {
      ids.insert(ids.end(), of_request.begin(), of_request.end());
      ids.push_back(kUnused);
      begin.push_back(static_cast<std::int32_t>(ids.size()));
    }
    begin.resize(size(problem.most.requests + 1), kUnused);
    ids.push_back(kUnused);
    *entries = std::ssize(ids);
    return {put(ids), put(begin), 0};
  }
  const std::int64_t width = base::ceil_div(problem.most.keys_of_one, problem.page_rows) + 2;
  ids.assign(size(problem.most.requests, width), kUnused);
  for (std::size_t r = 0; r < names.size(); ++r) {
    std::ranges::copy(names[r], ids.begin() + static_cast<std::int64_t>(r) * width);
  }
  return {put(ids), nullptr, width};
}

void BatchStep::place_keys() {
  const BatchProblem& problem = plan_.problem();
  const std::int64_t heads = problem.kv_heads;
  const bool paged = problem.page_rows > 0;
  const bool slabs = placing_.slabs && !paged;
  const std::int64_t page_rows = paged ? problem.page_rows : 1;
  std::vector<std::int64_t> own;
  std::int64_t used = 0;
  for (const Request& request : requests_) {
    own.push_back(base::ceil_div(held_keys(problem.interleave, request.keys), page_rows));
    used += own.back();
  }
  const std::int64_t slab = problem.most.keys_of_one;
  const std::int64_t pages = slabs ? slab * problem.most.requests : used + 3 + used / 4;
  base::Random random(placing_.seed * 31 + 7);
  const bool own_tables = placing_.own_tables && paged;
  const Names k_names = deal(own, slabs ? slab : 0, names_of(pages, paged ? &random : nullptr));
  const Names v_names = own_tables ? deal(own, 0, names_of(pages, &random)) : k_names;

  // If K and V share one tensor, their pages alternate.
  operands_.k_strides = strides_of(problem, problem.dim_qk, placing_.heads_first);
  operands_.v_strides = strides_of(problem, problem.dim_v, placing_.heads_first);
  const bool together = placing_.together && paged && !own_tables;
  const std::int64_t v_begin =
      together ? operands_.k_strides.page : pages * page_rows * heads * problem.dim_qk;
  if (together) {
    operands_.k_strides.page += operands_.v_strides.page;
    operands_.v_strides.page = operands_.k_strides.page;
  }
  Image image(size(pages * page_rows, heads, problem.dim_qk + problem.dim_v));
  const auto put_rows = [&](std::int64_t begin, const Names& names, const BatchStrides& at,
                            std::int64_t dim, std::vector<std::uint16_t> RequestTensors::*of) {
    const std::int64_t step = paged ? at.page : at.row;
    for (std::size_t r = 0; r < requests_.size(); ++r) {
      const std::int64_t held = held_keys(problem.interleave, requests_[r].keys);
      for (std::int64_t number = 0; number < held; ++number) {
        const std::int64_t key = key_of(problem.interleave, number);
        const std::int64_t row =
            begin + names[r][size(number / page_rows)] * step + number % page_rows * at.row;
        for (std::int64_t h = 0; h < heads; ++h) {
          image.put(row + h * at.head, (tensors_[r].*of).data() + (key * heads + h) * dim, dim);
        }
      }
    }
  };
  put_rows(0, k_names, operands_.k_strides, problem.dim_qk, &RequestTensors::k);
  put_rows(v_begin, v_names, operands_.v_strides, problem.dim_v, &RequestTensors::v);
  const auto* const base = static_cast<const std::uint16_t*>(keep(image.on(device_, placing_.nan)));
  operands_.k = base;
  operands_.v = base + v_begin;
  operands_.k_pages = operands_.v_pages = pages;

  if (paged) {
    metadata_.k_pages = put_table(k_names, &metadata_.k_entries);
    if (own_tables) metadata_.v_pages = put_table(v_names, &metadata_.v_entries);
  } else if (!slabs) {
    std::vector<std::int32_t> begin;
    for (const auto& of_request : k_names) {
      begin.push_back(of_request.empty() ? 0 : of_request.front());
    }
    begin.resize(size(problem.most.requests), kUnused);
    metadata_.k_begin = put(begin);
  }
}

void BatchStep::run() const {
  plan_.prepare(nullptr, metadata_, workspace_.data());
  plan_.run(nullptr, operands_, workspace_.data());
}

std::vector<RequestAnswer> BatchStep::answers(bool* untouched) const {
  const BatchProblem& problem = plan_.problem();
  const std::int64_t heads = problem.heads;
  const std::int64_t width = heads * problem.dim_v;
  const auto fetch = [&](const void* data, std::int64_t elements, auto* values) {
    values->resize(size(elements));
    device_.copy_to_host(values->data(), data, values->size() * sizeof((*values)[0]));
  };
  std::vector<std::uint16_t> o;
  std::vector<float> lse, acc, m, l;
  if (problem.carry_out) {
    fetch(operands_.state_out.acc, rows_ * width, &acc);
    fetch(operands_.state_out.m, rows_ * heads, &m);
    fetch(operands_.state_out.l, rows_ * heads, &l);
  } else {
    fetch(operands_.o, rows_ * width, &o);
  }
  if (problem.want_lse) fetch(operands_.lse, rows_ * heads, &lse);

  std::vector<RequestAnswer> answers(requests_.size());
  std::vector<bool> owned(size(rows_), false);
  for (std::size_t r = 0; r < requests_.size(); ++r) {
    RequestAnswer& answer = answers[r];
    const std::int64_t queries = requests_[r].queries;
    if (problem.carry_out) answer.state = HostState::empty(queries * heads, problem.dim_v);
    std::fill_n(owned.begin() + q_begin_[r], queries, true);
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
    answer.o.assign(o.begin() + q_begin_[r] * width, o.begin() + (q_begin_[r] + queries) * width);
  }
  // Rows that no request owns must still hold the value with which they were filled.
  *untouched = true;
  for (std::int64_t row = 0; row < rows_ && !problem.carry_out; ++row) {
    if (owned[size(row)]) continue;
    const auto first = o.begin() + row * width;
    const auto kept = [](std::uint16_t bits) { return bits == kUnwritten; };
    if (!std::all_of(first, first + width, kept)) *untouched = false;
  }
  return answers;
}

}  // namespace annulus::program
