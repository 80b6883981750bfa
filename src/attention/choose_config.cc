// The heuristic of plan.h: which configuration of the table a problem gets where nothing was tuned.

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <vector>

#include "attention/plan.h"
#include "attention/wgmma_launch.h"
#include "base/fail.h"
#include "pattern/node.h"
#include "pattern/rows_alike.h"

namespace annulus::attention {
namespace {

constexpr int kWarpgroupRows = 64;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Of all heads of a CTA.
int rows_of(const KernelConfig& config) { return config.tile_rows * config.heads; }

// Whether two rows of blocks that follow one another keep so different ones that a tile over both
// would compute a third more than they keep together on average. Some rows, evenly over the layout.
bool is_scattered(const BlockLayout& layout) {
  constexpr std::int64_t kSamples = 64;
  const std::int64_t pairs = layout.rows() / 2 * layout.heads;
  std::int64_t either = 0;
  std::int64_t both = 0;  // counted twice
  for (std::int64_t i = 0; i < std::min(pairs, kSamples); ++i) {
    const std::int64_t pair = i * pairs / std::min(pairs, kSamples);
    const std::int64_t head = pair / (layout.rows() / 2);
    const std::int64_t row = pair % (layout.rows() / 2) * 2;
    const auto upper = layout.row(head, row);
    const auto lower = layout.row(head, row + 1);
    std::vector<std::int32_t> joined;
    std::ranges::set_union(upper, lower, std::back_inserter(joined));
    either += std::ssize(joined);
    both += std::ssize(upper) + std::ssize(lower);
  }
  return 3 * either > 4 * both / 2;
}

// The smallest blocks that a pattern speaks of.
struct Blocks {
  std::int64_t rows = std::numeric_limits<std::int64_t>::max();
  std::int64_t columns = std::numeric_limits<std::int64_t>::max();
  bool scattered = false;  // neighbouring rows of blocks have little in common
};

Blocks finest_blocks(const pattern::Node& node) {
  using pattern::Kind;
  Blocks blocks;
  if (node.kind == Kind::kBlocks) {
    blocks = {node.layout->block_rows, node.layout->block_columns, is_scattered(*node.layout)};
  } else if (node.kind == Kind::kRandom) {
    blocks = {node.third, node.third, true};
  } else if (node.kind == Kind::kStrided || (node.kind == Kind::kBand && node.third > 1)) {
    blocks = {node.third, node.third, false};
  }
  for (const pattern::NodePointer& child : node.children) {
    const Blocks of_child = finest_blocks(*child);
    blocks.rows = std::min(blocks.rows, of_child.rows);
    blocks.columns = std::min(blocks.columns, of_child.columns);
    blocks.scattered |= of_child.scattered;
  }
  return blocks;
}

// Why so many heads do not share K and V and what they see of them.
std::optional<std::string> why_not_together(const Problem& problem, int heads) {
  if (heads == 1) return std::nullopt;
  if (problem.heads / problem.kv_heads % heads != 0) {
    return fmt::format("{} query heads for {} of K and V: {} together would not share one",
                       problem.heads, problem.kv_heads, heads);
  }
  if (problem.pattern.heads() != 1 || problem.pattern.node().period != 1) {
    return "heads differ in what they see, and those that work together may not";
  }
  return std::nullopt;
}

// Whether tile rows see the same keys in pairs, of a number of them that leaves none over unless
// all see the same; and no block ends within a tile, whose bits would be those of one row.
bool sees_alike(const pattern::Node& node, const Problem& problem, const KernelConfig& config) {
  using pattern::Kind;
  if (!node.children.empty()) {
    return node.kind != Kind::kSum &&
           std::ranges::all_of(node.children, [&](const pattern::NodePointer& child) {
             return sees_alike(*child, problem, config);
           });
  }
  const pattern::Extent extent = extent_of(problem);
  const pattern::Interval queries = extent.queries();
  const std::int64_t columns = config.tile_columns;
  if (node.kind == Kind::kBlocks &&
      (node.layout->block_columns % columns != 0 || extent.k_position % columns != 0 ||
       extent.k_position < 0 || extent.keys().end > node.layout->seq_k)) {
    return false;
  }
  // All of them, or pairs.
  return pattern::sees_alike_in_groups(node, queries, std::max<std::int64_t>(1, problem.seq_q)) ||
         (ceil_div(problem.seq_q, config.tile_rows) % 2 == 0 &&
          pattern::sees_alike_in_groups(node, queries, 2 * config.tile_rows));
}

// Neighbouring tile rows make the same steps; and no position is read for a row behind the last.
bool rows_are_alike(const Problem& problem, const KernelConfig& config, bool placed) {
  const Score& score = problem.score;
  const pattern::Node& node = problem.pattern.node();
  if (placed && (node.kind != pattern::Kind::kDense || !score.alibi.empty() ||
                 !score.bias.empty() || score.score_mod)) {
    return false;
  }
  return sees_alike(node, problem, config);
}

// Scores and output take nearly all registers of a thread: ptxas spills where kernels look
// something up besides.
bool is_wide(const KernelConfig& config) {
  return config.family == Family::kWgmma && (config.warps == 12 || config.tile_columns > 128);
}

bool is_band(const pattern::Node& node) {
  using pattern::Kind;
  return node.kind == Kind::kDense || node.kind == Kind::kCausal || node.kind == Kind::kWindow ||
         (node.kind == Kind::kAnd &&
          std::ranges::all_of(node.children, [](const auto& child) { return is_band(*child); }));
}

bool is_plain(const Problem& problem, bool placed) {
  const Score& score = problem.score;
  return is_band(problem.pattern.node()) && !placed && score.softcap == 0 && score.alibi.empty() &&
         score.bias.empty() && !score.score_mod;
}

// Why a configuration that would work is not the one for such blocks: a tile that covers several
// computes those that are not kept, and one that is smaller reads K and V more often than it must.
// Only the wgmma family has tiles of both kinds for every head dim.
std::optional<std::string> why_unsuited(const KernelConfig& config, const Problem& problem,
                                        const Blocks& blocks, bool placed) {
  if (!is_wgmma(config.family)) return std::nullopt;
  if (is_wide(config) && !is_plain(problem, placed)) {
    return "scores and output leave no registers for more than a band of keys and scaled scores";
  }
  constexpr std::int64_t kLong = 2048;  // queries: the last tile of 192 leaves a tenth at most
  if (config.warps == 12 && problem.seq_q < kLong) {
    return fmt::format("{} query rows are too few for tiles of {}", problem.seq_q,
                       config.tile_rows);
  }
  constexpr std::int64_t kCoarse = 128;  // from here on the largest tile is as good
  const bool few = problem.seq_q <= kWarpgroupRows;
  if (auto reason = why_not_together(problem, config.heads)) return reason;
  if (config.heads > 1 && blocks.rows >= kCoarse && !few) {
    return "the pattern has no blocks below 128 rows, so that one head fills a tile";
  }
  if (config.cluster > 1) {
    const auto reason = why_not_together(problem, config.heads * config.cluster);
    if (reason && !rows_are_alike(problem, config, placed)) return reason;
    // Of an odd number of tile rows the last pair has one that nobody needs.
    const std::int64_t rows = ceil_div(problem.seq_q, config.tile_rows);
    constexpr std::int64_t kMany = 8;
    if (reason && rows % 2 != 0 && rows < kMany) {
      return fmt::format("{} tile rows, taken in twos, would waste one of {}", rows, rows + 1);
    }
  }
  if (config.blocks > 1 && blocks.columns >= kCoarse && !few && rows_of(config) > kWarpgroupRows) {
    return "the pattern has no blocks below 128 columns, for which two tiles would make a step";
  }
  const std::int64_t columns = config.tile_columns;
  if (blocks.columns < kCoarse && columns % blocks.columns != 0 && blocks.columns % columns != 0) {
    return fmt::format("tiles of {} columns cut blocks of {}", columns, blocks.columns);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> why_not(const KernelConfig& config, Dtype dtype) {
  const auto bytes = static_cast<std::int64_t>(size_in_bytes(dtype));
  if (bytes == element_bytes(config.family)) return std::nullopt;
  return fmt::format("the {} family has elements of {} bits, and {} has {}",
                     to_string(config.family), 8 * element_bytes(config.family), to_string(dtype),
                     8 * bytes);
}

std::optional<std::string> why_not(const KernelConfig& config, const Dims& dims,
                                   const DeviceLimits& limits) {
  if (auto reason = why_illegal(config, dims, limits.arch)) return reason;
  const std::int64_t bytes = shared_bytes(config, dims);
  if (bytes > limits.shared_bytes_per_block) {
    return fmt::format("{} bytes of shared memory, but this device gives a CTA at most {}", bytes,
                       limits.shared_bytes_per_block);
  }
  return std::nullopt;
}

std::optional<std::string> why_not(const KernelConfig& config, const Problem& problem,
                                   const std::optional<OperandStrides>& strides) {
  if (config.family == Family::kMma || !strides) return std::nullopt;
  return why_no_tensor_maps(problem, *strides);
}

Choice choose_config(const Problem& problem, const DeviceLimits& limits,
                     const std::optional<OperandStrides>& strides, bool placed) {
  const Dims dims = {problem.dim_qk, problem.dim_v};
  const Blocks blocks = finest_blocks(problem.pattern.node());
  std::vector<KernelConfig> candidates;
  std::vector<Rejected> unsuited;
  Choice choice;
  std::string strided;  // why a family was passed over
  const auto ctas = [&](const KernelConfig& config) {
    return ceil_div(problem.seq_q, config.tile_rows) * problem.heads / config.heads * problem.batch;
  };
  for (const ShippedConfig& shipped : shipped_configs()) {
    if (shipped.dims.qk != dims.qk || shipped.dims.v != dims.v) continue;
    if (why_not(shipped.config, problem.dtype)) continue;  // of other problems
    auto reason = why_not(shipped.config, dims, limits);
    if (!reason) {
      reason = why_not(shipped.config, problem, strides);
      if (reason) strided = *reason;
    }
    if (reason) {
      choice.rejected.push_back({shipped.config, std::move(*reason)});
    } else if (shipped.config.cluster > 1 && ctas(shipped.config) < limits.multiprocessors) {
      unsuited.push_back(
          {shipped.config, fmt::format("{} CTAs, in clusters, would leave some of {} "
                                       "multiprocessors idle",
                                       ctas(shipped.config), limits.multiprocessors)});
    } else if ((reason = why_unsuited(shipped.config, problem, blocks, placed))) {
      unsuited.push_back({shipped.config, std::move(*reason)});
    } else {
      candidates.push_back(shipped.config);
    }
  }
  // A tile that covers two rows of such blocks would compute nearly twice as much.
  const auto in_one_row = [&](const KernelConfig& config) {
    return config.tile_rows <= blocks.rows;
  };
  if (blocks.scattered && std::ranges::any_of(candidates, [&](const KernelConfig& config) {
        return is_wgmma(config.family) && in_one_row(config);
      })) {
    std::erase_if(candidates, [&](const KernelConfig& config) {
      if (in_one_row(config)) return false;
      choice.rejected.push_back(
          {config, fmt::format("tiles of {} rows cover several rows of blocks of {}",
                               config.tile_rows, blocks.rows)});
      return true;
    });
  }
  // Where nothing suits, as with e4m3 and blocks of an odd size, a tile of one head still is right.
  const bool none = candidates.empty();
  for (Rejected& other : unsuited) {
    if (none && other.config.heads == 1 && other.config.cluster == 1) {
      candidates.push_back(other.config);
    } else {
      choice.rejected.push_back(std::move(other));
    }
  }
  if (candidates.empty() && problem.dtype == Dtype::kFloat8E4M3) {
    if (!strided.empty()) {
      base::fail(ErrorCode::kUnsupported,
                 "e4m3 has no kernel for such strides: {}; copy the tensor, or convert to bf16",
                 strided);
    }
    base::fail(ErrorCode::kUnsupported,
               "e4m3 with head dims {}/{} has no kernel for {}: it needs wgmma, which only sm_90a "
               "has, and head dims from 64 on; convert Q, K and V to bf16",
               dims.qk, dims.v, jit::to_string(limits.arch));
  }
  if (candidates.empty()) {
    base::fail(ErrorCode::kUnsupported,
               "no kernel configuration for head dims {}/{} fits {} with {} bytes of shared memory "
               "per CTA; the mma family has head dims {} from sm_80 on",
               dims.qk, dims.v, jit::to_string(limits.arch), limits.shared_bytes_per_block,
               supported_dims_text());
  }
  // The table's order is that of preference for long sequences. A lower tile wins where the query
  // rows would leave most of a higher one empty, or of the same family where whole tiles leave
  // multiprocessors idle and none computes as many rows then.
  const auto most_rows = [&](const KernelConfig& config) {
    return ceil_div(ctas(config), limits.multiprocessors) * rows_of(config);
  };
  const auto lower = [&](const KernelConfig& a, const KernelConfig& b) {
    return rows_of(a) < rows_of(b);
  };
  const auto filled = std::find_if(
      candidates.begin(), candidates.end(),
      [&](const KernelConfig& config) { return config.tile_rows <= 2 * problem.seq_q; });
  auto taken = filled;
  if (filled == candidates.end()) {
    taken = std::ranges::min_element(candidates, {}, &KernelConfig::tile_rows);
    choice.reason =
        fmt::format("{} query rows fill no tile of the table half; the lowest", problem.seq_q);
  } else {
    // What one warpgroup holds of every head is split by its keys instead (attention/row_split.h).
    const bool idle = ctas(*filled) < limits.multiprocessors && problem.seq_q > kWarpgroupRows;
    for (auto other = candidates.begin(); idle && other != candidates.end(); ++other) {
      const bool fewer = most_rows(*other) < most_rows(*filled) && lower(*other, *taken);
      if (other->family == filled->family && fewer) taken = other;
    }
    choice.reason =
        taken != filled
            ? fmt::format(
                  "{} CTAs of {} rows would leave some of {} multiprocessors idle; the "
                  "lowest",
                  ctas(*filled), rows_of(*filled), limits.multiprocessors)
            : fmt::format(
                  "the first of the table for head dims {}/{} that fits and whose rows are "
                  "filled at least half",
                  dims.qk, dims.v);
  }
  if (!strided.empty()) choice.reason += fmt::format("; not of the wgmma family: {}", strided);
  choice.config = *taken;
  for (auto at = candidates.begin(); at != candidates.end(); ++at) {
    if (at == taken) continue;
    choice.rejected.push_back(
        {*at, at < taken ? "legal, but its rows would be too empty or its CTAs too few"
                         : "legal, but later in the table than the one taken"});
  }
  return choice;
}

Choice forced_config(const Problem& problem, const DeviceLimits& limits, const std::string& text,
                     const std::optional<OperandStrides>& strides) {
  const Dims dims = {problem.dim_qk, problem.dim_v};
  const auto config = parse_config(text);
  if (!config) {
    std::string names;
    for (const ShippedConfig& shipped : shipped_configs()) {
      if (shipped.dims.qk != dims.qk || shipped.dims.v != dims.v) continue;
      if (why_not(shipped.config, problem.dtype)) continue;
      names += fmt::format("{}'{}'", names.empty() ? "" : ", ", to_string(shipped.config));
    }
    base::fail(ErrorCode::kInvalidArgument,
               "'{}' is no kernel configuration; shipped for head dims {}/{} are {}", text, dims.qk,
               dims.v, names);
  }
  auto reason = why_not(*config, problem.dtype);
  if (!reason) reason = why_not(*config, dims, limits);
  if (!reason) reason = why_not(*config, problem, strides);
  if (reason) {
    base::fail(ErrorCode::kUnsupported, "configuration '{}' is not possible here: {}", text,
               *reason);
  }
  return {*config, "asked for by the caller", {}};
}

}  // namespace annulus::attention
