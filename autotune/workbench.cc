#include "autotune/workbench.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <utility>

#include "autotune/space.h"
#include "base/fail.h"
#include "base/work.h"

namespace annulus::autotune {
namespace {

// How many random numbers are drawn for one tensor; drawing more would take longer than the
// measurements.
constexpr std::int64_t kRandomElements = std::int64_t{1} << 22;

// Tile lists that are kept for further candidates, on the host and on the device.
constexpr base::CacheLimits kMostLists{.bytes = std::int64_t{256} << 20};

// The tiles of one branch of all parts.
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

PredictedWorkbench::PredictedWorkbench(const Verifier& verifier, const jit::KernelCache& kernels,
                                       const attention::PipeDevice& pipes, const Problem& problem,
                                       int compilers)
    : verifier_(verifier), pipes_(pipes), ahead_(kernels, kernels_of(verifier), compilers) {
  for (Problem& branch : attention::branch_problems(problem)) {
    attention::KernelFeatures features = attention::features_of(branch);
    branches_.push_back({std::move(branch), std::move(features)});
  }
}

// Counters are of all branches together, so that the estimates of each are off by the same factor.
std::optional<Dropped> PredictedWorkbench::prepare(const attention::KernelConfig& config) {
  const std::string name = to_string(config);
  if (cycles_.contains(name)) return std::nullopt;
  const Verdict verdict = verifier_.check(config);
  if (verdict.reason) return Dropped{*verdict.reason, verdict.code};
  attention::KernelWork of_parts;
  for (std::size_t i = 0; i < branches_.size(); ++i) {
    of_parts += attention::estimate_work(config, branches_[i].features,
                                         tiles_of(verifier_.parts(), i, config));
  }
  double cycles = 0;
  for (const Branch& branch : branches_) {
    const attention::TileCounts tiles =
        attention::count_tiles(branch.problem, config.tile_rows, config.tile_columns);
    const attention::KernelWork whole = attention::extend_work(
        verdict.counted, of_parts, attention::estimate_work(config, branch.features, tiles));
    cycles += attention::predict(pipes_, config, branch.features.dims, tiles, whole,
                                 attention::least_bytes(branch.problem))
                  .predicted_cycles;
  }
  if (!std::isfinite(cycles)) return Dropped{"no CTA is predicted to fit"};
  cycles_[name] = cycles;
  return std::nullopt;
}

std::vector<std::vector<double>> PredictedWorkbench::measure(
    std::span<const attention::KernelConfig> configs, int rounds, CacheState) {
  std::vector<std::vector<double>> times;
  for (const attention::KernelConfig& config : configs) {
    times.emplace_back(static_cast<std::size_t>(rounds), cycles_.at(to_string(config)));
  }
  return times;
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
      options_(options),
      operands_(context_, problem, random_operands(problem, kRandomElements, seed)),
      scratch_(context_, static_cast<std::size_t>(2 * context_->info().l2_bytes)),
      start_(context_, device::Event::Timing::kOn),
      end_(context_, device::Event::Timing::kOn),
      tiles_(kMostLists),
      device_tiles_(context_, kMostLists),
      ahead_(kernels, kernels_of(verifier), compilers) {}

std::optional<Dropped> MeasuredWorkbench::prepare(const attention::KernelConfig& config) {
  const Verdict verdict = verifier_.check(config);
  return verdict.reason ? std::optional(Dropped{*verdict.reason, verdict.code}) : std::nullopt;
}

double MeasuredWorkbench::time_micros(const attention::BranchedForward& forward, int repeats,
                                      CacheState l2) {
  const auto run = [&] {
    forward.run(nullptr, operands_.operands, reinterpret_cast<void*>(workspace_.address()));
  };
  // The fill, twice as long as L2, evicts what the last configuration left. It also keeps the
  // device busy while the launches are queued, so that the device is measured and not the host.
  device::fill_bytes_async(*context_, scratch_.address(), 0, scratch_.bytes(), nullptr);
  if (l2 == CacheState::kWarm) run();
  start_.record(nullptr);
  for (int i = 0; i < repeats; ++i) run();
  end_.record(nullptr);
  end_.synchronize();
  return device::elapsed_millis(*context_, start_, end_) * 1e3 / repeats;
}

void MeasuredWorkbench::rest(int attempt) {
  std::this_thread::sleep_for(std::chrono::milliseconds(100 << attempt));
}

std::vector<MeasuredWorkbench::Ready*> MeasuredWorkbench::ready(
    std::span<const attention::KernelConfig> configs) {
  std::map<std::string, Ready> before = std::exchange(ready_, {});
  // What is not needed goes before anything is made, as lists of long problems are large.
  std::erase_if(before, [&](const auto& each) {
    return std::ranges::none_of(configs, [&](const attention::KernelConfig& config) {
      return to_string(config) == each.first;
    });
  });
  std::vector<Ready*> all;
  for (const attention::KernelConfig& config : configs) {
    const std::string name = to_string(config);
    if (auto found = before.extract(name)) {
      all.push_back(&ready_.insert(std::move(found)).position->second);
      continue;
    }
    const attention::PlanForm form{.dealt = attention::Dealt::kAsPays};
    attention::BranchedForward forward(
        context_, kernels_, problem_,
        attention::make_branch_plans(problem_, {config, "a candidate", {}}, limits_, form, &tiles_),
        &device_tiles_);
    const auto needed = static_cast<std::size_t>(forward.workspace_bytes());
    if (needed > workspace_.bytes()) {
      workspace_ = {};
      workspace_ = device::Buffer(context_, needed);
    }
    // The first runs warm up; the time of the last one decides how many one measurement has.
    time_micros(forward, 1, CacheState::kWarm);
    const double once = std::max(time_micros(forward, 1, CacheState::kWarm), 0.1);
    const int repeats = std::clamp(static_cast<int>(std::ceil(options_.least_micros / once)), 1,
                                   options_.max_repeats);
    all.push_back(&ready_.try_emplace(name, std::move(forward), repeats).first->second);
  }
  return all;
}

std::vector<std::vector<double>> MeasuredWorkbench::measure(
    std::span<const attention::KernelConfig> configs, int rounds, CacheState l2) {
  const std::vector<Ready*> all = ready(configs);
  std::vector<std::vector<double>> times(configs.size());
  for (int round = 0; round < rounds; ++round) {
    base::settle();
    for (std::size_t i = 0; i < configs.size(); ++i) {
      const std::size_t at = (i + static_cast<std::size_t>(round)) % configs.size();
      const int repeats = l2 == CacheState::kCold ? 1 : all[at]->repeats;
      times[at].push_back(time_micros(all[at]->forward, repeats, l2));
    }
  }
  return times;
}

}  // namespace annulus::autotune
