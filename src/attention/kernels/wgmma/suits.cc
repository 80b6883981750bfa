// Which configurations of wgmma and wgmma8 suit a problem.

#include <fmt/core.h>

#include "attention/kernels/wgmma/config.h"
#include "base/math.h"

namespace annulus::attention {
namespace {

constexpr int kWarpgroupRows = 64;

// Whether scores and output take nearly all registers of a thread. ptxas then spills registers in
// kernels that also read tile lists, masks or tables, which is why kernel_compile_test.cc compiles
// these configurations for bands of scaled scores only. Two tiles to a step count as one here,
// because shipped configurations with two have 64 columns each.
bool is_wide(const KernelConfig& any) {
  const WgmmaConfig config = wgmma_config(any);
  return any.family->element_bytes == 2 && (config.warps == 12 || config.tile_columns > 128);
}

// Why the CTAs of a cluster cannot, or should not, share copies of K and V, or nothing. They can if
// neighbouring heads see the same keys, else if neighbouring tile rows do.
std::optional<std::string> why_no_cluster(const WgmmaConfig& config, const Problem& problem,
                                          bool placed) {
  if (config.cluster == 1) return std::nullopt;
  auto reason = why_not_together(problem, config.heads * config.cluster);
  if (!reason) return std::nullopt;
  if (!rows_are_alike(problem, config.tile_rows, config.tile_columns, placed)) return reason;
  // A cluster takes two tile rows; if their number is odd, one CTA of the last cluster computes
  // nothing. From kMany rows on, that is at most a tenth of the CTAs.
  const std::int64_t rows = base::ceil_div(problem.seq_q, config.tile_rows);
  constexpr std::int64_t kMany = 8;
  if (rows % 2 == 0 || rows >= kMany) return std::nullopt;
  return fmt::format("{} tile rows, taken in twos, would waste one of {}", rows, rows + 1);
}

}  // namespace

// Why a configuration that would work is not a good one for the pattern's blocks: a tile that
// covers several blocks also computes those that are not kept, and a tile that is smaller than a
// block reads K and V more often than necessary. `few` is for at most 64 query rows, which one
// warpgroup holds: then packed heads and two tiles to a step are good with blocks of any size.
std::optional<std::string> wgmma_why_unsuited(const KernelConfig& any,
                                              const SuitQuestion& question) {
  const WgmmaConfig config = wgmma_config(any);
  const auto& [problem, blocks, placed] = question;
  if (is_wide(any) && !is_plain(problem, placed)) {
    return "scores and output leave no registers for more than a band of keys and scaled scores";
  }
  constexpr std::int64_t kLong = 2048;  // queries: the last tile of 192 leaves a tenth at most
  if (config.warps == 12 && problem.seq_q < kLong) {
    return fmt::format("{} query rows are too few for tiles of {}", problem.seq_q,
                       config.tile_rows);
  }
  // From blocks of this size on, the largest tile wastes no more than a small one.
  constexpr std::int64_t kCoarse = 128;
  const bool few = problem.seq_q <= kWarpgroupRows;
  if (auto reason = why_not_together(problem, config.heads)) return reason;
  if (config.heads > 1 && blocks.rows >= kCoarse && !few) {
    return "the pattern has no blocks below 128 rows, so that one head fills a tile";
  }
  if (auto reason = why_no_cluster(config, problem, placed)) return reason;
  if (config.blocks > 1 && blocks.columns >= kCoarse && !few &&
      config.tile_rows * config.heads > kWarpgroupRows) {
    return "the pattern has no blocks below 128 columns, for which two tiles would make a step";
  }
  const std::int64_t columns = config.tile_columns;
  if (blocks.columns < kCoarse && columns % blocks.columns != 0 && blocks.columns % columns != 0) {
    return fmt::format("tiles of {} columns cut blocks of {}", columns, blocks.columns);
  }
  return std::nullopt;
}

}  // namespace annulus::attention
