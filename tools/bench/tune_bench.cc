// Measures how close the tuner's search comes to trying the whole space, over ten shapes on
// simulated devices. Times are the predicted cycles of the pipe model, so the figures describe the
// search and not a GPU. They do not depend on the machine, so each is computed once and repeated in
// every round.

#include <annulus/tune.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

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
};

constexpr Shape kShapes[] = {
    {"sim:sm_80", 12, 12, 512, 512, 32, 32, "dense"},
    {"sim:sm_80", 12, 12, 512, 512, 32, 32, "window(63,63) | global(16)"},
    {"sim:sm_80", 8, 2, 1024, 1024, 64, 64, "causal"},
    {"sim:sm_80", 32, 8, 8192, 8192, 64, 64, "causal"},
    {"sim:sm_90a", 16, 16, 16384, 16384, 64, 64, "causal"},
    {"sim:sm_80", 4, 4, 2048, 2048, 128, 128, "causal"},
    {"sim:sm_80", 32, 8, 4096, 4096, 128, 128, "causal"},
    {"sim:sm_80", 8, 1, 1, 4096, 128, 128, "causal"},
    {"sim:sm_90a", 16, 16, 4096, 4096, 192, 128, "causal"},
    {"sim:sm_90a", 8, 8, 4096, 4096, 256, 256, "causal & window(1023,0)"},
};

std::string name_of(const Shape& shape) {
  const std::string dims = shape.dim_qk == shape.dim_v
                               ? std::to_string(shape.dim_qk)
                               : std::to_string(shape.dim_qk) + "/" + std::to_string(shape.dim_v);
  return std::string(shape.device).substr(4) + " H" + std::to_string(shape.heads) + " S" +
         std::to_string(shape.seq_q) + (shape.seq_q == shape.seq_k ? "" : "/") +
         (shape.seq_q == shape.seq_k ? "" : std::to_string(shape.seq_k)) + " D" + dims + " " +
         shape.pattern;
}

struct Found {
  double over_best = 0;
  double over_default = 0;
  double share = 0;  // share of the space that was tried
};

TuneResult tuned(const annulus::Device& device, const Problem& problem, bool exhaustive) {
  TuneOptions options;
  options.exhaustive = exhaustive;
  options.force = true;
  const TuneResult result = annulus::tune(device, problem, options);
  if (!result.predicted) throw std::runtime_error("times are to be predicted");
  return result;
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
  problem.pattern = annulus::Pattern::parse(shape.pattern);
  const TuneResult best = tuned(device, problem, true);
  const TuneResult found = tuned(device, problem, false);
  double least = best.default_time;
  for (const annulus::TuneCandidate& trial : best.trials) {
    if (trial.outcome == "tried") least = std::min(least, trial.time);
  }
  return {found.time / least, found.time / found.default_time,
          static_cast<double>(found.tried) / static_cast<double>(best.tried)};
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
               .bar = 1.03,
               .lower_is_better = true},
              [&found, &shape] { return found(shape).over_best; });
  }
  const auto most = [&found](double Found::*member) {
    double value = 0;
    for (const Shape& shape : kShapes) value = std::max(value, found(shape).*member);
    return value;
  };
  bench.add({.name = "the same, largest of ten shapes",
             .unit = "x",
             .bar = 1.03,
             .lower_is_better = true},
            [&] { return most(&Found::over_best); });
  bench.add({.name = "cycles found over the default's, largest of ten shapes",
             .unit = "x",
             .bar = 1.0,
             .lower_is_better = true},
            [&] { return most(&Found::over_default); });
  bench.add({.name = "cycles found over the default's, median of ten shapes", .unit = "x"}, [&] {
    std::vector<double> ratios;
    for (const Shape& shape : kShapes) ratios.push_back(found(shape).over_default);
    return annulus::bench::median(ratios);
  });
  bench.add({.name = "share of the space that was tried, median of ten shapes", .unit = ""}, [&] {
    std::vector<double> shares;
    for (const Shape& shape : kShapes) shares.push_back(found(shape).share);
    return annulus::bench::median(shares);
  });
  return bench.run();
}
