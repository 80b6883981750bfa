#include "program/tune/report/plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "program/tune/report/chart.h"
#include "program/tune/report/markup.h"
#include "program/tune/report/statistics.h"
#include "program/tune/report/text.h"

namespace annulus::program::report {
namespace {

constexpr std::size_t kMaxDots = 4000;  // the most dots of one plot

std::string ratio_title(const Search& search) {
  return search.predicted ? "predicted cycles over the default's" : "time over the default's";
}

std::string figure(const std::string& svg, std::string_view caption) {
  return Markup().open("figure").part(svg).element("figcaption", caption).close().take();
}

// The range of values of an axis. A file may have any numbers, so numbers that are extremely large
// or small do not extend the axis. They are drawn on its edge.
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

std::string draw_number_line(const Search& search) {
  std::vector<std::size_t> shown = search.decision->finalists;
  shown.push_back(search.decision->default_at);
  std::ranges::reverse(shown);  // draws the best at the top
  std::vector<std::string> names;
  Range range;
  for (const std::size_t index : shown) {
    const Trial& trial = search.decision->trials[index];
    const bool is_winner = index == search.decision->winner;
    names.push_back(trial.configuration +
                    (index == search.decision->default_at ? " (default)" : "") +
                    (is_winner ? " \xe2\x98\x85" : ""));  // a star
    for (const double value : {trial.ratio.low, trial.ratio.middle, trial.ratio.high}) {
      range.take(value);
    }
  }
  const Size size{760, 62 + 30.0 * static_cast<double>(shown.size()), 290};
  Chart chart("the finalists and the default", size,
              ratio_axis(ratio_title(search), range.low(), range.high()), named_axis("", names));
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const Interval& ratio = search.decision->trials[shown[i]].ratio;
    const auto row = static_cast<double>(i);
    const bool is_winner = shown[i] == search.decision->winner;
    const char* style = is_winner ? "winner" : "each";
    chart.lines(style, {{ratio.low, row}, {ratio.high, row}});
    chart.dots(style, {{ratio.middle, row}}, is_winner ? 5 : 4);
    chart.label({ratio.middle, row}, ratio_text(ratio));
  }
  return figure(
      chart.take(),
      fmt::format("The winner (star), the default, which is 1 by definition, and the {}. {} Less "
                  "is faster.",
                  search.predicted || !search.decision->complete ? "next best candidates"
                                                                 : "other finalists",
                  search.predicted
                      ? "Cycles are predicted and have no noise."
                      : "A dot is the median of the ratios round by round, a line its 95 % "
                        "interval; one that reaches to the edge is not bounded."));
}

std::string draw_convergence(const Search& search) {
  std::vector<Point> all, best, dropped;
  Range range;
  std::optional<Point> found;
  int count_dropped = 0;
  for (std::size_t i = 0; i < search.decision->order.size(); ++i) {
    const Step& step = search.decision->order[i];
    const auto turn = static_cast<double>(i + 1);
    // The line has steps and no slopes, because the best ratio stays the same until a candidate is
    // tried.
    if (best.empty() || step.best != best.back().second || i + 1 == search.decision->order.size()) {
      if (!best.empty()) best.emplace_back(turn, best.back().second);
      best.emplace_back(turn, step.best);
    }
    range.take(step.best);
    if (step.dropped) {
      ++count_dropped;
      if (dropped.size() < kMaxDots) dropped.emplace_back(turn, step.best);
      continue;
    }
    range.take(step.ratio);
    if (all.size() < kMaxDots) all.emplace_back(turn, step.ratio);
    if (step.trial == search.decision->winner) found = Point(turn, step.ratio);
  }
  Chart chart(
      "the best ratio so far", {760, 300},
      count_axis("candidates in the order in which they were tried", search.decision->order.size()),
      ratio_axis(ratio_title(search), range.low(), range.high()));
  chart.lines("best", best);
  chart.dots("each", all, 2.5);
  chart.dots("dropped", dropped, 2.5);
  if (found) {
    chart.dots("winner", {*found}, 5);
    chart.label(*found,
                fmt::format("winner, {:.0f} of {}", found->first, search.decision->order.size()));
  }
  return figure(
      chart.take(),
      fmt::format("Dots are candidates, the line is the best so far. The first is the default{}. "
                  "{} were dropped (gaps in the line).",
                  found ? fmt::format("; the winner is number {:.0f} of {}", found->first,
                                      search.decision->order.size())
                        : std::string(),
                  count_dropped));
}

std::string draw_parameter(const Search& search, const std::string& parameter,
                           const std::map<std::int64_t, std::vector<double>>& ratios) {
  std::vector<std::string> names;
  std::vector<Point> all, medians, best;
  Range range;
  for (const auto& [value, of_value] : ratios) {
    const auto place = static_cast<double>(names.size());
    names.push_back(std::to_string(value));
    for (const double ratio : of_value) {
      if (all.size() < kMaxDots) all.emplace_back(place, ratio);
      range.take(ratio);
    }
    medians.emplace_back(place, median(of_value));
    best.emplace_back(place, *std::ranges::min_element(of_value));
  }
  Chart chart(parameter, {370, 260}, named_axis(parameter, names),
              ratio_axis(ratio_title(search), range.low(), range.high()));
  chart.dots("each", all, 2.5);
  chart.dashes("median", medians, 12);
  chart.dots("best", best, 4);
  return chart.take();
}

std::string draw_landscape(const Search& search) {
  const std::string& family = search.winner().family;
  const std::vector<std::string>& parameters = search.decision->families.at(family);
  std::string same;
  Markup markup;
  markup.open("figure").open("div", {{"class", "multiples"}});
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    std::map<std::int64_t, std::vector<double>> ratios;
    for (const Trial& trial : search.decision->trials) {
      if (trial.outcome != Trial::Outcome::kTried || trial.family != family) continue;
      ratios[trial.parameters[i]].push_back(trial.ratio.middle);
    }
    if (ratios.size() > 1) {
      markup.part(draw_parameter(search, parameters[i], ratios));
    } else {
      same +=
          fmt::format("{}{} {}", same.empty() ? "" : ", ", parameters[i], ratios.begin()->first);
    }
  }
  markup.close();
  markup.element(
      "figcaption",
      fmt::format("For each value of a parameter of {} all candidates that were tried (dots), "
                  "their median (dash) and the best of them (large dot).{}",
                  family, same.empty() ? "" : " The same in all of them: " + same + "."));
  return markup.close().take();
}

std::string draw_prediction(const Search& search) {
  std::vector<std::pair<double, double>> pairs;  // pairs of prediction and time
  std::vector<double> times_over;
  Range across, up;
  for (const Trial& trial : search.decision->trials) {
    if (trial.outcome != Trial::Outcome::kTried) continue;
    if (!std::isfinite(trial.predicted_cycles) || !(trial.predicted_cycles > 0) ||
        !(trial.time > 0))
      continue;
    pairs.emplace_back(trial.predicted_cycles, trial.time);
    times_over.push_back(trial.time / trial.predicted_cycles);
    across.take(trial.predicted_cycles);
    up.take(trial.time);
  }
  if (pairs.empty()) {
    return Markup().element("p", "No candidate that was tried has a finite prediction.").take();
  }
  // The diagonal, on which times are proportional to predictions. Its unit is the median ratio of
  // the two.
  const double middle = median(times_over);
  Range both = up;
  both.take(across.low() * middle);
  both.take(across.high() * middle);
  const char* const time_title =
      search.predicted ? "predicted cycles, by counted work" : "measured time, us";
  Chart chart("predictions against times", {560, 380},
              log_axis("predicted cycles, by the static model", across.low(), across.high()),
              log_axis(time_title, both.low(), both.high()));
  chart.lines("diagonal",
              {{across.low(), across.low() * middle}, {across.high(), across.high() * middle}});
  std::vector<Point> shown(
      pairs.begin(), pairs.begin() + static_cast<std::ptrdiff_t>(std::min(pairs.size(), kMaxDots)));
  chart.dots("each", shown, 2.5);
  const auto mark = [&](const Trial& trial, const char* style, const char* name) {
    if (!std::isfinite(trial.predicted_cycles) || !(trial.predicted_cycles > 0)) return;
    chart.dots(style, {{trial.predicted_cycles, trial.time}}, 5);
    chart.label({trial.predicted_cycles, trial.time}, name);
  };
  if (search.decision->winner != search.decision->default_at)
    mark(search.standard(), "best", "default");
  mark(search.winner(), "winner", "winner");
  const std::optional<double> correlation = rank_correlation(pairs);
  const auto tried = static_cast<double>(search.decision->tried + search.decision->dropped);
  return figure(
      chart.take(),
      fmt::format("What the static model predicted of a candidate against {}, both on logarithmic "
                  "axes. On the line the two are in proportion. Rank correlation: {}. Of the space "
                  "{} of {} candidates were tried or dropped ({:.1f} %).",
                  search.predicted
                      ? "what was predicted from its counted work (nothing is measured "
                        "on a simulated device)"
                      : "its measured time",
                  correlation ? fmt::format("{:.3f} over {} candidates", *correlation, pairs.size())
                              : "none, as there are too few candidates",
                  tried, search.candidates, 100 * tried / static_cast<double>(search.candidates)));
}

constexpr Plot kPlots[] = {{"Winner and default", draw_number_line},
                           {"Convergence", draw_convergence},
                           {"Predictions", draw_prediction},
                           {"Landscape", draw_landscape}};

}  // namespace

std::span<const Plot> plots() { return kPlots; }

}  // namespace annulus::program::report
