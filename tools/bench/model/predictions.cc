// Prints the predictions of the pipe model (src/attention/cost/pipe_model.h) for the problems of
// gpu_problems.h on an H200, next to the targets. These are predictions and not measurements: no
// GPU is used and no kernel is compiled.
//
//   model predictions                prints the table
//   model predictions --write FILE   puts it between the marks of a document
//   model predictions --check FILE   exits 1 if the document has another table

#include <fmt/core.h>

#include <map>
#include <string>
#include <vector>

#include "attention/plan/plan.h"
#include "attention/plan/predict_plan.h"
#include "document.h"
#include "gpu_problems.h"
#include "model/model.h"
#include "published.h"

namespace {

using namespace annulus;

// The best published figure of other programs. docs/performance.md names the sources. With `share`,
// the figure is relative to the other program's dense kernel.
const char* best_known(const std::string& name, bool share) {
  static const std::map<std::string, const char*> kRates = {
      {"D128 16k full", "648 to 701 [1]"},
      {"D128 16k causal", "616 to 679 [1]"},
      {"D64 16k full", "497 [1]"},
      {"D256 16k full", "756 [1]"},
      {"D128 40k block 64, 90 % sparse, a layout for each head", "524 [2]"},
  };
  static const std::map<std::string, const char*> kShares = {
      {"D128 16k list that keeps everything", "1.15 to 1.2 x [3]"},
      {"D128 40k block 64, 90 % sparse, a layout for each head", "0.81 [2]"},
  };
  const auto& best = share ? kShares : kRates;
  const auto found = best.find(name);
  return found == best.end() ? "" : found->second;
}

struct Predicted {
  std::string config;
  attention::Prediction made;
  attention::PredictedRange range;
};

Predicted predict(const Problem& problem) {
  const device::DeviceInfo info = bench::h200();
  const attention::DeviceLimits limits = {.arch = {90, 'a'},
                                          .multiprocessors = info.multiprocessors,
                                          .shared_bytes_per_block = 227 * 1024,
                                          .clock_kilohertz = info.clock_kilohertz,
                                          .memory_clock_kilohertz = info.memory_clock_kilohertz,
                                          .memory_bus_bits = info.memory_bus_bits};
  const attention::LaunchPlan plan =
      attention::make_plan(problem, attention::choose_config(problem, limits), limits,
                           {.kv_splits = 0, .dealt = attention::Dealt::kAsPays});
  const attention::Prediction made = attention::predict(attention::pipe_device(info), plan);
  return {attention::to_string(plan.config), made,
          attention::predict_range(info, made.predicted_micros,
                                   [&](const attention::PipeDevice& device) {
                                     return attention::predict(device, plan).predicted_micros;
                                   })};
}

const char* missed(bool is) { return is ? " (missed)" : ""; }

// "670 | 620 to 716": the useful TFLOP/s and their range.
std::string rate(double flop, const Predicted& made, double bar) {
  const double tflops = flop / made.made.predicted_micros / 1e6;
  return fmt::format("{:.0f}{} | {:.0f} to {:.0f}", tflops, missed(tflops < bar),
                     flop / made.range.most / 1e6, flop / made.range.least / 1e6);
}

// The dense time x density divided by the predicted time, as text. The model's constants change
// both times alike, so a share has no range.
std::string share(double density, const attention::Prediction& dense,
                  const attention::Prediction& made, double bar) {
  const double reached = dense.predicted_micros * density / made.predicted_micros;
  return fmt::format("{:.3f}{}", reached, missed(reached < bar));
}

// The predicted time divided by the dense time, for problems that leave nothing out.
std::string times(const attention::Prediction& dense, const attention::Prediction& made,
                  double bar) {
  const double over = made.predicted_micros / dense.predicted_micros;
  return fmt::format("{:.3f}{}", over, missed(over > bar));
}

std::string heads(const Problem& problem) {
  return problem.heads == problem.kv_heads
             ? fmt::format("{}", problem.heads)
             : fmt::format("{} / {}", problem.heads, problem.kv_heads);
}

std::string table() {
  std::string rates =
      "| useful TFLOP/s | heads | configuration | bar | best known of others | predicted | "
      "interval | clock | predicted to be held up by |\n|---|---|---|---|---|---|---|---|---|\n";
  std::string shares =
      "| against dense | configuration | bar | best known of others | predicted | predicted to be "
      "held up by |\n|---|---|---|---|---|---|\n";
  std::map<std::string, Predicted> all;
  for (const bench::GpuProblem& one : bench::gpu_problems(false)) {
    const Predicted& made = all[one.name] = predict(one.problem);
    const char* limit = attention::to_string(made.made.predicted_limit);
    if (one.dense.empty() || one.bar_tflops > 0) {
      rates += fmt::format("| {} | {} | {} | {} | {} | {} | {:.2f} GHz | {} |\n", one.name,
                           heads(one.problem), made.config,
                           one.bar_tflops > 0 ? fmt::format(">= {:.0f}", one.bar_tflops) : "",
                           best_known(one.name, false), rate(one.flop, made, one.bar_tflops),
                           made.made.predicted_hertz / 1e9, limit);
    }
    if (one.dense.empty()) continue;
    const attention::Prediction& dense = all.at(one.dense).made;
    const bool everything = one.density == 1;
    const double bar = everything ? 1 / one.bar_share : one.bar_share;
    shares += fmt::format(
        "| {}{} | {} | {} | {} | {} | {} |\n", one.name,
        everything ? ": its time over dense" : ": dense time x density over its time", made.config,
        bar > 0 ? fmt::format("{} {:.2f}", everything ? "<=" : ">=", bar) : "",
        best_known(one.name, true),
        everything ? times(dense, made.made, bar) : share(one.density, dense, made.made, bar),
        limit);
  }
  return rates + "\n" + shares;
}

}  // namespace

int annulus::bench::predictions(int argc, char** argv) {
  return bench::make_table(argc, argv, "predictions", [] { return bench::MadeTable{table()}; });
}
