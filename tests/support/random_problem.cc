#include "support/random_problem.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>

#include "attention/problem/dims.h"
#include "attention/tiles/tile_list.h"
#include "attention/tiles/visible_keys.h"
#include "base/half.h"
#include "support/random_score.h"

namespace annulus::test {
namespace {

constexpr std::uint16_t kNan = 0x7fff;  // a NaN in fp16 and in bf16

std::int64_t pick(base::Random& random, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random.below(static_cast<std::uint32_t>(high - low + 1)));
}

std::int64_t random_length(base::Random& random, std::int64_t most) {
  switch (random.below(8)) {
    case 0:
      return random.below(2);  // 0 and 1
    case 1:
      return std::min<std::int64_t>(most, 64 * pick(random, 1, 4));  // whole tiles
    case 2:
      return std::min<std::int64_t>(most, 64 * pick(random, 1, 3) + 1);
    default:
      return pick(random, 2, most);
  }
}

// A layout with random block sizes and random kept blocks. Some rows keep no blocks.
std::shared_ptr<const BlockLayout> random_layout(base::Random& random, std::int64_t seq_q,
                                                 std::int64_t seq_k, std::int64_t heads) {
  static constexpr std::array<std::int64_t, 10> kSizes = {4, 8, 16, 24, 32, 48, 64, 96, 128, 256};
  auto layout = std::make_shared<BlockLayout>();
  layout->block_rows = kSizes[random.below(kSizes.size())];
  layout->block_columns = kSizes[random.below(kSizes.size())];
  layout->seq_q = seq_q;
  layout->seq_k = seq_k;
  layout->heads = random.below(2) == 0 ? 1 : heads;
  layout->indptr.push_back(0);
  const double keep = random.uniform();
  const std::int64_t rows = (seq_q + layout->block_rows - 1) / layout->block_rows;
  const std::int64_t columns = (seq_k + layout->block_columns - 1) / layout->block_columns;
  for (std::int64_t row = 0; row < layout->heads * rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      if (random.uniform() < keep) layout->indices.push_back(static_cast<std::int32_t>(column));
    }
    layout->indptr.push_back(static_cast<std::int64_t>(layout->indices.size()));
  }
  return layout;
}

std::vector<std::int64_t> random_positions(base::Random& random, std::int64_t most, int count) {
  std::vector<std::int64_t> positions;
  for (int i = 0; i < count; ++i) positions.push_back(pick(random, 0, most));
  std::sort(positions.begin(), positions.end());
  positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
  return positions;
}

struct PatternMaker {
  base::Random& random;
  std::int64_t seq_q, seq_k, heads;
  bool has_blocks = false;  // kernels accept one layout per expression

  Pattern leaf() {
    const std::int64_t most = std::max<std::int64_t>(seq_k, 1);
    switch (random.below(18)) {
      case 0:
        return dense();
      case 1:
      case 2:
        return causal();
      case 3:
        return window_or_newer(pick(random, -1, most / 2), pick(random, -1, most / 2), most);
      case 4:
        return sink(pick(random, 0, most / 3));
      case 5:
        return global(pick(random, 0, most / 4));
      case 6:
        return global(random_positions(random, most, static_cast<int>(pick(random, 1, 4))));
      case 7:
        return documents(random_positions(random, most, static_cast<int>(pick(random, 1, 4))));
      case 8:
        return random.below(2) == 0 ? dilated(pick(random, 1, 9))
                                    : block_dilated(pick(random, 1, 4), pick(random, 1, 40));
      case 9:
        return strided(pick(random, 1, 5), pick(random, 0, 2), pick(random, 1, 40));
      case 10:
        return annulus::random(pick(random, 0, 4), pick(random, 0, 9), pick(random, 8, 48));
      case 11:
        return segment(pick(random, 1, most), pick(random, 1, 5));
      case 12:
        return axial(pick(random, 1, 20), pick(random, 1, 20));
      case 13: {
        const std::int64_t n = 2 * pick(random, 0, 4) + 1;
        return natten(pick(random, n, 20), pick(random, n, 20), n);
      }
      case 14:
        return vertical_slash(random_positions(random, most, static_cast<int>(pick(random, 0, 4))),
                              random_positions(random, most, static_cast<int>(pick(random, 0, 6))));
      case 15: {
        const HierarchyLevel near = {1, pick(random, 0, 3), pick(random, 4, 20)};
        return hierarchical({near, {pick(random, 2, 4), pick(random, -1, 9), pick(random, 4, 20)}});
      }
      default:
        if (has_blocks || seq_q == 0 || seq_k == 0) return window(most / 4, 0);
        has_blocks = true;
        return blocks(random_layout(random, seq_q, seq_k, heads), OutsideLayout::kHidden);
    }
  }

  // Leaves that were added later are made from the two numbers that are drawn for a window. So a
  // seed still gives the same problem in all other respects.
  Pattern window_or_newer(std::int64_t a, std::int64_t b, std::int64_t most) const {
    switch ((3 * a + b + 4) % 12) {
      case 0:
        return queries(2 * a, 2 * a + b + 1);
      case 1:
        return keys(a, most - b);
      case 2:
        return every(b % 9 + 2, std::max<std::int64_t>(a, 0) % (b % 9 + 2));
      case 3:
        return window(-2 - a, 2 + a + std::max<std::int64_t>(b, 0));
      case 4:
        return window(2 + a + std::max<std::int64_t>(b, 0), -2 - a);
      case 5:
        return ::annulus::head_groups(2, {window(a, b), causal()});
      default:
        return window(a, b);
    }
  }

  Pattern tree(int depth) {
    if (depth == 0 || random.below(3) == 0) return leaf();
    switch (random.below(6)) {
      case 0:
      case 1: {
        const Pattern a = tree(depth - 1);
        return a & tree(depth - 1);
      }
      case 4: {
        const Pattern a = tree(depth - 1);
        return ::annulus::heads({a, tree(depth - 1)});
      }
      case 2:
      case 3: {
        const Pattern a = tree(depth - 1);
        return a | tree(depth - 1);
      }
      default:
        return ~tree(depth - 1);
    }
  }
};

void fill_state(HostState& state, base::Random& random) {
  const auto dim = static_cast<std::size_t>(state.dim_v);
  for (std::size_t row = 0; row < state.m.size(); ++row) {
    if (random.below(5) == 0) continue;  // an empty row
    state.m[row] = 4 * random.normal();
    state.l[row] = 1 + 20 * static_cast<float>(random.uniform());
    for (std::size_t d = 0; d < dim; ++d) {
      state.acc[row * dim + d] = state.l[row] * 0.5f * random.normal();
    }
  }
}

// Scales as quantisation makes them: powers of two and numbers between them.
std::vector<float> random_scales(base::Random& random, std::int64_t count) {
  std::vector<float> scales;
  for (std::int64_t i = 0; i < count; ++i) {
    scales.push_back(std::exp2(static_cast<float>(12 * random.uniform() - 6)));
  }
  return scales;
}

std::int64_t blocks_of(std::int64_t rows, std::int64_t block) {
  return block == 0 ? 1 : (rows + block - 1) / block;
}

}  // namespace

HostTensor make_tensor(std::int64_t batch, std::int64_t rows, std::int64_t heads, std::int64_t dim,
                       Order order, Dtype dtype) {
  HostTensor tensor;
  tensor.dtype = dtype;
  // All strides are multiples of this.
  const std::int64_t unit = dtype == Dtype::kFloat8E4M3 ? 16 : 8;
  tensor.batch = batch;
  tensor.rows = rows;
  tensor.heads = heads;
  tensor.dim = dim;
  switch (order) {
    case Order::kBshd:
      tensor.strides = Strides::bshd(rows, heads, dim);
      break;
    case Order::kBhsd:
      tensor.strides = Strides::bhsd(rows, heads, dim);
      break;
    case Order::kPadded:  // [S, B, H, D + 8] with a gap after each row
      tensor.strides.head = dim + unit;
      tensor.strides.batch = heads * tensor.strides.head + 2 * unit;
      tensor.strides.row = batch * tensor.strides.batch + 3 * unit;
      break;
  }
  std::int64_t span = dim;
  if (batch > 0 && rows > 0 && heads > 0) {
    span += tensor.offset(batch - 1, rows - 1, heads - 1);
  }
  if (dtype == Dtype::kFloat8E4M3) {
    tensor.bits.assign(static_cast<std::size_t>(span + 1) / 2, 0x7f7f);
  } else {
    tensor.bits.assign(static_cast<std::size_t>(span), kNan);
  }
  return tensor;
}

void fill_normal(HostTensor& tensor, Dtype dtype, base::Random& random, float size) {
  for (std::int64_t b = 0; b < tensor.batch; ++b) {
    for (std::int64_t row = 0; row < tensor.rows; ++row) {
      for (std::int64_t head = 0; head < tensor.heads; ++head) {
        const std::int64_t first = tensor.offset(b, row, head);
        for (std::int64_t d = 0; d < tensor.dim; ++d) {
          tensor.set(first + d, base::from_float(dtype, size * random.normal()));
        }
      }
    }
  }
}

Pattern random_pattern(base::Random& random, std::int64_t seq_q, std::int64_t seq_k,
                       std::int64_t heads, int depth) {
  return PatternMaker{random, seq_q, seq_k, heads}.tree(depth);
}

HostInputs Case::inputs() const {
  return {q.bits.data(),
          k.bits.data(),
          v.bits.data(),
          q.strides,
          k.strides,
          v.strides,
          problem.carry_in ? &state_in : nullptr,
          scale_q.empty() ? nullptr : scale_q.data(),
          scale_k.empty() ? nullptr : scale_k.data(),
          scale_v.empty() ? nullptr : scale_v.data()};
}

Score random_score(base::Random& random, Score score, std::int64_t heads) {
  const auto values = [&](std::int64_t count, double size) {
    std::vector<double> list;
    for (std::int64_t i = 0; i < count; ++i) list.push_back(size * random.normal());
    return list;
  };
  if (random.below(6) == 0) score.alibi = values(pick(random, 1, heads), 0.1);
  if (random.below(6) == 0) score.sink_logit = values(pick(random, 1, heads), 3);
  if (random.below(8) == 0) score.score_mod = tame_score_expression(random, 2);
  if (random.below(8) > 0) return score;
  const std::int64_t reach = pick(random, 0, 40);
  for (std::int64_t table = pick(random, 1, heads); table > 0; --table) {
    score.bias.push_back(values(2 * reach + 1, 2));
  }
  return score;
}

std::string text_of(const Problem& problem) {
  return fmt::format(
      "B{} H{}/{} Sq{} Sk{} D{}/{} {} scale {} score {} q0 {} k0 {} lse {} {} carry {}{} pattern "
      "{}",
      problem.batch, problem.heads, problem.kv_heads, problem.seq_q, problem.seq_k, problem.dim_qk,
      problem.dim_v, to_string(problem.dtype), problem.effective_scale(), problem.score.to_string(),
      problem.q_position(), problem.k_position(), problem.want_lse, to_string(problem.lse_base),
      problem.carry_in ? "in" : "", problem.carry_out ? "out" : "", problem.pattern.to_string());
}

namespace {

// Replaces the keys before the first and after the last key that any row sees by NaN. The unused
// rest of a static cache may hold NaN too.
void spoil_unseen(Case& c) {
  const pattern::Interval keys =
      attention::visible_keys(c.problem, attention::placement_of(c.problem));
  const bool is_float8 = c.problem.dtype == Dtype::kFloat8E4M3;
  for (HostTensor* tensor : {&c.k, &c.v}) {
    for (std::int64_t i = 0; i < tensor->batch * tensor->rows * tensor->heads; ++i) {
      const std::int64_t row = i / tensor->heads % tensor->rows;
      if (row >= keys.begin && row < keys.end) continue;
      const std::int64_t at =
          tensor->offset(i / tensor->heads / tensor->rows, row, i % tensor->heads);
      for (std::int64_t d = 0; d < tensor->dim; ++d) tensor->set(at + d, is_float8 ? 0x7f : 0x7fff);
    }
  }
}

// Replaces the scales of blocks of such rows by NaN.
void spoil_unseen(const Case& c, std::int64_t block, std::vector<float>& scales) {
  if (block == 0) return;
  const pattern::Interval keys =
      attention::visible_keys(c.problem, attention::placement_of(c.problem));
  const std::int64_t blocks = blocks_of(c.problem.seq_k, block);
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const std::int64_t first = static_cast<std::int64_t>(i) % blocks * block;
    if (intersection(keys, {first, first + block}).empty()) {
      scales[i] = std::numeric_limits<float>::quiet_NaN();
    }
  }
}

}  // namespace

Case make_case(const Problem& problem, std::uint64_t seed, Order order) {
  base::Random random(seed);
  Case made;
  made.problem = problem;
  const Dtype dtype = problem.dtype;
  made.q = make_tensor(problem.batch, problem.seq_q, problem.heads, problem.dim_qk, order, dtype);
  made.k =
      make_tensor(problem.batch, problem.seq_k, problem.kv_heads, problem.dim_qk, order, dtype);
  made.v = make_tensor(problem.batch, problem.seq_k, problem.kv_heads, problem.dim_v, order, dtype);
  made.o = make_tensor(problem.batch, problem.seq_q, problem.heads, problem.dim_v, order);
  for (HostTensor* tensor : {&made.q, &made.k, &made.v}) {
    fill_normal(*tensor, problem.dtype, random);
  }
  if (dtype == Dtype::kFloat8E4M3) {
    const ScaleBlocks& blocks = problem.scale_blocks;
    const auto scales = [&](std::int64_t heads, std::int64_t rows, std::int64_t block) {
      return random_scales(random, problem.batch * heads * blocks_of(rows, block));
    };
    made.scale_q = scales(problem.heads, problem.seq_q, blocks.q);
    made.scale_k = scales(problem.kv_heads, problem.seq_k, blocks.k);
    made.scale_v = scales(problem.kv_heads, problem.seq_k, blocks.v);
    // Smaller scales keep the scores about as large as without scales.
    for (float& scale : made.scale_q) scale *= 0.1f;
    for (float& scale : made.scale_k) scale *= 0.1f;
    spoil_unseen(made, blocks.k, made.scale_k);
    spoil_unseen(made, blocks.v, made.scale_v);
  }
  spoil_unseen(made);
  if (problem.carry_in) {
    made.state_in = HostState::empty(problem.batch * problem.heads * problem.seq_q, problem.dim_v);
    fill_state(made.state_in, random);
  }
  made.text = fmt::format("{} order {}", text_of(problem), static_cast<int>(order));
  return made;
}

namespace {

base::Random random_of(std::uint64_t seed, std::uint64_t index) {
  return base::Random(seed * 1000003 + index);
}

Problem random_problem(base::Random& random, const CaseLimits& limits) {
  Problem problem;
  problem.batch = pick(random, 1, 2);
  problem.kv_heads = pick(random, 1, 2);
  problem.heads = problem.kv_heads *
                  pick(random, 1, std::max<std::int64_t>(1, limits.max_heads / problem.kv_heads));
  problem.seq_q = random_length(random, limits.max_length);
  problem.seq_k = random.below(3) == 0 ? problem.seq_q : random_length(random, limits.max_length);
  const auto dims = attention::supported_dims();
  const attention::Dims dim = dims[random.below(static_cast<std::uint32_t>(dims.size()))];
  problem.dim_qk = dim.qk;
  problem.dim_v = dim.v;
  problem.dtype = random.below(2) == 0 ? Dtype::kFloat16 : Dtype::kBfloat16;
  if (limits.float8) {
    if (problem.dtype == Dtype::kFloat16) problem.dtype_o = Dtype::kFloat16;
    problem.dtype = Dtype::kFloat8E4M3;
    if (dim.qk < 64) problem.dim_qk = problem.dim_v = 64;
    static constexpr std::array<std::int64_t, 5> kBlocks = {0, 32, 64, 128, 256};
    problem.scale_blocks = {kBlocks[random.below(kBlocks.size())],
                            kBlocks[random.below(kBlocks.size())],
                            kBlocks[random.below(kBlocks.size())]};
  }
  problem.pattern = random_pattern(random, problem.seq_q, problem.seq_k, problem.heads, 2);
  if (random.below(8) == 0) {
    const Pattern more = random_pattern(random, problem.seq_q, problem.seq_k, problem.heads, 1);
    problem.pattern = sum({problem.pattern, more});
  }
  problem.layer = random.below(3);
  if (random.below(6) == 0) problem.total_k = pick(random, 0, 400);
  switch (random.below(6)) {
    case 0:
      problem.score.scale = -problem.effective_scale();
      break;
    case 1:
      problem.score.scale = 0.5 * problem.effective_scale();
      break;
    case 2:
      problem.score.scale = random.below(8) == 0 ? 0.0 : 2 * problem.effective_scale();
      break;
    default:
      break;
  }
  if (random.below(5) == 0) problem.score.softcap = 0.5 + 20 * random.uniform();
  problem.score = random_score(random, problem.score, problem.heads);
  if (random.below(6) == 0) problem.q0 = pick(random, -50, 300);
  if (random.below(6) == 0) problem.k0 = pick(random, -50, 300);
  if (problem.total_k) {
    problem.total_k = std::max(*problem.total_k, problem.k_position() + problem.seq_k);
  }
  problem.carry_in = random.below(4) == 0;
  problem.carry_out = random.below(4) == 0;
  problem.want_lse = !problem.carry_out && random.below(2) == 0;
  problem.lse_base = random.below(2) == 0 ? LseBase::kNatural : LseBase::kTwo;
  return problem;
}

}  // namespace

Problem random_problem(std::uint64_t seed, std::uint64_t index, const CaseLimits& limits) {
  base::Random random = random_of(seed, index);
  return random_problem(random, limits);
}

Case random_case(std::uint64_t seed, std::uint64_t index, const CaseLimits& limits) {
  base::Random random = random_of(seed, index);
  const Problem problem = random_problem(random, limits);
  return make_case(problem, seed ^ (index << 20), static_cast<Order>(random.below(3)));
}

}  // namespace annulus::test
