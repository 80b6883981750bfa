// Prints the times that the pipe model (src/attention/cost/pipe_model.h) predicts for kernels of
// other programs, together with their published times. It also fits the model's constants to the
// published times that are marked for it. No GPU is used and no kernel is compiled.
//
//   model calibration                prints the tables
//   model calibration --write FILE   puts them between the marks of a document
//   model calibration --check FILE   exits 1 if the document has other tables
//
// Each form also exits 1 if the model breaks a rule: a constant outside its interval or far from
// the fitted value, a median error of held-out figures above 8 %, or one error above 15 % without a
// remark that explains it.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "attention/cost/pipe_model.h"
#include "document.h"
#include "model/model.h"
#include "published.h"

namespace {

using namespace annulus;
using attention::PipeConstant;
using attention::PipeConstants;
using bench::Published;
using bench::Use;

constexpr double kMedianBar = 0.08;
constexpr double kWorstBar = 0.15;

// A published figure, with the numbers that do not depend on the constants.
struct Case {
  Published published;
  attention::TileCounts tiles;
  attention::KernelWork work;

  double micros(const attention::PipeDevice& device) const {
    const Problem& problem = published.problem;
    return attention::predict(device, published.config, {problem.dim_qk, problem.dim_v}, tiles,
                              work, attention::least_bytes(problem))
        .predicted_micros;
  }
  double micros(const PipeConstants& constants) const {
    return micros(attention::pipe_device(published.device, constants));
  }
  // The rate in useful TFLOP/s.
  double rate(double micros) const { return published.flop / micros / 1e6; }
  // The logarithm of the predicted rate divided by the published rate. It is 0 inside the published
  // range.
  double error(const PipeConstants& constants) const {
    const double predicted = rate(micros(constants));
    return std::log(predicted / std::clamp(predicted, published.least, published.most));
  }
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (Published& published : bench::published_times()) {
    const Problem& problem = published.problem;
    attention::TileCounts tiles =
        attention::count_tiles(problem, published.config.tile_rows, published.config.tile_columns);
    const attention::KernelWork work =
        attention::estimate_work(published.config, attention::features_of(problem), tiles);
    all.push_back({std::move(published), std::move(tiles), work});
  }
  return all;
}

// Whether the fit may move a constant. Each of these constants is set by the figure that depends on
// it most.
bool is_fitted(const PipeConstant& constant) {
  return std::string(constant.source).starts_with("fitted");
}

// Returns the fitted constants. They minimise a sum of squares over the figures that set them and
// over the constants. The error of a figure counts in units of 3 %, the usual difference between
// measurements of the same kernel. The distance of a constant from the middle of its interval
// counts in units of half the interval. The figure `left_out` is ignored.
PipeConstants fit(const std::vector<Case>& all, const Case* left_out) {
  PipeConstants constants;
  for (const PipeConstant& constant : attention::pipe_constants()) {
    if (is_fitted(constant)) constants.*constant.value = (constant.least + constant.most) / 2;
  }
  const auto cost = [&] {
    constexpr double kFigureError = 0.03;
    double sum = 0;
    for (const Case& one : all) {
      if (one.published.use != Use::kSets || &one == left_out) continue;
      sum += std::pow(one.error(constants) / kFigureError, 2);
    }
    for (const PipeConstant& constant : attention::pipe_constants()) {
      const double half = (constant.most - constant.least) / 2;
      sum += std::pow((constants.*constant.value - constant.least) / half - 1, 2);
    }
    return sum;
  };
  // Moves one constant at a time, in smaller and smaller steps.
  for (double step = 0.25; step > 1e-3; step /= 2) {
    for (int round = 0; round < 8; ++round) {
      for (const PipeConstant& constant : attention::pipe_constants()) {
        if (!is_fitted(constant)) continue;
        const double before = constants.*constant.value;
        const double width = step * (constant.most - constant.least);
        double best = before, least = cost();
        for (const double other : {before - width, before + width}) {
          constants.*constant.value = std::clamp(other, constant.least, constant.most);
          if (const double now = cost(); now < least) {
            least = now;
            best = constants.*constant.value;
          }
        }
        constants.*constant.value = best;
      }
    }
  }
  return constants;
}

std::string percent(double logarithm) {
  return fmt::format("{:+.1f} %", 100 * std::expm1(logarithm));
}

std::string range(double least, double most) {
  const auto text = [](double value) {
    return value < 100 ? fmt::format("{:.1f}", value) : fmt::format("{:.0f}", value);
  };
  return least == most ? text(least) : fmt::format("{} to {}", text(least), text(most));
}

void add_constants(const std::vector<Case>& all, bench::MadeTable* made) {
  made->text +=
      "| constant | value | by the fit | interval | unit | source |\n"
      "|---|---|---|---|---|---|\n";
  const PipeConstants used, fitted = fit(all, nullptr);
  for (const PipeConstant& constant : attention::pipe_constants()) {
    const double value = used.*constant.value, by_fit = fitted.*constant.value;
    made->text += fmt::format("| {} | {:g} | {} | {:g} to {:g} | {} | {} |\n", constant.name, value,
                              is_fitted(constant) ? fmt::format("{:.3g}", by_fit) : "",
                              constant.least, constant.most, constant.unit, constant.source);
    if (value < constant.least || value > constant.most) {
      made->broken.push_back(fmt::format("{} is outside its interval", constant.name));
    }
    if (is_fitted(constant) && std::abs(value / by_fit - 1) > 0.02) {
      made->broken.push_back(
          fmt::format("{} is {:g}, and the fit gives {:g}", constant.name, value, by_fit));
    }
  }
}

void add_figures(const std::vector<Case>& all, bench::MadeTable* made) {
  made->text +=
      "\n| useful TFLOP/s | published | predicted | error | left out of the fit | predicted "
      "interval | predicted clock | remark |\n|---|---|---|---|---|---|---|---|\n";
  std::vector<double> errors;
  double worst = 0;
  std::size_t inside = 0;
  for (const Case& one : all) {
    const Published& published = one.published;
    const bool sets = published.use == Use::kSets;
    const attention::PipeDevice device = attention::pipe_device(published.device);
    const double micros = one.micros(device);
    const double error = one.error({});
    const auto between = attention::predict_range(
        published.device, micros,
        [&](const attention::PipeDevice& other) { return one.micros(other); });
    const double low = one.rate(between.most), high = one.rate(between.least);
    const double hertz =
        attention::predict(device, published.config,
                           {published.problem.dim_qk, published.problem.dim_v}, one.tiles, one.work,
                           attention::least_bytes(published.problem))
            .predicted_hertz;
    made->text +=
        fmt::format("| {} [{}] | {}{} | {} | {} | {} | {} | {:.2f} GHz | {} |\n", published.name,
                    published.source, range(published.least, published.most), sets ? ", sets" : "",
                    range(one.rate(micros), one.rate(micros)), percent(error),
                    sets ? percent(one.error(fit(all, &one))) : percent(error), range(low, high),
                    hertz / 1e9, published.remark);
    if (published.most >= low && published.least <= high) ++inside;
    if (sets) continue;
    errors.push_back(std::abs(std::expm1(error)));
    worst = std::max(worst, errors.back());
    if (errors.back() > kWorstBar && published.remark.empty()) {
      made->broken.push_back(
          fmt::format("{} is wrong by {}, without a word why", published.name, percent(error)));
    }
  }
  std::ranges::sort(errors);
  const double median = errors[errors.size() / 2];
  made->text += fmt::format(
      "\nOf {} held-out figures the median error is {:.1f} % and the largest {:.1f} %; {} of all "
      "{} "
      "lie in the predicted interval.\n\n",
      errors.size(), 100 * median, 100 * worst, inside, all.size());
  if (median > kMedianBar) made->broken.push_back("the median error is above its bar");
  int number = 0;
  for (const char* source : bench::published_sources()) {
    made->text += fmt::format("{}[{}] {}", number++ == 0 ? "" : "; ", number, source);
  }
  made->text += ".\n";
}

bench::MadeTable tables() {
  const std::vector<Case> all = cases();
  bench::MadeTable made;
  add_constants(all, &made);
  add_figures(all, &made);
  return made;
}

}  // namespace

int annulus::bench::calibration(int argc, char** argv) {
  return bench::make_table(argc, argv, "calibration", tables);
}
