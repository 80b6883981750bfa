#include "autotune/workbench.h"

#include <cmath>
#include <memory>
#include <utility>

#include "tuned/space.h"

namespace annulus::autotune {
namespace {

// The limit of tile lists that are kept for further candidates, on the host and on the device.
constexpr base::CacheLimits kMaxLists{.bytes = std::int64_t{256} << 20};

// The tiles of one branch, over all parts.
attention::TileCounts tiles_of(const std::vector<Problem>& parts, std::size_t branch,
                               const attention::KernelConfig& config) {
  attention::TileCounts all;
  for (const Problem& part : parts) {
    const attention::TileCounts tiles = attention::count_tiles(
        attention::branch_problems(part)[branch], config.tile_rows, config.tile_columns);
    all.ctas += tiles.ctas;
    all.full_tiles += tiles.full_tiles;
    all.partial_tiles += tiles.partial_tiles;
  }
  return all;
}

AheadCompiler::KernelsOf kernels_of(const Verifier& verifier) {
  return [&verifier](const attention::KernelConfig& config) { return verifier.kernels_of(config); };
}

}  // namespace

std::optional<Dropped> PredictingWorkbench::prepare(const attention::KernelConfig& config) {
  const std::string name = to_string(config);
  if (cycles_.contains(name)) return std::nullopt;
  double cycles = 0;
  if (auto dropped = predict(config, &cycles)) return dropped;
  if (!std::isfinite(cycles)) return Dropped{"no CTA is predicted to fit"};
  cycles_[name] = cycles;
  return std::nullopt;
}

std::vector<std::vector<double>> PredictingWorkbench::measure(
    std::span<const attention::KernelConfig> configs, int rounds, tuned::CacheState) {
  std::vector<std::vector<double>> times;
  for (const attention::KernelConfig& config : configs) {
    times.emplace_back(static_cast<std::size_t>(rounds), cycles_.at(to_string(config)));
  }
  return times;
}

PredictedWorkbench::PredictedWorkbench(const Verifier& verifier, const jit::KernelCache& kernels,
                                       const attention::PipeDevice& pipes, const Problem& problem,
                                       int compilers)
    : verifier_(verifier), pipes_(pipes), ahead_(kernels, kernels_of(verifier), compilers) {
  for (Problem& branch : attention::branch_problems(problem)) {
    attention::KernelFeatures features = attention::features_of(branch);
    branches_.push_back({std::move(branch), std::move(features)});
  }
}

// The counters are sums over all branches, so the estimate of each branch is off by the same
// factor.
std::optional<Dropped> PredictedWorkbench::predict(const attention::KernelConfig& config,
                                                   double* cycles) {
  const Verdict verdict = verifier_.check(config);
  if (verdict.reason) return Dropped{*verdict.reason, verdict.code};
  attention::KernelWork of_parts;
  for (std::size_t i = 0; i < branches_.size(); ++i) {
    of_parts += attention::estimate_work(config, branches_[i].features,
                                         tiles_of(verifier_.parts(), i, config));
  }
  *cycles = 0;
  for (const Branch& branch : branches_) {
    const attention::TileCounts tiles =
        attention::count_tiles(branch.problem, config.tile_rows, config.tile_columns);
    const attention::KernelWork whole = attention::extend_work(
        verdict.counted, of_parts, attention::estimate_work(config, branch.features, tiles));
    *cycles += attention::predict(pipes_, config, branch.features.dims, tiles, whole,
                                  attention::least_bytes(branch.problem))
                   .predicted_cycles;
  }
  return std::nullopt;
}

MeasuredWorkbench::MeasuredWorkbench(const Verifier& verifier, device::ContextPointer context,
                                     jit::KernelCache& kernels, attention::DeviceLimits limits,
                                     const Problem& problem, std::uint64_t seed, int compilers,
                                     const MeasureOptions& options)
    : verifier_(verifier),
      context_(std::move(context)),
      kernels_(kernels),
      limits_(limits),
      problem_(problem),
      operands_(context_, problem, random_operands(problem, kTimedElements, seed)),
      tiles_(kMaxLists),
      device_tiles_(context_, kMaxLists),
      timer_(context_, options),
      ahead_(kernels, kernels_of(verifier), compilers) {}

std::optional<Dropped> MeasuredWorkbench::prepare(const attention::KernelConfig& config) {
  const Verdict verdict = verifier_.check(config);
  return verdict.reason ? std::optional(Dropped{*verdict.reason, verdict.code}) : std::nullopt;
}

RoundTimer::Run MeasuredWorkbench::make_run(const attention::KernelConfig& config) {
  const attention::PlanForm form{.dealt = attention::Dealt::kAsPays};
  const auto forward = std::make_shared<const attention::BranchedForward>(
      context_, kernels_, problem_,
      attention::make_branch_plans(problem_, {config, "a candidate", {}}, limits_, form, &tiles_),
      &device_tiles_);
  const auto needed = static_cast<std::size_t>(forward->workspace_bytes());
  if (needed > workspace_.bytes()) {
    workspace_ = {};
    workspace_ = device::Buffer(context_, needed);
  }
  return [this, forward] {
    forward->run(nullptr, operands_.operands, reinterpret_cast<void*>(workspace_.address()));
  };
}

std::vector<std::vector<double>> MeasuredWorkbench::measure(
    std::span<const attention::KernelConfig> configs, int rounds, tuned::CacheState l2) {
  return timer_.measure(configs, rounds, l2,
                        [this](const attention::KernelConfig& config) { return make_run(config); });
}

}  // namespace annulus::autotune
