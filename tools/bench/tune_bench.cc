// Measures how close the result of the tuner's search is to the result of trying the whole space,
// for twenty shapes of all families on simulated devices. It also measures how often two searches
// agree if measurements are noisy. Times are predicted cycles of the pipe model, so the figures
// describe the search and not a GPU. They do not depend on the machine, so each is computed once
// and repeated in every round.

#include <annulus/tune.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "autotune/fake_bench.h"
#include "autotune/search.h"
#include "harness.h"

namespace {

using annulus::Problem;
using annulus::TuneOptions;
using annulus::TuneResult;

struct Shape {
  const char* device;
  std::int64_t heads, kv_heads, seq_q, seq_k;
  std::int64_t dim_qk, dim_v;
  const char* pattern;
  annulus::Dtype dtype = annulus::Dtype::kBfloat16;
};

constexpr Shape kShapes[] = {
    {"sim:sm_80", 12, 12, 512, 512, 32, 32, "dense"},
    {"sim:sm_80", 12, 12, 512, 512, 32, 32, "window(63,63) | global(16)"},
    {"sim:sm_80", 8, 2, 1024, 1024, 64, 64, "causal"},
    {"sim:sm_80", 32, 8, 8192, 8192, 64, 64, "causal"},
    {"sim:sm_80", 4, 4, 2048, 2048, 128, 128, "causal"},
    {"sim:sm_80", 32, 8, 4096, 4096, 128, 128, "causal"},
    {"sim:sm_80", 16, 4, 8192, 8192, 128, 128, "causal & window(1023,0)"},
    {"sim:sm_80", 8, 1, 1, 4096, 128, 128, "causal"},
    {"sim:sm_80", 16, 16, 2048, 2048, 256, 256, "causal"},
    {"sim:sm_90a", 12, 12, 512, 512, 64, 64, "dense"},
    {"sim:sm_90a", 16, 16, 16384, 16384, 64, 64, "causal"},
    {"sim:sm_90a", 16, 16, 4096, 4096, 96, 96, "causal"},
    {"sim:sm_90a", 32, 8, 8192, 8192, 128, 128, "causal"},
    {"sim:sm_90a", 32, 8, 2048, 2048, 128, 128, "causal & (window(511,0) | sink(16))"},
    {"sim:sm_90a", 16, 2, 1, 16384, 128, 128, "causal"},
    {"sim:sm_90a", 16, 16, 4096, 4096, 192, 128, "causal"},
    {"sim:sm_90a", 8, 8, 4096, 4096, 256, 256, "causal & window(1023,0)"},
    {"sim:sm_90a", 16, 16, 4096, 4096, 64, 64, "dense", annulus::Dtype::kFloat8E4M3},
    {"sim:sm_90a", 32, 8, 8192, 8192, 128, 128, "causal", annulus::Dtype::kFloat8E4M3},
    {"sim:sm_90a", 8, 8, 2048, 2048, 256, 256, "causal", annulus::Dtype::kFloat8E4M3},
};

std::string name_of(const Shape& shape) {
  const std::string dims = shape.dim_qk == shape.dim_v
                               ? std::to_string(shape.dim_qk)
                               : std::to_string(shape.dim_qk) + "/" + std::to_string(shape.dim_v);
  return std::string(shape.device).substr(4) + " H" + std::to_string(shape.heads) + " S" +
         std::to_string(shape.seq_q) + (shape.seq_q == shape.seq_k ? "" : "/") +
         (shape.seq_q == shape.seq_k ? "" : std::to_string(shape.seq_k)) + " D" + dims + " " +
         shape.pattern + (shape.dtype == annulus::Dtype::kBfloat16 ? "" : " e4m3");
}

struct Found {
  double over_best = 0;
  double over_default = 0;
  int tried = 0;
  int space = 0;  // candidates that pass
  int pairs = 0;  // pairs of searches with noise
  int agreed = 0;
};

TuneResult tuned(const annulus::Device& device, const Problem& problem, bool exhaustive) {
  TuneOptions options;
  options.exhaustive = exhaustive;
  options.force = true;
  const TuneResult result = annulus::tune(device, problem, options);
  if (!result.predicted) throw std::runtime_error("times are to be predicted");
  return result;
}

// The GPU clock with which predicted cycles are converted into times. A search needs times, because
// it limits the time of its rounds of measurements.
constexpr double kCyclesOfMicrosecond = 1500;

// Runs pairs of searches with noise of 3 % on the measured times. Two searches agree if they end
// with the same configuration, or with two configurations whose true times differ by less than the
// least gain that is worth a change.
void compare_searches(const std::vector<annulus::TuneCandidate>& space, const std::string& standard,
                      Found* found) {
  std::vector<annulus::tuned::Trial> trials;
  std::map<std::string, double> truth;
  std::size_t default_at = 0;
  for (const annulus::TuneCandidate& candidate : space) {
    if (candidate.outcome != "tried") continue;
    if (candidate.config == standard) default_at = trials.size();
    truth[candidate.config] = candidate.time / kCyclesOfMicrosecond;
    trials.push_back({.config = annulus::attention::parse_config(candidate.config).value(),
                      .predicted = candidate.model_cycles});
  }
  const auto time_of = [&](const annulus::attention::KernelConfig& config) {
    return truth.at(to_string(config));
  };
  constexpr int kPairs = 10;
  constexpr double kNoise = 0.03;
  for (std::uint64_t seed = 0; seed < kPairs; ++seed) {
    double times[2];
    for (std::uint64_t which = 0; which < 2; ++which) {
      annulus::test::FakeBench bench(time_of, kNoise, 2 * seed + which);
      const auto result = annulus::autotune::search(trials, default_at, bench, {});
      times[which] = time_of(result.trials[result.winner].config);
    }
    ++found->pairs;
    const double margin = annulus::tuned::SearchOptions().margin;
    found->agreed += std::max(times[0], times[1]) <= (1 + margin) * std::min(times[0], times[1]);
  }
}

Found find(const Shape& shape) {
  annulus::DeviceOptions options;
  options.name = shape.device;
  options.tuned_path = "";
  const annulus::Device device = annulus::Device::open(options);
  Problem problem;
  problem.heads = shape.heads;
  problem.kv_heads = shape.kv_heads;
  problem.seq_q = shape.seq_q;
  problem.seq_k = shape.seq_k;
  problem.dim_qk = shape.dim_qk;
  problem.dim_v = shape.dim_v;
  problem.dtype = shape.dtype;
  problem.pattern = annulus::Pattern::parse(shape.pattern);
  const TuneResult best = tuned(device, problem, true);
  annulus::DeviceOptions fresh = options;  // it has no stored results at first
  const TuneResult found = tuned(annulus::Device::open(fresh), problem, false);
  double least = best.default_time;
  for (const annulus::TuneCandidate& trial : best.trials) {
    if (trial.outcome == "tried") least = std::min(least, trial.time);
  }
  Found all{.over_best = found.time / least,
            .over_default = found.time / found.default_time,
            .tried = found.tried,
            .space = best.tried};
  compare_searches(best.trials, best.default_config, &all);
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  annulus::bench::Bench bench("tune_bench", argc, argv);
  std::map<const Shape*, Found> known;
  const auto found = [&known](const Shape& shape) -> const Found& {
    const auto at = known.find(&shape);
    return at != known.end() ? at->second : known[&shape] = find(shape);
  };
  for (const Shape& shape : kShapes) {
    bench.add({.name = "cycles found over the least of the space: " + name_of(shape),
               .unit = "x",
               .bar = 1.02,
               .lower_is_better = true},
              [&found, &shape] { return found(shape).over_best; });
  }
  const auto most = [&found](double Found::*member) {
    double value = 0;
    for (const Shape& shape : kShapes) value = std::max(value, found(shape).*member);
    return value;
  };
  bench.add({.name = "the same, largest of twenty shapes",
             .unit = "x",
             .bar = 1.02,
             .lower_is_better = true},
            [&] { return most(&Found::over_best); });
  bench.add({.name = "cycles found over the default's, largest of twenty shapes",
             .unit = "x",
             .bar = 1.0,
             .lower_is_better = true},
            [&] { return most(&Found::over_default); });
  bench.add({.name = "cycles found over the default's, median of twenty shapes", .unit = "x"}, [&] {
    std::vector<double> ratios;
    for (const Shape& shape : kShapes) ratios.push_back(found(shape).over_default);
    return annulus::bench::median(ratios);
  });
  const auto total = [&found](int Found::*member) {
    double sum = 0;
    for (const Shape& shape : kShapes) sum += found(shape).*member;
    return sum;
  };
  bench.add({.name = "candidates tried, share of all of the twenty spaces",
             .unit = "",
             .bar = 0.15,
             .lower_is_better = true},
            [&] { return total(&Found::tried) / total(&Found::space); });
  bench.add({.name = "share of the space that was tried, mean of twenty shapes",
             .unit = "",
             .bar = 0.15,
             .lower_is_better = true},
            [&] {
              double sum = 0;
              for (const Shape& shape : kShapes) {
                sum += static_cast<double>(found(shape).tried) / found(shape).space;
              }
              return sum / static_cast<double>(std::size(kShapes));
            });
  bench.add({.name = "winners of two searches through 3 % of noise that agree or tie",
             .unit = "",
             .bar = 0.95,
             .lower_is_better = false},
            [&] { return total(&Found::agreed) / total(&Found::pairs); });
  return bench.run();
}
