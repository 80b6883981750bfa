#include "attention/plan/choose_config.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "attention/kernels/family.h"
#include "attention/tiles/pattern_facts.h"
#include "base/fail.h"
#include "base/math.h"

namespace annulus::attention {
namespace {

// Query rows of the smallest tile of one CTA that keeps the tensor cores busy.
constexpr int kSmallTileRows = 64;

// Query rows that one CTA computes, over all its heads.
int rows_of(const KernelConfig& config) { return config.tile_rows * cta_shape(config).heads; }

bool computes_one_head_and_row(const KernelConfig& config) {
  return cta_shape(config).packed_heads() == 1;
}

// The heuristic for one problem on one device. The table of shipped configurations is in the order
// of preference for long sequences. sort_table() goes through it once and sorts configurations into
// impossible ones, those that would work but do not suit the problem, and candidates, in that
// order. The first candidate whose rows are filled at least half is taken, or a smaller tile if it
// would leave multiprocessors idle (take()).
class Heuristic {
 public:
  Heuristic(const Problem& problem, const DeviceLimits& limits,
            const std::optional<OperandStrides>& strides, bool placed)
      : problem_(problem),
        limits_(limits),
        strides_(strides),
        dims_{problem.dim_qk, problem.dim_v},
        blocks_(finest_blocks(problem.pattern.node())),
        placed_(placed) {}

  Choice choose() {
    sort_table();
    leave_out_tall_tiles();
    admit_unsuited();
    if (candidates_.empty()) refuse();
    const std::size_t taken = take();
    choice_.config = candidates_[taken];
    if (!strided_.empty()) {
      choice_.reason += fmt::format("; not of the {} family: {}", strided_family_, strided_);
    }
    name_second();
    reject_others(taken);
    return std::move(choice_);
  }

 private:
  using Candidates = std::vector<KernelConfig>;

  std::int64_t ctas(const KernelConfig& config) const {
    return base::ceil_div(problem_.seq_q, config.tile_rows) * problem_.heads /
           cta_shape(config).heads * problem_.batch;
  }

  void sort_table() {
    for (const ShippedConfig& shipped : shipped_configs()) {
      if (shipped.dims.qk != dims_.qk || shipped.dims.v != dims_.v) continue;
      if (why_not(shipped.config, problem_.dtype)) continue;  // for problems of other elements
      if (auto reason = why_impossible(shipped.config)) {
        choice_.rejected.push_back({shipped.config, std::move(*reason)});
      } else if (auto unfit = why_unsuited(shipped.config)) {
        unsuited_.push_back({shipped.config, std::move(*unfit)});
      } else {
        candidates_.push_back(shipped.config);
      }
    }
  }

  std::optional<std::string> why_impossible(const KernelConfig& config) {
    if (auto reason = why_not(config, dims_, limits_)) return reason;
    auto reason = why_not(config, problem_, strides_);
    if (reason) {
      strided_ = *reason;
      strided_family_ = config.family->name;
    }
    return reason;
  }

  std::optional<std::string> why_unsuited(const KernelConfig& config) const {
    if (cta_shape(config).cluster > 1 && ctas(config) < limits_.multiprocessors) {
      return fmt::format("{} CTAs, in clusters, would leave some of {} multiprocessors idle",
                         ctas(config), limits_.multiprocessors);
    }
    return config.family->why_unsuited(config, {problem_, blocks_, placed_});
  }

  // A tile that covers two rows of scattered blocks would compute nearly twice as much. If a family
  // with tiles for every size of blocks has a candidate that covers one row, candidates of all
  // families that cover more rows are rejected.
  void leave_out_tall_tiles() {
    const auto in_one_row = [&](const KernelConfig& config) {
      return config.tile_rows <= blocks_.rows;
    };
    const bool replaceable = std::ranges::any_of(candidates_, [&](const KernelConfig& config) {
      return config.family->fits_blocks && in_one_row(config);
    });
    if (!blocks_.scattered || !replaceable) return;
    std::erase_if(candidates_, [&](const KernelConfig& config) {
      if (in_one_row(config)) return false;
      choice_.rejected.push_back(
          {config, fmt::format("tiles of {} rows cover several rows of blocks of {}",
                               config.tile_rows, blocks_.rows)});
      return true;
    });
  }

  // If nothing suits, as with e4m3 and blocks of an odd size, configurations of one head and row
  // become candidates, because they give right results for every problem.
  void admit_unsuited() {
    const bool none = candidates_.empty();
    for (Rejected& other : unsuited_) {
      if (none && computes_one_head_and_row(other.config)) {
        candidates_.push_back(other.config);
      } else {
        choice_.rejected.push_back(std::move(other));
      }
    }
  }

  [[noreturn]] void refuse() const {
    if (problem_.dtype != Dtype::kFloat8E4M3) {
      base::fail(ErrorCode::kUnsupported,
                 "no kernel configuration for head dims {}/{} fits {} with {} bytes of shared "
                 "memory per CTA; the mma family has head dims {} from sm_80 on",
                 dims_.qk, dims_.v, jit::to_string(limits_.arch), limits_.shared_bytes_per_block,
                 supported_dims_text());
    }
    if (!strided_.empty()) {
      base::fail(ErrorCode::kUnsupported,
                 "e4m3 has no kernel for such strides: {}; copy the tensor, or convert to bf16",
                 strided_);
    }
    base::fail(ErrorCode::kUnsupported,
               "e4m3 with head dims {}/{} has no kernel for {}: it needs wgmma, which only sm_90a "
               "has, and head dims from 64 on; convert Q, K and V to bf16",
               dims_.qk, dims_.v, jit::to_string(limits_.arch));
  }

  // The index of the candidate that is taken; sets the reason. A tile is filled at least half if it
  // has at most twice as many rows as there are queries.
  std::size_t take() {
    const auto filled = std::ranges::find_if(candidates_, [&](const KernelConfig& config) {
      return config.tile_rows <= 2 * problem_.seq_q;
    });
    if (filled == candidates_.end()) {
      choice_.reason = fmt::format(
          "{} query rows fill no tile of the table half; the smallest tile", problem_.seq_q);
      return index_of(std::ranges::min_element(candidates_, {}, &KernelConfig::tile_rows));
    }
    const auto taken = busier(filled);
    choice_.reason =
        taken != filled
            ? fmt::format(
                  "{} CTAs of {} rows would leave some of {} multiprocessors idle; the "
                  "lowest",
                  ctas(*filled), rows_of(*filled), limits_.multiprocessors)
            : fmt::format(
                  "the first of the table for head dims {}/{} that fits and whose rows are "
                  "filled at least half",
                  dims_.qk, dims_.v);
    return index_of(taken);
  }

  // A smaller tile of the same family is taken if `filled` leaves multiprocessors idle and the
  // smaller tile gives the busiest multiprocessor fewer rows (max_rows); of several the smallest.
  // With at most kSmallTileRows queries every head is one small tile anyway; rows are then split by
  // their keys instead (attention/tiles/kv_split.h).
  Candidates::const_iterator busier(Candidates::const_iterator filled) const {
    const auto max_rows = [&](const KernelConfig& config) {
      return base::ceil_div(ctas(config), limits_.multiprocessors) * rows_of(config);
    };
    auto taken = filled;
    if (ctas(*filled) >= limits_.multiprocessors || problem_.seq_q <= kSmallTileRows) return taken;
    for (auto other = candidates_.begin(); other != candidates_.end(); ++other) {
      if (other->family == filled->family && max_rows(*other) < max_rows(*filled) &&
          rows_of(*other) < rows_of(*taken)) {
        taken = other;
      }
    }
    return taken;
  }

  std::size_t index_of(Candidates::const_iterator at) const {
    return static_cast<std::size_t>(at - candidates_.begin());
  }

  // Sets the second choice: the first configuration of one head and row, for the case that the
  // tiles forbid the one taken. Candidates go before configurations that do not suit.
  void name_second() {
    if (computes_one_head_and_row(choice_.config)) return;
    const auto simple = std::ranges::find_if(candidates_, computes_one_head_and_row);
    if (simple != candidates_.end()) {
      choice_.second = *simple;
      return;
    }
    for (const Rejected& other : unsuited_) {
      if (!computes_one_head_and_row(other.config)) continue;
      choice_.second = other.config;
      return;
    }
  }

  void reject_others(std::size_t taken) {
    for (std::size_t at = 0; at < candidates_.size(); ++at) {
      if (at == taken) continue;
      choice_.rejected.push_back(
          {candidates_[at], at < taken
                                ? "legal, but its rows would be too empty or its CTAs too few"
                                : "legal, but later in the table than the one taken"});
    }
  }

  const Problem& problem_;
  const DeviceLimits& limits_;
  const std::optional<OperandStrides>& strides_;
  Dims dims_;
  Blocks blocks_;
  bool placed_;

  Candidates candidates_;
  std::vector<Rejected> unsuited_;
  std::string strided_;  // why a family was passed over for its strides
  std::string strided_family_;
  Choice choice_;
};

// The shipped configurations for a problem's head dims and dtype: "'mma m64 n64 w4 s2', ...".
std::string shipped_names(const Problem& problem) {
  std::string names;
  for (const ShippedConfig& shipped : shipped_configs()) {
    if (shipped.dims.qk != problem.dim_qk || shipped.dims.v != problem.dim_v) continue;
    if (why_not(shipped.config, problem.dtype)) continue;
    names += fmt::format("{}'{}'", names.empty() ? "" : ", ", to_string(shipped.config));
  }
  return names;
}

}  // namespace

std::optional<std::string> why_not(const KernelConfig& config, Dtype dtype) {
  const auto bytes = static_cast<std::int64_t>(size_in_bytes(dtype));
  const Family& family = *config.family;
  if (family.pass != Pass::kForward) {
    return fmt::format("the {} family computes no forward pass", family.name);
  }
  if (bytes == family.element_bytes) return std::nullopt;
  return fmt::format("the {} family has elements of {} bits, and {} has {}", family.name,
                     8 * family.element_bytes, to_string(dtype), 8 * bytes);
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
  if (!strides) return std::nullopt;
  return config.family->why_no_strides(problem, *strides);
}

Choice choose_config(const Problem& problem, const DeviceLimits& limits,
                     const std::optional<OperandStrides>& strides, bool placed) {
  return Heuristic(problem, limits, strides, placed).choose();
}

Choice forced_config(const Problem& problem, const DeviceLimits& limits, const std::string& text,
                     const std::optional<OperandStrides>& strides) {
  const auto config = parse_config(text);
  if (!config) {
    const auto family = unknown_family(text);
    const std::string lacking =
        family ? fmt::format(": this build has no family '{}', but {}", *family, family_names())
               : "";
    base::fail(ErrorCode::kInvalidArgument,
               "'{}' is no kernel configuration{}; shipped for head dims {}/{} are {}", text,
               lacking, problem.dim_qk, problem.dim_v, shipped_names(problem));
  }
  auto reason = why_not(*config, problem.dtype);
  if (!reason) reason = why_not(*config, {problem.dim_qk, problem.dim_v}, limits);
  if (!reason) reason = why_not(*config, problem, strides);
  if (reason) {
    base::fail(ErrorCode::kUnsupported, "configuration '{}' is not possible here: {}", text,
               *reason);
  }
  return {*config, "asked for by the caller", {}};
}

}  // namespace annulus::attention
