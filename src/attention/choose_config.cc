// The heuristic of plan.h: which configuration of the table a problem gets where nothing was tuned.

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "attention/plan.h"
#include "attention/wgmma_launch.h"
#include "base/fail.h"
#include "pattern/node.h"

namespace annulus::attention {
namespace {

// Tile rows of each multiprocessor from which on clusters are taken.
constexpr std::int64_t kWorksOfCluster = 4;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

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
    blocks = {node.layout->block_rows, node.layout->block_columns, true};
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

// Every query sees every key, so that neighbouring tile rows make the same steps; and no position
// is read for a row behind the last.
bool rows_are_alike(const Problem& problem, bool placed) {
  const Score& score = problem.score;
  return problem.pattern.node().kind == pattern::Kind::kDense &&
         !(placed && (!score.alibi.empty() || !score.bias.empty() || score.score_mod));
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
  constexpr std::int64_t kLong =
      2048;  // queries; of fewer, 192 rows leave too much of the last tile
  if (config.warps == 12 && problem.seq_q < kLong) {
    return fmt::format("{} query rows are too few for tiles of {}", problem.seq_q,
                       config.tile_rows);
  }
  constexpr std::int64_t kCoarse = 128;  // from here on the largest tile is as good
  if (auto reason = why_not_together(problem, config.heads)) return reason;
  if (config.heads > 1 && blocks.rows >= kCoarse) {
    return "the pattern has no blocks below 128 rows, so that one head fills a tile";
  }
  if (config.cluster > 1 && !rows_are_alike(problem, placed)) {
    if (auto reason = why_not_together(problem, config.heads * config.cluster)) return reason;
  }
  if (config.blocks > 1 && blocks.columns >= kCoarse) {
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
    } else if (shipped.config.cluster > 1 &&
               ctas(shipped.config) < kWorksOfCluster * limits.multiprocessors) {
      unsuited.push_back(
          {shipped.config, fmt::format("{} tile rows for {} multiprocessors: taken in twos, they "
                                       "would divide badly",
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
  // rows would leave most of a higher one empty, or where whole tiles are too few to occupy the
  // multiprocessors.
  const auto lowest = std::min_element(
      candidates.begin(), candidates.end(),
      [](const KernelConfig& a, const KernelConfig& b) { return a.tile_rows < b.tile_rows; });
  const auto filled = std::find_if(
      candidates.begin(), candidates.end(),
      [&](const KernelConfig& config) { return config.tile_rows <= 2 * problem.seq_q; });
  auto taken = filled;
  if (filled == candidates.end()) {
    taken = lowest;
    choice.reason =
        fmt::format("{} query rows fill no tile of the table half; the lowest", problem.seq_q);
  } else if (ctas(*filled) < limits.multiprocessors && lowest->tile_rows < filled->tile_rows) {
    taken = lowest;
    choice.reason =
        fmt::format("{} CTAs of {} rows would leave some of {} multiprocessors idle; the lowest",
                    ctas(*filled), filled->tile_rows, limits.multiprocessors);
  } else {
    choice.reason = fmt::format(
        "the first of the table for head dims {}/{} that fits and whose "
        "rows are filled at least half",
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
