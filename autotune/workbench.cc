#include "autotune/workbench.h"

#include <algorithm>
#include <cmath>

#include "autotune/space.h"
#include "base/fail.h"

namespace annulus::autotune {
namespace {

// How many random numbers are drawn for one tensor; drawing more would take longer than the
// measurements.
constexpr std::int64_t kRandomElements = std::int64_t{1} << 22;

attention::KernelWork sum_of_estimates(const attention::KernelConfig& config,
                                       const attention::KernelFeatures& features,
                                       const std::vector<Problem>& parts) {
  attention::TileCounts all;
  for (const Problem& part : parts) {
    const attention::TileCounts tiles =
        attention::count_tiles(part, config.tile_rows, config.tile_columns);
    all.ctas += tiles.ctas;
    all.full_tiles += tiles.full_tiles;
    all.partial_tiles += tiles.partial_tiles;
  }
  return attention::estimate_work(config, features, all);
}

}  // namespace

PredictedWorkbench::PredictedWorkbench(const Verifier& verifier, const attention::PipeDevice& pipes,
                                       const Problem& problem)
    : verifier_(verifier),
      pipes_(pipes),
      problem_(problem),
      features_(attention::features_of(problem)) {}

std::optional<Dropped> PredictedWorkbench::prepare(const attention::KernelConfig& config) {
  const std::string name = to_string(config);
  if (cycles_.contains(name)) return std::nullopt;
  const Verdict verdict = verifier_.check(config);
  if (verdict.reason) return Dropped{*verdict.reason, verdict.code};
  const attention::TileCounts tiles =
      attention::count_tiles(problem_, config.tile_rows, config.tile_columns);
  const attention::KernelWork whole = attention::extend_work(
      verdict.counted, sum_of_estimates(config, features_, verifier_.parts()),
      attention::estimate_work(config, features_, tiles));
  const attention::Prediction made = attention::predict(pipes_, config, features_.dims, tiles,
                                                        whole, attention::least_bytes(problem_));
  if (!std::isfinite(made.predicted_cycles)) return Dropped{"no CTA is predicted to fit"};
  cycles_[name] = made.predicted_cycles;
  return std::nullopt;
}

std::vector<std::vector<double>> PredictedWorkbench::measure(
    std::span<const attention::KernelConfig> configs, int rounds) {
  std::vector<std::vector<double>> times;
  for (const attention::KernelConfig& config : configs) {
    times.emplace_back(static_cast<std::size_t>(rounds), cycles_.at(to_string(config)));
  }
  return times;
}

MeasuredWorkbench::MeasuredWorkbench(const Verifier& verifier, device::ContextPointer context,
                                     jit::KernelCache& kernels, attention::DeviceLimits limits,
                                     const Problem& problem, std::uint64_t seed,
                                     const MeasureOptions& options)
    : verifier_(verifier),
      context_(std::move(context)),
      kernels_(kernels),
      limits_(limits),
      problem_(problem),
      options_(options),
      operands_(context_, problem, random_operands(problem, kRandomElements, seed)),
      scratch_(context_, static_cast<std::size_t>(2 * context_->info().l2_bytes)),
      start_(context_, device::Event::Timing::kOn),
      end_(context_, device::Event::Timing::kOn) {}

std::optional<Dropped> MeasuredWorkbench::prepare(const attention::KernelConfig& config) {
  const Verdict verdict = verifier_.check(config);
  return verdict.reason ? std::optional(Dropped{*verdict.reason, verdict.code}) : std::nullopt;
}

double MeasuredWorkbench::time_micros(const attention::Forward& forward, int repeats) {
  // The fill, twice as long as L2, evicts what the last configuration left. It also keeps the
  // device busy while the launches are queued, so that the device is measured and not the host.
  device::fill_bytes_async(*context_, scratch_.address(), 0, scratch_.bytes(), nullptr);
  start_.record(nullptr);
  for (int i = 0; i < repeats; ++i) {
    forward.run(nullptr, operands_.operands, reinterpret_cast<void*>(workspace_.address()));
  }
  end_.record(nullptr);
  end_.synchronize();
  return device::elapsed_millis(*context_, start_, end_) * 1e3 / repeats;
}

std::vector<std::vector<double>> MeasuredWorkbench::measure(
    std::span<const attention::KernelConfig> configs, int rounds) {
  std::vector<attention::Forward> forwards;
  std::vector<int> repeats;
  for (const attention::KernelConfig& config : configs) {
    forwards.emplace_back(context_, kernels_,
                          attention::make_plan(problem_, {config, "a candidate", {}}, limits_,
                                               {.dealt = attention::Dealt::kAsPays}));
    const auto needed = static_cast<std::size_t>(forwards.back().plan().workspace_bytes);
    if (needed > workspace_.bytes()) workspace_ = device::Buffer(context_, needed);
    // The first run warms up; the second one's time decides how many launches one measurement has.
    time_micros(forwards.back(), 1);
    const double once = std::max(time_micros(forwards.back(), 1), 0.1);
    repeats.push_back(options_.cold_cache
                          ? 1
                          : std::clamp(static_cast<int>(std::ceil(options_.least_micros / once)), 1,
                                       options_.max_repeats));
  }
  std::vector<std::vector<double>> times(configs.size());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < configs.size(); ++i) {
      const std::size_t at = (i + static_cast<std::size_t>(round)) % configs.size();
      times[at].push_back(time_micros(forwards[at], repeats[at]));
    }
  }
  return times;
}

}  // namespace annulus::autotune
