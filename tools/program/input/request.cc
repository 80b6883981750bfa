#include "program/input/request.h"

#include <algorithm>
#include <cmath>
#include <regex>
#include <string>

#include "base/half.h"
#include "base/math.h"
#include "base/random.h"

namespace annulus::program {
namespace {

void add_normal(std::int64_t count, Dtype dtype, base::Random& random,
                std::vector<std::uint16_t>* to) {
  for (std::int64_t i = 0; i < count; ++i) {
    to->push_back(base::from_float(dtype, random.normal()));
  }
}

// A random state, as a run over other keys may have left it. Some rows have seen no keys.
HostState random_state(std::int64_t rows, std::int64_t dim_v, base::Random& random) {
  HostState state = HostState::empty(rows, dim_v);
  for (float& x : state.acc) x = random.normal();
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto at = static_cast<std::size_t>(row);
    if (random.below(4) == 0) {
      std::fill_n(state.acc.begin() + row * dim_v, dim_v, 0.0f);
      continue;
    }
    state.m[at] = random.normal();
    state.l[at] = 1.0f + static_cast<float>(random.uniform());
  }
  return state;
}

}  // namespace

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

std::vector<std::vector<std::int32_t>> blocks_of(const BatchProblem& problem,
                                                 const Request& request) {
  const std::int64_t count = base::ceil_div(request.keys, problem.block_keys);
  std::vector<std::vector<std::int32_t>> lists(static_cast<std::size_t>(problem.kv_heads));
  base::Random random(request.seed * 6101 + static_cast<std::uint64_t>(request.keys));
  for (std::vector<std::int32_t>& list : lists) {
    const std::uint32_t share = 1 + random.below(4);
    for (std::int64_t block = count - 1; block >= 0; --block) {
      const bool is_last = block == count - 1;
      if (random.below(is_last ? 8 : 4) < (is_last ? 7 : share) &&
          std::ssize(list) < problem.max_blocks) {
        list.push_back(static_cast<std::int32_t>(block));
      }
    }
    std::ranges::reverse(list);
  }
  return lists;
}

namespace {

// The keys that the lists of blocks show to a request, as a pattern.
Pattern listed_keys(const BatchProblem& problem, const Request& request) {
  std::vector<Pattern> of_heads;
  for (const std::vector<std::int32_t>& list : blocks_of(problem, request)) {
    Pattern seen = keys(0, 0);
    for (const std::int32_t block : list) {
      const std::int64_t first = request.position + block * problem.block_keys;
      seen = seen | keys(first, first + problem.block_keys);
    }
    of_heads.push_back(std::move(seen));
  }
  if (of_heads.size() == 1) return of_heads.front();
  return head_groups(problem.heads / problem.kv_heads, of_heads);
}

}  // namespace

RowLimits limits_of(const Request& request) {
  constexpr std::int64_t kTreeRows = 12;
  RowLimits limits;
  base::Random random(request.seed * 4241 + static_cast<std::uint64_t>(request.queries));
  const bool is_tree = request.queries <= kTreeRows && request.queries <= request.keys;
  const std::int64_t before = request.keys - request.queries;
  for (std::int64_t row = 0; row < request.queries; ++row) {
    const std::int64_t end = random.below(3) > 0
                                 ? request.keys
                                 : random.below(static_cast<std::uint32_t>(request.keys + 1));
    limits.row_end.push_back(static_cast<std::int32_t>(end));
    std::uint64_t bits = ~std::uint64_t{0};
    if (is_tree) {
      // A row sees what its parent sees, and itself. A row without a parent sees all keys older
      // than the drafts, and itself.
      const auto parent =
          static_cast<std::int64_t>(random.below(static_cast<std::uint32_t>(row + 1))) - 1;
      bits =
          parent < 0 ? bits << request.queries : limits.tree_bits[static_cast<std::size_t>(parent)];
      bits |= std::uint64_t{1} << (request.keys - 1 - (before + row));
    }
    limits.tree_bits.push_back(bits);
  }
  return limits;
}

namespace {

// The keys that the limits of a request's rows show to these rows, as a pattern.
Pattern limited_keys(const Request& request) {
  const RowLimits limits = limits_of(request);
  const std::int64_t first_q = request.position + request.keys - request.queries;
  Pattern seen = keys(0, 0);
  for (std::int64_t row = 0; row < request.queries; ++row) {
    const std::uint64_t bits = limits.tree_bits[static_cast<std::size_t>(row)];
    Pattern of_row =
        keys(request.position - kMaxPosition / 2, request.position + request.keys - 64);
    for (int i = 0; i < 64; ++i) {
      if ((bits >> i & 1) == 0) continue;
      const std::int64_t key = request.position + request.keys - 1 - i;
      int more = 0;  // the number of older keys directly next to this one
      while (i + 1 < 64 && (bits >> (i + 1) & 1) != 0) ++i, ++more;
      of_row = of_row | keys(key - more, key + 1);
    }
    const std::int64_t end = request.position + limits.row_end[static_cast<std::size_t>(row)];
    seen = seen | (queries(first_q + row, first_q + row + 1) & of_row &
                   keys(request.position - kMaxPosition / 2, end));
  }
  return seen;
}

}  // namespace

Problem problem_of(const BatchProblem& problem, const Request& request, std::int64_t number) {
  Problem one;
  one.heads = problem.heads;
  one.kv_heads = problem.kv_heads;
  one.seq_q = request.queries;
  one.seq_k = request.keys;
  one.dim_qk = problem.dim_qk;
  one.dim_v = problem.dim_v;
  one.dtype = problem.dtype;
  one.pattern = problem.pattern;
  if (problem.block_keys > 0) one.pattern = one.pattern & listed_keys(problem, request);
  if (problem.row_limits) one.pattern = one.pattern & limited_keys(request);
  one.score = problem.score;
  if (problem.score.score_mod) {
    static const std::regex kBatch("\\bb\\b");
    one.score.score_mod = ScoreExpression::parse(
        std::regex_replace(problem.score.score_mod->to_string(), kBatch, std::to_string(number)));
  }
  one.q0 = request.position + request.keys - request.queries;
  one.k0 = request.position;
  one.want_lse = problem.want_lse;
  one.lse_base = problem.lse_base;
  one.carry_in = problem.carry_in;
  one.carry_out = problem.carry_out;
  return one;
}

RequestTensors tensors_of(const BatchProblem& problem, const Request& request) {
  RequestTensors made;
  for (std::int64_t key = 0; key < request.keys; ++key) {
    base::Random of_key(request.seed * 1000003 + static_cast<std::uint64_t>(key));
    add_normal(problem.kv_heads * problem.dim_qk, problem.dtype, of_key, &made.k);
    add_normal(problem.kv_heads * problem.dim_v, problem.dtype, of_key, &made.v);
  }
  base::Random random(request.seed * 7919 + 1);
  add_normal(request.queries * problem.heads * problem.dim_qk, problem.dtype, random, &made.q);
  if (problem.carry_in) {
    made.state_in = random_state(request.queries * problem.heads, problem.dim_v, random);
  }
  return made;
}

Reference reference(const BatchProblem& problem, const Request& request,
                    const RequestTensors& tensors, const ReferenceOptions& options,
                    std::int64_t number) {
  const Problem one = problem_of(problem, request, number);
  HostInputs inputs;
  inputs.q = tensors.q.data();
  inputs.k = tensors.k.data();
  inputs.v = tensors.v.data();
  inputs.q_strides = Strides::bshd(one.seq_q, one.heads, one.dim_qk);
  inputs.k_strides = Strides::bshd(one.seq_k, one.kv_heads, one.dim_qk);
  inputs.v_strides = Strides::bshd(one.seq_k, one.kv_heads, one.dim_v);
  if (problem.carry_in) inputs.state_in = &tensors.state_in;
  return annulus::reference(one, inputs, options);
}

Comparison compare(const BatchProblem& problem, const Request& request, const Reference& expected,
                   const RequestAnswer& answer) {
  const Problem one = problem_of(problem, request);
  HostResult result;
  if (problem.carry_out) {
    result.state = &answer.state;
  } else {
    result.o = answer.o.data();
    result.o_strides = Strides::bshd(one.seq_q, one.heads, one.dim_v);
  }
  if (problem.want_lse) result.lse = answer.lse.data();
  return annulus::compare(one, expected, result);
}

}  // namespace annulus::program
