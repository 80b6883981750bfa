// Which configurations of wgmma and wgmma8 suit a problem.

#include <fmt/core.h>

#include "attention/kernels/wgmma/config.h"
#include "base/math.h"

namespace annulus::attention {
namespace {

// Whether scores and output take nearly all registers of a thread. ptxas then spills registers in
// kernels that also read tile lists, masks or tables, which is why kernel_compile_test.cc compiles
// these configurations for bands of scaled scores only. Two tiles to a step count as one here,
// because shipped configurations with two have 64 columns each.
bool is_wide(const KernelConfig& any) {
  const WgmmaConfig config = wgmma_config(any);
  return any.family->element_bytes == 2 && (config.warps == 12 || config.tile_columns > 128 ||
                                            (config.tile_columns == 80 && config.warps == 8));
}

// Why the CTAs of a cluster cannot, or should not, share copies of K and V, or nullopt. They can if
// neighbouring heads see the same keys, or else if neighbouring tile rows do.
std::optional<std::string> why_no_cluster(const WgmmaConfig& config, const Problem& problem,
                                          kernels::Positions positions) {
  if (config.cluster == 1) return std::nullopt;
  auto reason = why_not_together(problem, config.heads * config.cluster);
  if (!reason) return std::nullopt;
  if (!rows_are_alike(problem, config.tile_rows, config.tile_columns, positions)) return reason;
  // A cluster takes two tile rows; if their number is odd, one CTA of the last cluster computes
  // nothing. From kMany rows on, that is at most a tenth of the CTAs.
  const std::int64_t rows = base::ceil_div(problem.seq_q, config.tile_rows);
  constexpr std::int64_t kMany = 8;
  if (rows % 2 == 0 || rows >= kMany) return std::nullopt;
  return fmt::format("{} tile rows, taken in twos, would waste one of {}", rows, rows + 1);
}

}  // namespace

// Why a possible configuration is not a good choice, for reasons that the pipe model does not
// include.
std::optional<std::string> wgmma_why_unsuited(const KernelConfig& any,
                                              const SuitQuestion& question) {
  const WgmmaConfig config = wgmma_config(any);
  const auto& [problem, blocks, arch, positions] = question;
  if (is_wide(any) && !is_plain(problem, positions)) {
    return "scores and output leave no registers for more than a band of keys and scaled scores";
  }
  if (auto reason = why_not_together(problem, config.heads)) return reason;
  return why_no_cluster(config, problem, positions);
}

}  // namespace annulus::attention
