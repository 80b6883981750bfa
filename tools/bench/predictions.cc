// Prints what the pipe model (src/attention/cost/pipe_model.h) predicts for the problems that
// gpu_bench measures on an H200, beside the targets. These are predictions and no measurements: no
// GPU is used and no kernel is compiled.
//
//   predictions                prints the table
//   predictions --write FILE   puts it between the marks of a document
//   predictions --check FILE   exits 1 where the document has another one

#include <fmt/core.h>

#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "attention/plan/plan.h"
#include "attention/plan/predict_plan.h"
#include "document.h"
#include "gpu_problems.h"

namespace {

using namespace annulus;

constexpr const char* kProgram = "predictions";

constexpr int kBoostKilohertz = 1980000;
// The sustained rate of a dense bf16 product under the chip's limit of 700 W. The best of an H100
// is 794.5e12 in S. Bekman, Machine Learning Engineering, "Maximum Achievable Matmul FLOPS", and
// "H200 is the same".
constexpr double kSustainedFlop = 790e12;

// An H200 as its driver describes it, with another clock.
device::DeviceInfo h200(int clock_kilohertz) {
  device::DeviceInfo info;
  info.major = 9;
  info.multiprocessors = 132;
  info.max_threads_per_multiprocessor = 2048;
  info.max_blocks_per_multiprocessor = 32;
  info.registers_per_multiprocessor = 65536;
  info.shared_bytes_per_multiprocessor = 233472;
  info.shared_bytes_reserved_per_block = 1024;
  info.clock_kilohertz = clock_kilohertz;
  info.memory_clock_kilohertz = 3201000;
  info.memory_bus_bits = 6144;
  return info;
}

// The clock at which the model's tensor cores reach kSustainedFlop.
int sustained_kilohertz() {
  const attention::PipeDevice device = attention::pipe_device(h200(kBoostKilohertz));
  return static_cast<int>(kSustainedFlop / (device.wgmma_flop * device.multiprocessors) / 1e3);
}

// The best published figure of other programs; docs/performance.md names the sources. `share`:
// relative to their own dense kernel.
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
  attention::Prediction boost, sustained;
};

Predicted predict(const Problem& problem) {
  const attention::DeviceLimits limits = {{90, 'a'}, 132, 227 * 1024};
  const attention::LaunchPlan plan = attention::make_plan(
      problem, attention::choose_config(problem, limits), limits, {.kv_splits = 0});
  return {attention::to_string(plan.config),
          attention::predict(attention::pipe_device(h200(kBoostKilohertz)), plan),
          attention::predict(attention::pipe_device(h200(sustained_kilohertz())), plan)};
}

const char* missed(bool is) { return is ? " (missed)" : ""; }

std::string rate(double flop, const attention::Prediction& made, double bar) {
  const double tflops = flop / made.predicted_micros / 1e6;
  return fmt::format("{:.0f}{}", tflops, missed(tflops < bar));
}

// Dense time x density over the predicted time, as text.
std::string share(double density, const attention::Prediction& dense,
                  const attention::Prediction& made, double bar) {
  const double reached = dense.predicted_micros * density / made.predicted_micros;
  return fmt::format("{:.3f}{}", reached, missed(reached < bar));
}

// The predicted time over dense time, for problems that leave nothing out.
std::string times(const attention::Prediction& dense, const attention::Prediction& made,
                  double bar) {
  const double over = made.predicted_micros / dense.predicted_micros;
  return fmt::format("{:.3f}{}", over, missed(over > bar));
}

std::string limit(const Predicted& made) {
  const std::string boost = attention::to_string(made.boost.predicted_limit);
  const std::string sustained = attention::to_string(made.sustained.predicted_limit);
  return boost == sustained ? boost : boost + "; " + sustained;
}

std::string heads(const Problem& problem) {
  return problem.heads == problem.kv_heads
             ? fmt::format("{}", problem.heads)
             : fmt::format("{} / {}", problem.heads, problem.kv_heads);
}

std::string table() {
  std::string rates = fmt::format(
      "| useful TFLOP/s | heads | configuration | bar | best known of others | predicted at "
      "{:.2f} GHz | predicted at the sustained clock, {:.2f} GHz | predicted to be held up by |\n"
      "|---|---|---|---|---|---|---|---|\n",
      kBoostKilohertz / 1e6, sustained_kilohertz() / 1e6);
  std::string shares = fmt::format(
      "| against dense | configuration | bar | best known of others | predicted at {:.2f} GHz | "
      "predicted at the sustained clock, {:.2f} GHz | predicted to be held up by |\n"
      "|---|---|---|---|---|---|---|\n",
      kBoostKilohertz / 1e6, sustained_kilohertz() / 1e6);
  std::map<std::string, Predicted> all;
  for (const bench::GpuProblem& one : bench::gpu_problems(false)) {
    const Predicted& made = all[one.name] = predict(one.problem);
    if (one.dense.empty() || one.bar_tflops > 0) {
      rates += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} |\n", one.name,
                           heads(one.problem), made.config,
                           one.bar_tflops > 0 ? fmt::format(">= {:.0f}", one.bar_tflops) : "",
                           best_known(one.name, false), rate(one.flop, made.boost, one.bar_tflops),
                           rate(one.flop, made.sustained, one.bar_tflops), limit(made));
    }
    if (one.dense.empty()) continue;
    const Predicted& dense = all.at(one.dense);
    const bool everything = one.density == 1;
    const double bar = everything ? 1 / one.bar_share : one.bar_share;
    const auto against = [&](const attention::Prediction& dense_time,
                             const attention::Prediction& time) {
      return everything ? times(dense_time, time, bar) : share(one.density, dense_time, time, bar);
    };
    shares += fmt::format(
        "| {}{} | {} | {} | {} | {} | {} | {} |\n", one.name,
        everything ? ": its time over dense" : ": dense time x density over its time", made.config,
        bar > 0 ? fmt::format("{} {:.2f}", everything ? "<=" : ">=", bar) : "",
        best_known(one.name, true), against(dense.boost, made.boost),
        against(dense.sustained, made.sustained), limit(made));
  }
  return rates + "\n" + shares;
}

int run(const std::string& mode, const std::string& path) {
  const std::string made = table();
  if (mode.empty()) {
    std::fputs(made.c_str(), stdout);
    return 0;
  }
  const bench::Document document = bench::read_document(path, kProgram);
  if (mode == "--write") {
    bench::write_document(path, document, made);
    return 0;
  }
  if (document.table == made) return 0;
  std::printf("%s has another table; predictions --write makes this one:\n%s", path.c_str(),
              made.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode.empty() ? argc != 1 : argc != 3 || (mode != "--write" && mode != "--check")) {
    std::fprintf(stderr, "usage: %s [--write FILE | --check FILE]\n", argv[0]);
    return 2;
  }
  try {
    return run(mode, argc > 2 ? argv[2] : "");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "predictions: %s\n", error.what());
    return 1;
  }
}
