#include "autotune/report/plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "attention/kernels/family.h"
#include "autotune/report/chart.h"
#include "autotune/report/markup.h"

namespace annulus::autotune::report {
namespace {

using attention::KernelConfig;

constexpr std::size_t kMostDots = 4000;  // of one plot

std::string ratio_title(const Story& story) {
  return story.predicted ? "predicted cycles over the default's" : "time over the default's";
}

std::string figure(const std::string& svg, std::string_view caption) {
  return Markup().open("figure").part(svg).element("figcaption", caption).close().take();
}

// The values that an axis has to hold. Those of a file may be any numbers; an axis has none that
// are out of all proportion, and what lies beyond it is drawn on its edge.
class Range {
 public:
  void take(double value) {
    constexpr double kMost = 1e100;
    if (!(value < kMost) || !(value > 1 / kMost)) return;
    low_ = std::min(low_, value);
    high_ = std::max(high_, value);
  }
  double low() const { return low_ <= high_ ? low_ : 1; }
  double high() const { return low_ <= high_ ? high_ : 1; }

 private:
  double low_ = std::numeric_limits<double>::infinity();
  double high_ = -std::numeric_limits<double>::infinity();
};

std::string draw_number_line(const Story& story) {
  std::vector<std::size_t> shown = story.finalists();
  shown.push_back(story.result->default_at);
  std::ranges::reverse(shown);  // the best is drawn on top
  std::vector<std::string> names;
  Range range;
  for (const std::size_t index : shown) {
    const tuned::Trial& trial = story.result->trials[index];
    const bool is_winner = index == story.result->winner;
    names.push_back(to_string(trial.config) +
                    (index == story.result->default_at ? " (default)" : "") +
                    (is_winner ? " \xe2\x98\x85" : ""));  // a star
    for (const double value : {trial.ratio.low, trial.ratio.middle, trial.ratio.high}) {
      range.take(value);
    }
  }
  const Size size{760, 62 + 30.0 * static_cast<double>(shown.size()), 290};
  Chart chart("the finalists beside the default", size,
              ratio_axis(ratio_title(story), range.low(), range.high()), named_axis("", names));
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const tuned::Interval& ratio = story.result->trials[shown[i]].ratio;
    const auto row = static_cast<double>(i);
    const bool is_winner = shown[i] == story.result->winner;
    const char* style = is_winner ? "winner" : "each";
    chart.lines(style, {{ratio.low, row}, {ratio.high, row}});
    chart.dots(style, {{ratio.middle, row}}, is_winner ? 5 : 4);
    chart.label({ratio.middle, row}, ratio_text(ratio));
  }
  return figure(
      chart.take(),
      fmt::format(
          "The winner (star), the default, which is 1 by definition, and the {}. {} Less "
          "is faster.",
          story.predicted || !story.result->complete ? "next best candidates" : "other finalists",
          story.predicted ? "Cycles are predicted and have no noise."
                          : "A dot is the median of the ratios round by round, a line its 95 % "
                            "interval; one that reaches to the edge is not bounded."));
}

std::string draw_convergence(const Story& story) {
  std::vector<Point> all, best, dropped;
  Range range;
  std::optional<Point> found;
  int count_dropped = 0;
  for (std::size_t i = 0; i < story.steps.size(); ++i) {
    const Step& step = story.steps[i];
    const auto turn = static_cast<double>(i + 1);
    // Steps, not slopes: until a candidate is tried the best is what it was.
    if (best.empty() || step.best != best.back().second || i + 1 == story.steps.size()) {
      if (!best.empty()) best.emplace_back(turn, best.back().second);
      best.emplace_back(turn, step.best);
    }
    range.take(step.best);
    if (step.dropped) {
      ++count_dropped;
      if (dropped.size() < kMostDots) dropped.emplace_back(turn, step.best);
      continue;
    }
    range.take(step.ratio);
    if (all.size() < kMostDots) all.emplace_back(turn, step.ratio);
    if (step.trial == story.result->winner) found = Point(turn, step.ratio);
  }
  Chart chart("the best ratio so far", {760, 300},
              count_axis("candidates in the order in which they were tried", story.steps.size()),
              ratio_axis(ratio_title(story), range.low(), range.high()));
  chart.lines("best", best);
  chart.dots("each", all, 2.5);
  chart.dots("dropped", dropped, 2.5);
  if (found) {
    chart.dots("winner", {*found}, 5);
    chart.label(*found, fmt::format("winner, {:.0f} of {}", found->first, story.steps.size()));
  }
  return figure(
      chart.take(),
      fmt::format("Dots are candidates, the line is the best so far. The first is the default{}. "
                  "{} were dropped (gaps in the line).",
                  found ? fmt::format("; the winner is number {:.0f} of {}", found->first,
                                      story.steps.size())
                        : std::string(),
                  count_dropped));
}

// A number that a configuration has, whatever its family.
struct Parameter {
  std::string name;
  std::function<int(const KernelConfig&)> value;
};

std::vector<Parameter> parameters_of(const attention::ConfigFamily& family) {
  std::vector<Parameter> all = {
      {"tile rows", [](const KernelConfig& of) { return of.tile_rows; }},
      {"tile columns", [](const KernelConfig& of) { return of.tile_columns; }},
      {"warps", [](const KernelConfig& of) { return attention::cta_shape(of).warps; }},
      {"stages", [](const KernelConfig& of) { return attention::cta_shape(of).stages; }},
      {"resident CTAs", [](const KernelConfig& of) { return attention::cta_shape(of).resident; }}};
  // Families have some of these as numbers of their own.
  for (std::size_t i = 0; i < family.fields.size(); ++i) {
    std::string name = family.fields[i].name;
    std::ranges::replace(name, '_', ' ');
    if (name == "resident") continue;
    const auto same = [&](const Parameter& each) { return each.name == name; };
    if (std::ranges::any_of(all, same)) continue;
    all.push_back({std::move(name), [i](const KernelConfig& of) { return of.own[i]; }});
  }
  return all;
}

std::string draw_parameter(const Story& story, const Parameter& parameter,
                           const std::map<int, std::vector<double>>& ratios) {
  std::vector<std::string> names;
  std::vector<Point> all, medians, best;
  Range range;
  for (const auto& [value, of_value] : ratios) {
    const auto place = static_cast<double>(names.size());
    names.push_back(std::to_string(value));
    for (const double ratio : of_value) {
      if (all.size() < kMostDots) all.emplace_back(place, ratio);
      range.take(ratio);
    }
    medians.emplace_back(place, median(of_value));
    best.emplace_back(place, *std::ranges::min_element(of_value));
  }
  Chart chart(parameter.name, {370, 260}, named_axis(parameter.name, names),
              ratio_axis(ratio_title(story), range.low(), range.high()));
  chart.dots("each", all, 2.5);
  chart.dashes("median", medians, 12);
  chart.dots("best", best, 4);
  return chart.take();
}

std::string draw_landscape(const Story& story) {
  const attention::ConfigFamily* family = story.winner().config.family;
  std::string same;
  Markup markup;
  markup.open("figure").open("div", {{"class", "multiples"}});
  for (const Parameter& parameter : parameters_of(*family)) {
    std::map<int, std::vector<double>> ratios;
    for (const tuned::Trial& trial : story.result->trials) {
      if (trial.outcome != tuned::Trial::Outcome::kTried || trial.config.family != family) continue;
      ratios[parameter.value(trial.config)].push_back(trial.ratio.middle);
    }
    if (ratios.size() > 1) {
      markup.part(draw_parameter(story, parameter, ratios));
    } else {
      same +=
          fmt::format("{}{} {}", same.empty() ? "" : ", ", parameter.name, ratios.begin()->first);
    }
  }
  markup.close();
  markup.element(
      "figcaption",
      fmt::format("For each value of a parameter of {} all candidates that were tried (dots), "
                  "their median (dash) and the best of them (large dot).{}",
                  family->name, same.empty() ? "" : " The same in all of them: " + same + "."));
  return markup.close().take();
}

std::string draw_prediction(const Story& story) {
  std::vector<std::pair<double, double>> pairs;  // what was predicted, and the time
  std::vector<double> times_over;
  Range across, up;
  for (const tuned::Trial& trial : story.result->trials) {
    if (trial.outcome != tuned::Trial::Outcome::kTried) continue;
    if (!std::isfinite(trial.predicted) || !(trial.predicted > 0) || !(trial.time > 0)) continue;
    pairs.emplace_back(trial.predicted, trial.time);
    times_over.push_back(trial.time / trial.predicted);
    across.take(trial.predicted);
    up.take(trial.time);
  }
  if (pairs.empty()) {
    return Markup().element("p", "No candidate that was tried has a finite prediction.").take();
  }
  // The diagonal of a unit that people chose: the time in proportion to the prediction.
  const double middle = median(times_over);
  Range both = up;
  both.take(across.low() * middle);
  both.take(across.high() * middle);
  const char* const time_title =
      story.predicted ? "predicted cycles, by counted work" : "measured time, us";
  Chart chart("predictions against times", {560, 380},
              log_axis("predicted cycles, by the static model", across.low(), across.high()),
              log_axis(time_title, both.low(), both.high()));
  chart.lines("diagonal",
              {{across.low(), across.low() * middle}, {across.high(), across.high() * middle}});
  std::vector<Point> shown(pairs.begin(), pairs.begin() + static_cast<std::ptrdiff_t>(
                                                              std::min(pairs.size(), kMostDots)));
  chart.dots("each", shown, 2.5);
  const auto mark = [&](const tuned::Trial& trial, const char* style, const char* name) {
    if (!std::isfinite(trial.predicted) || !(trial.predicted > 0)) return;
    chart.dots(style, {{trial.predicted, trial.time}}, 5);
    chart.label({trial.predicted, trial.time}, name);
  };
  if (story.result->winner != story.result->default_at) mark(story.standard(), "best", "default");
  mark(story.winner(), "winner", "winner");
  const std::optional<double> correlation = rank_correlation(pairs);
  const auto tried = static_cast<double>(story.result->tried + story.result->dropped);
  return figure(
      chart.take(),
      fmt::format("What the static model predicted of a candidate against {}, both on logarithmic "
                  "axes. On the line the two are in proportion. Rank correlation: {}. Of the space "
                  "{} of {} candidates were tried or dropped ({:.1f} %).",
                  story.predicted ? "what was predicted from its counted work (nothing is measured "
                                    "on a simulated device)"
                                  : "its measured time",
                  correlation ? fmt::format("{:.3f} over {} candidates", *correlation, pairs.size())
                              : "none, of so few candidates",
                  tried, story.candidates, 100 * tried / static_cast<double>(story.candidates)));
}

constexpr Plot kPlots[] = {{"Winner and default", draw_number_line},
                           {"Convergence", draw_convergence},
                           {"Predictions", draw_prediction},
                           {"Landscape", draw_landscape}};

}  // namespace

std::span<const Plot> plots() { return kPlots; }

}  // namespace annulus::autotune::report
