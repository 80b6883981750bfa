#include "autotune/batch_operands.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/fail.h"
#include "base/math.h"
#include "batch/batch_plan.h"

namespace annulus::autotune {
namespace {

using batch::RequestClass;
using batch::StepRequest;

constexpr std::int64_t kTreeKeys = 64;  // the newest keys, which have a bit in tree_bits

// Returns `count` different numbers below `all`, in random order.
std::vector<std::int32_t> drawn(std::int64_t count, std::int64_t all, base::Random& random) {
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(all));
  std::iota(numbers.begin(), numbers.end(), 0);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t other = i + random.below(static_cast<std::uint32_t>(all - i));
    std::swap(numbers[static_cast<std::size_t>(i)], numbers[static_cast<std::size_t>(other)]);
  }
  numbers.resize(static_cast<std::size_t>(count));
  return numbers;
}

// Assigns pages or rows of memory to the keys of each request that this rank holds.
void place_keys(HostStep* step, base::Random& random) {
  const BatchProblem& problem = step->problem;
  const std::int64_t page_rows = std::max<std::int64_t>(problem.page_rows, 1);
  // for each request: its pages, or its rows if there are no pages
  std::vector<std::int64_t> pages;
  for (const StepRequest& request : step->requests) {
    pages.push_back(base::ceil_div(held_keys(problem.interleave, request.keys), page_rows));
  }
  const std::int64_t all = std::accumulate(pages.begin(), pages.end(), std::int64_t{0});
  if (all > std::numeric_limits<std::int32_t>::max()) {
    base::fail(ErrorCode::kUnsupported,
               "the keys of the step take {} {} of K, and their numbers have 31 bits; give a "
               "smaller step",
               all, problem.page_rows > 0 ? "pages" : "rows");
  }
  step->key_rows = std::max<std::int64_t>(all, 1) * page_rows;
  if (problem.page_rows == 0) {
    std::int64_t at = 0;
    for (const std::int64_t rows : pages) {
      step->k_begin.push_back(static_cast<std::int32_t>(at));
      at += rows;
    }
    return;
  }
  step->table_width = std::max<std::int64_t>(*std::ranges::max_element(pages), 1);
  const std::vector<std::int32_t> names = drawn(all, all, random);
  auto next = names.begin();
  for (const std::int64_t count : pages) {
    step->pages.insert(step->pages.end(), next, next + count);
    step->pages.insert(step->pages.end(), static_cast<std::size_t>(step->table_width - count), 0);
    next += count;
  }
}

// Draws lists with the largest number of blocks. The last block of a request is always in its list,
// because queries attend mostly to the newest keys.
void draw_blocks(HostStep* step, base::Random& random) {
  const BatchProblem& problem = step->problem;
  if (problem.block_keys == 0) return;
  for (const StepRequest& request : step->requests) {
    const std::int64_t before = base::ceil_div(request.keys, problem.block_keys) - 1;
    for (std::int64_t head = 0; head < problem.kv_heads; ++head) {
      const std::int64_t others = std::min(before, problem.max_blocks - 1);
      const std::vector<std::int32_t> list = drawn(others, before, random);
      step->blocks.push_back(static_cast<std::int32_t>(before));
      step->blocks.insert(step->blocks.end(), list.begin(), list.end());
      step->blocks.insert(step->blocks.end(),
                          static_cast<std::size_t>(problem.max_blocks - 1 - others), -1);
    }
  }
}

// The newest keys of a request with few queries form a tree of drafts: a query sees its parent,
// which is drawn from the queries before it, and everything that the parent sees. A request with
// many queries, or with fewer keys than the tree needs, sees all keys.
void draw_limits(HostStep* step, bool rows_end_early, base::Random& random) {
  if (!step->problem.row_limits) return;
  for (const StepRequest& request : step->requests) {
    const auto n = request.queries;
    const bool is_tree = n < kTreeKeys && n <= request.keys;
    const std::size_t first = step->tree_bits.size();
    for (std::int64_t row = 0; row < n; ++row) {
      std::uint64_t bits = ~std::uint64_t{0};
      if (is_tree) {
        const std::uint32_t parent = random.below(static_cast<std::uint32_t>(row + 1));
        bits = parent == 0 ? bits << n : step->tree_bits[first + parent - 1];
        bits |= std::uint64_t{1} << (n - 1 - row);
      }
      step->tree_bits.push_back(bits);
      const bool early = rows_end_early && random.below(4) == 0;
      step->row_end.push_back(static_cast<std::int32_t>(
          early ? random.below(static_cast<std::uint32_t>(request.keys + 1)) : request.keys));
    }
  }
}

}  // namespace

std::vector<StepRequest> default_step(const BatchProblem& given, RequestClass requests) {
  const BatchProblem problem = batch::with_bounds(given);
  const BatchBounds& most = problem.most;
  const bool few = requests == RequestClass::kFewQueries;
  const std::int64_t most_few = batch::most_few_queries(problem);
  const bool prompts_too = most.rows_of_one > most_few;
  const std::int64_t max_queries = !few ? most.rows_of_one : prompts_too ? 1 : most_few;
  const std::int64_t count =
      std::min(most.requests, few ? most.rows : std::max<std::int64_t>(most.rows / max_queries, 1));
  const StepRequest one = {
      .queries = std::min(most.rows / count, max_queries),
      .keys = std::clamp<std::int64_t>(most.keys / count, 1, most.keys_of_one)};
  return std::vector<StepRequest>(static_cast<std::size_t>(count), one);
}

std::int64_t HostStep::row_of(std::size_t request, std::int64_t key) const {
  const std::int64_t held = held_keys(problem.interleave, key);
  if (held_keys(problem.interleave, key + 1) == held) return -1;
  if (problem.page_rows == 0) return k_begin[request] + held;
  const auto entry = static_cast<std::size_t>(static_cast<std::int64_t>(request) * table_width +
                                              held / problem.page_rows);
  return pages[entry] * problem.page_rows + held % problem.page_rows;
}

bool HostStep::may_see(std::size_t request, std::int64_t kv_head, std::int64_t query,
                       std::int64_t key) const {
  if (row_of(request, key) < 0) return false;
  if (problem.block_keys > 0) {
    const auto list =
        blocks.begin() +
        (static_cast<std::int64_t>(request) * problem.kv_heads + kv_head) * problem.max_blocks;
    const auto block = static_cast<std::int32_t>(key / problem.block_keys);
    if (std::find(list, list + problem.max_blocks, block) == list + problem.max_blocks) {
      return false;
    }
  }
  if (!problem.row_limits) return true;
  const auto row = static_cast<std::size_t>(q_begin[request] + query);
  const std::int64_t newer = k_length[request] - 1 - key;
  return key < row_end[row] && (newer >= kTreeKeys || (tree_bits[row] >> newer & 1) != 0);
}

HostStep draw_step(const BatchProblem& problem, const std::vector<StepRequest>& requests,
                   const StepDraw& draw) {
  base::Random random(draw.seed);
  HostStep step;
  step.problem = batch::with_bounds(problem);
  step.requests = requests;
  step.q_begin.push_back(0);
  for (const StepRequest& request : requests) {
    step.q_begin.push_back(step.q_begin.back() + static_cast<std::int32_t>(request.queries));
    step.k_length.push_back(static_cast<std::int32_t>(request.keys));
  }
  place_keys(&step, random);
  draw_blocks(&step, random);
  draw_limits(&step, draw.rows_end_early, random);
  const auto numbers = [&](std::int64_t rows, std::int64_t heads, std::int64_t dim) {
    return normal_bytes(random, std::min(rows * heads * dim, draw.max_elements), problem.dtype);
  };
  step.q = numbers(step.rows(), problem.heads, problem.dim_qk);
  step.k = numbers(step.key_rows, problem.kv_heads, problem.dim_qk);
  step.v = numbers(step.key_rows, problem.kv_heads, problem.dim_v);
  if (problem.carry_in) {
    step.state_in = random_state(random, step.rows() * problem.heads, problem.dim_v);
  }
  return step;
}

DeviceStep::DeviceStep(const device::ContextPointer& on, const HostStep& host)
    : rows(on,
           {.rows = host.rows() * host.problem.heads,
            .dim_v = host.problem.dim_v,
            .want_lse = host.problem.want_lse,
            .carry_in = host.problem.carry_in,
            .carry_out = host.problem.carry_out},
           host.state_in) {
  const BatchProblem& problem = host.problem;
  // Uploads an array of the metadata. Returns null if the problem has no such array.
  const auto put = [&]<typename T>(const std::vector<T>& values) -> const T* {
    if (values.empty()) return nullptr;
    arrays.push_back(device::upload(on, std::span(values)));
    return pointer<T>(arrays.back());
  };
  metadata.requests = put(std::vector{static_cast<std::int32_t>(host.requests.size())});
  metadata.q_begin = put(host.q_begin);
  metadata.k_length = put(host.k_length);
  metadata.k_pages = {.ids = put(host.pages), .begin = nullptr, .width = host.table_width};
  metadata.k_begin = put(host.k_begin);
  metadata.blocks = put(host.blocks);
  metadata.row_end = put(host.row_end);
  metadata.tree_bits = put(host.tree_bits);

  const auto tensor = [&](std::int64_t count, std::int64_t heads, std::int64_t dim,
                          const std::vector<std::uint8_t>& from) {
    return repeated(on, static_cast<std::size_t>(count * heads * dim * batch::kElementBytes), from);
  };
  q = tensor(host.rows(), problem.heads, problem.dim_qk, host.q);
  k = tensor(host.key_rows, problem.kv_heads, problem.dim_qk, host.k);
  v = tensor(host.key_rows, problem.kv_heads, problem.dim_v, host.v);
  operands.q = pointer<void>(q);
  operands.k = pointer<void>(k);
  operands.v = pointer<void>(v);
  const auto rows_of = [&](std::int64_t dim) { return RowStrides{problem.heads * dim, dim}; };
  const auto keys_of = [&](std::int64_t dim) {
    const std::int64_t row = problem.kv_heads * dim;
    return BatchStrides{problem.page_rows * row, row, dim};
  };
  operands.q_strides = rows_of(problem.dim_qk);
  operands.k_strides = keys_of(problem.dim_qk);
  operands.v_strides = keys_of(problem.dim_v);
  operands.o = pointer<void>(rows.o);
  operands.o_strides = rows_of(problem.dim_v);
  operands.lse = pointer<float>(rows.lse);
  operands.lse_strides = rows_of(1);
  operands.state_in = rows.state_in;
  operands.state_out = rows.state_out;
  if (problem.page_rows > 0) {
    operands.k_pages = operands.v_pages = host.key_rows / problem.page_rows;
  }
}

}  // namespace annulus::autotune
