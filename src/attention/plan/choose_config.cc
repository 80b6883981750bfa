#include "attention/plan/choose_config.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "attention/cost/pipe_model.h"
#include "attention/kernels/family.h"
#include "attention/kernels/withheld.h"
#include "attention/tiles/pattern_facts.h"
#include "base/fail.h"
#include "base/math.h"
#include "base/shortened.h"

namespace annulus::attention {
namespace {

bool computes_one_head_and_row(const KernelConfig& config) {
  return cta_shape(config).packed_heads() == 1;
}

// The most parts that choose_split() may make of each row if rows leave multiprocessors idle: the
// number that fills them, of several steps each. Less than 2: rows are not split.
std::int64_t parts_of_rows(const TileCounts& tiles, const KernelConfig& config,
                           const DeviceLimits& limits) {
  constexpr std::int64_t kLeastSteps = 8;
  const CtaShape cta = cta_shape(config);
  const std::int64_t works = tiles.ctas / cta.packed_heads();
  const std::int64_t slots = limits.multiprocessors / cta.cluster;
  if (!supports_kv_splits(config) || works == 0 || works >= slots) return 1;
  return std::min(tiles.longest_row / (kLeastSteps * cta.step_tiles), base::ceil_div(slots, works));
}

TileCounts in_parts(TileCounts tiles, std::int64_t parts) {
  tiles.lengths.clear();
  tiles.row_tiles *= parts;
  tiles.ctas *= parts;
  tiles.longest_row = base::ceil_div(tiles.longest_row, parts);
  return tiles;
}

// Chooses the configuration for one problem on one device. The candidates are all shipped
// configurations and the configurations that families make for the pattern's blocks. The choice is
// the candidate with the least time by the pipe model. sort_candidates() leaves out impossible
// configurations and those that would not work well for a reason that the model does not include.
class Chooser {
 public:
  Chooser(const Problem& problem, const DeviceLimits& limits,
          const std::optional<OperandStrides>& strides, const Segments& segments,
          std::span<const KernelConfig> broken)
      : problem_(problem),
        limits_(limits),
        device_(pipe_device(limits)),
        strides_(strides),
        dims_{problem.dim_qk, problem.dim_v},
        blocks_(finest_blocks(problem.pattern.node())),
        segments_(segments),
        broken_(broken) {}

  Choice choose() {
    sort_candidates();
    admit_unsuited();
    if (candidates_.empty()) refuse();
    const std::size_t taken = candidates_.size() == 1 ? 0 : fastest();
    choice_.config = candidates_[taken].config;
    choice_.reason = candidates_.size() == 1
                         ? "the only one that is possible and suits the problem"
                         : fmt::format("the fastest of {} by the pipe model, {:.1f} us predicted",
                                       candidates_.size(), candidates_[taken].micros);
    if (!strided_.empty()) {
      choice_.reason += fmt::format("; not of the {} family: {}", strided_family_, strided_);
    }
    if (!withheld_.empty()) choice_.reason += "; " + withheld_;
    name_second();
    reject_others(taken);
    return std::move(choice_);
  }

  // The time of one configuration, for all branches of a sum together.
  double micros_of(const KernelConfig& config) {
    candidates_ = {{config}};
    predict_branches();
    return candidates_.front().micros;
  }

 private:
  struct Candidate {
    KernelConfig config;
    double micros = 0;
  };

  void sort_candidates() {
    for (const ShippedConfig& shipped : shipped_configs()) {
      if (shipped.dims.qk == dims_.qk && shipped.dims.v == dims_.v) sort(shipped.config);
    }
    if (blocks_.columns >= kCoarse || blocks_.columns % kShippedColumns == 0) return;
    for (const Family* family : families()) {
      if (family->for_blocks == nullptr) continue;
      family->for_blocks([&](std::span<const KernelConfig> made) {
        for (const KernelConfig& config : made) sort(config);
      });
    }
  }

  void sort(const KernelConfig& config) {
    if (why_not(config, problem_.dtype)) return;  // made for problems of other elements
    if (is_broken(config)) {
      choice_.rejected.push_back({config, "its kernel does not work here"});
    } else if (auto reason = why_impossible(config)) {
      choice_.rejected.push_back({config, std::move(*reason)});
    } else if (auto withheld = why_withheld(config, dims_, limits_)) {
      add_reason(*withheld, &withheld_);
      choice_.rejected.push_back({config, std::move(*withheld)});
    } else if (auto unfit = why_unfit(config)) {
      unsuited_.push_back({config, std::move(*unfit)});
    } else {
      candidates_.push_back({config});
    }
  }

  bool is_broken(const KernelConfig& config) const {
    return std::ranges::find(broken_, config) != broken_.end();
  }

  std::optional<std::string> why_unfit(const KernelConfig& config) const {
    return family_of(config).why_unsuited(
        config, {problem_, blocks_, limits_.arch, positions_for(config, segments_)});
  }

  std::optional<std::string> why_impossible(const KernelConfig& config) {
    if (auto reason = why_not(config, dims_, limits_)) return reason;
    if (auto reason = why_spills(config, dims_, limits_.arch)) return reason;
    auto reason = why_not(config, problem_, strides_);
    if (reason) {
      strided_ = *reason;
      strided_family_ = config.family->name;
    }
    return reason;
  }

  // If no configuration suits, configurations of one head and one row become candidates, because
  // they give right results for every problem.
  void admit_unsuited() {
    const bool none = candidates_.empty();
    for (Rejected& other : unsuited_) {
      if (none && computes_one_head_and_row(other.config)) {
        candidates_.push_back({other.config});
      } else {
        choice_.rejected.push_back(std::move(other));
      }
    }
  }

  [[noreturn]] void refuse() const {
    if (!withheld_.empty()) {
      base::fail(ErrorCode::kUnsupported,
                 "no kernel is left for {} with head dims {}/{} on {}: {}; a configuration that "
                 "PlanOptions::config names runs all the same{}",
                 to_string(problem_.dtype), dims_.qk, dims_.v, jit::to_string(limits_.arch),
                 withheld_,
                 problem_.dtype == Dtype::kFloat8E4M3 ? ", and bf16 has other kernels" : "");
    }
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

  // The index of the candidate with the least predicted time; if others take little more, the first
  // of them in the table, so that similar problems get the same kernel.
  std::size_t fastest() {
    predict_branches();
    constexpr double kAlike = 1.015;
    const double least = std::ranges::min(candidates_, {}, &Candidate::micros).micros;
    const auto taken = std::ranges::find_if(candidates_, [&](const Candidate& candidate) {
      return candidate.micros <= kAlike * least;
    });
    return static_cast<std::size_t>(taken - candidates_.begin());
  }

  // Sets the times of all candidates.
  void predict_branches() {
    for (const Pattern& branch : problem_.pattern.branches()) {
      Problem alone = problem_;
      alone.pattern = branch;
      predict_all(alone);
    }
  }

  // Adds the times of a problem whose pattern is not a sum.
  void predict_all(const Problem& problem) {
    std::map<std::pair<int, int>, TileCounts> counted;
    for (Candidate& candidate : candidates_) {
      const KernelConfig& config = candidate.config;
      const std::pair tile(config.tile_rows, config.tile_columns);
      auto at = counted.find(tile);
      if (at == counted.end()) at = counted.emplace(tile, tiles_of(problem, config)).first;
      candidate.micros += micros_of(problem, config, at->second);
    }
  }

  // The predicted time of one configuration. Rows are taken in parts if that is faster.
  double micros_of(const Problem& problem, const KernelConfig& config,
                   const TileCounts& whole) const {
    const auto micros = [&](const TileCounts& tiles) {
      return predict(device_, config, dims_, tiles,
                     estimate_work(config, features_of(problem), tiles), least_bytes(problem))
          .predicted_micros;
    };
    const double of_rows = micros(whole);
    const std::int64_t parts = parts_of_rows(whole, config, limits_);
    if (parts < 2) return of_rows;
    KvSplit split;
    split.slots = parts * whole.row_tiles;
    const double merge =
        merge_cycles(device_, split, problem, config.tile_rows) / device_.clock_hertz * 1e6;
    return std::min(of_rows, micros(in_parts(whole, parts)) + merge);
  }

  // Counts the tiles of a problem. If a pattern has no tile, its blocks may be chosen at each run
  // (selection). Then the counts assume that each row keeps kChosen blocks, and that neighbouring
  // rows keep different ones.
  TileCounts tiles_of(const Problem& problem, const KernelConfig& config) const {
    constexpr std::int64_t kChosen = 16;
    TileCounts tiles = estimate_tiles(problem, config.tile_rows, config.tile_columns);
    if (tiles.tiles() > 0 || tiles.ctas == 0 || blocks_.columns > problem.seq_k) return tiles;
    const std::int64_t of_row =
        kChosen * base::ceil_div(blocks_.columns, std::int64_t{config.tile_columns}) *
        base::ceil_div(std::int64_t{config.tile_rows}, std::max<std::int64_t>(1, blocks_.rows));
    const std::int64_t most = base::ceil_div(problem.seq_k, std::int64_t{config.tile_columns});
    tiles.longest_row = std::min(of_row, most);
    tiles.full_tiles = tiles.longest_row * tiles.ctas;
    tiles.lengths.clear();
    return tiles;
  }

  // Sets the second choice: the fastest configuration of one head and row, in case the tiles do not
  // allow the first choice. Candidates are preferred to configurations that do not suit.
  void name_second() {
    if (computes_one_head_and_row(choice_.config)) return;
    const Candidate* best = nullptr;
    for (const Candidate& candidate : candidates_) {
      if (!computes_one_head_and_row(candidate.config)) continue;
      if (best == nullptr || candidate.micros < best->micros) best = &candidate;
    }
    if (best != nullptr) {
      choice_.second = best->config;
      return;
    }
    for (const Rejected& other : choice_.rejected) {
      if (is_broken(other.config) || !computes_one_head_and_row(other.config)) continue;
      if (why_impossible(other.config) || why_withheld(other.config, dims_, limits_)) continue;
      choice_.second = other.config;
      return;
    }
  }

  void reject_others(std::size_t taken) {
    for (std::size_t at = 0; at < candidates_.size(); ++at) {
      if (at == taken) continue;
      choice_.rejected.push_back(
          {candidates_[at].config,
           fmt::format("legal, but {:.1f} us are predicted", candidates_[at].micros)});
    }
  }

  // Shipped tiles fit blocks of at least kCoarse columns, and blocks whose columns are a multiple
  // of kShippedColumns.
  static constexpr std::int64_t kCoarse = 128, kShippedColumns = 64;

  const Problem& problem_;
  const DeviceLimits& limits_;
  const PipeDevice device_;
  const std::optional<OperandStrides>& strides_;
  Dims dims_;
  Blocks blocks_;
  const Segments& segments_;
  const std::span<const KernelConfig> broken_;

  std::vector<Candidate> candidates_;
  std::vector<Rejected> unsuited_;
  std::string strided_;  // why a family was left out because of strides
  std::string strided_family_;
  std::string withheld_;  // why possible configurations are withheld
  Choice choice_;
};

// The shipped configurations for a problem's head dims and dtype, as text: "'mma m64 n64 w4 s2',
// ...".
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
  const Family& family = family_of(config);
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
  return family_of(config).why_no_strides(problem, *strides);
}

Choice choose_config(const Problem& problem, const DeviceLimits& limits,
                     const std::optional<OperandStrides>& strides, const Segments& segments,
                     std::span<const KernelConfig> broken) {
  return Chooser(problem, limits, strides, segments, broken).choose();
}

double predicted_micros(const Problem& problem, const KernelConfig& config,
                        const DeviceLimits& limits, const Segments& segments) {
  return Chooser(problem, limits, std::nullopt, segments, {}).micros_of(config);
}

Choice forced_config(const Problem& problem, const DeviceLimits& limits, const std::string& text,
                     const std::optional<OperandStrides>& strides) {
  const auto config = parse_config(text);
  if (!config) {
    const auto family = unknown_family(text);
    const std::string lacking = family ? fmt::format(": this build has no family '{}', but {}",
                                                     base::shortened(*family), family_names())
                                       : "";
    base::fail(ErrorCode::kInvalidArgument,
               "'{}' is not a kernel configuration{}; shipped for head dims {}/{} are {}",
               base::shortened(text), lacking, problem.dim_qk, problem.dim_v,
               shipped_names(problem));
  }
  auto reason = why_not(*config, problem.dtype);
  if (!reason) reason = why_not(*config, {problem.dim_qk, problem.dim_v}, limits);
  if (!reason) reason = why_not(*config, problem, strides);
  if (reason) {
    base::fail(ErrorCode::kUnsupported, "configuration '{}' is not possible here: {}", text,
               *reason);
  }
  return {.config = *config, .reason = "requested by the caller", .rejected = {}, .named = true};
}

}  // namespace annulus::attention
