#include "program/tune/report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace annulus::program::report {
namespace {

constexpr double kTop = 12, kRight = 16, kBottom = 46;
constexpr int kMaxValues = 8;  // the most values written along an axis

std::string pixels(double value) {
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

// The least number of the form 1, 2 or 5 times a power of ten that is not below `least`.
double round_step(double least) {
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least) return factor * power;
  }
  return 10 * power;
}

std::string value_text(double value, double step) {
  if (std::abs(value) >= 1e5) return fmt::format("{:.3g}", value);
  const int digits = step >= 1 ? 0 : std::min(6, static_cast<int>(std::ceil(-std::log10(step))));
  return fmt::format("{:.{}f}", value, digits);
}

void write_round_values(Axis* axis, double least_step = 0) {
  const double step = std::max(least_step, round_step((axis->high - axis->low) / kMaxValues));
  for (double at = std::ceil(axis->low / step); at * step <= axis->high; ++at) {
    axis->values.emplace_back(at * step, value_text(at * step, step));
  }
}

void write_log_values(Axis* axis) {
  for (double power = std::pow(10.0, std::floor(std::log10(axis->low))); power <= axis->high;
       power *= 10) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double value = factor * power;
      if (value >= axis->low && value <= axis->high) {
        axis->values.emplace_back(value, fmt::format("{:.6g}", value));
      }
    }
  }
  // If there are many powers of ten, only they fit on the axis. A short axis may contain none of
  // these numbers, and then gets round values.
  if (axis->values.size() > kMaxValues) {
    std::erase_if(axis->values, [](const auto& each) {
      const double power = std::log10(each.first);
      return std::abs(power - std::round(power)) > 1e-9;
    });
  }
  const std::size_t every = 1 + axis->values.size() / (kMaxValues + 1);
  std::vector<std::pair<double, std::string>> kept;
  for (std::size_t i = 0; i < axis->values.size(); i += every) kept.push_back(axis->values[i]);
  axis->values = std::move(kept);
  if (axis->values.size() < 3) {
    axis->values.clear();
    write_round_values(axis);
  }
}

}  // namespace

double Axis::share(double value) const {
  const double share =
      is_log ? (std::log(std::max(value, low)) - std::log(low)) / (std::log(high) - std::log(low))
             : (value - low) / (high - low);
  return std::clamp(share, 0.0, 1.0);
}

// If all values are equal or nearly equal, the axis is wider than their range.
Axis linear_axis(std::string title, double low, double high) {
  const double largest = std::max(std::abs(low), std::abs(high));
  const double more = high - low > 1e-6 * largest ? 0.04 * (high - low) : 0.1 * largest + 1e-9;
  Axis axis{std::move(title), low - more, high + more, false, {}};
  write_round_values(&axis);
  return axis;
}

Axis log_axis(std::string title, double low, double high) {
  const double more = high > 1.001 * low ? std::exp(0.05 * (std::log(high) - std::log(low))) : 1.1;
  Axis axis{std::move(title), low / more, high * more, true, {}};
  write_log_values(&axis);
  return axis;
}

Axis count_axis(std::string title, std::size_t most) {
  const auto last = static_cast<double>(most);
  Axis axis{std::move(title), 1 - 0.04 * last, last + 0.04 * last, false, {}};
  write_round_values(&axis, 1);
  std::erase_if(axis.values, [](const auto& each) { return each.first < 1; });
  return axis;
}

Axis ratio_axis(std::string title, double low, double high) {
  if (low > 0 && high > 4 * low) return log_axis(std::move(title), low, high);
  return linear_axis(std::move(title), low, high);
}

Axis named_axis(std::string title, const std::vector<std::string>& names) {
  Axis axis{std::move(title), -0.6, static_cast<double>(names.size()) - 0.4, false, {}};
  for (std::size_t i = 0; i < names.size(); ++i) {
    axis.values.emplace_back(static_cast<double>(i), names[i]);
  }
  return axis;
}

Chart::Chart(std::string_view name, Size size, Axis across, Axis up)
    : size_(size), across_(std::move(across)), up_(std::move(up)) {
  markup_.open("svg",
               {{"viewBox", fmt::format("0 0 {} {}", pixels(size.width), pixels(size.height))},
                {"width", pixels(size.width)},
                {"height", pixels(size.height)},
                {"role", "img"},
                {"aria-label", std::string(name)}});
  draw_axes();
}

double Chart::x(double value) const {
  return size_.left + across_.share(value) * (size_.width - size_.left - kRight);
}

double Chart::y(double value) const {
  return size_.height - kBottom - up_.share(value) * (size_.height - kTop - kBottom);
}

void Chart::draw_axes() {
  const double bottom = size_.height - kBottom, right = size_.width - kRight;
  std::string grid;
  for (const auto& [value, text] : across_.values) {
    grid += fmt::format("M{} {}V{}", pixels(x(value)), pixels(kTop), pixels(bottom));
  }
  for (const auto& [value, text] : up_.values) {
    grid += fmt::format("M{} {}H{}", pixels(size_.left), pixels(y(value)), pixels(right));
  }
  markup_.leaf("path", {{"class", "grid"}, {"d", grid}});
  markup_.leaf("path", {{"class", "axis"},
                        {"d", fmt::format("M{} {}V{}H{}", pixels(size_.left), pixels(kTop),
                                          pixels(bottom), pixels(right))}});
  for (const auto& [value, text] : across_.values) {
    markup_.element("text", text,
                    {{"x", pixels(x(value))}, {"y", pixels(bottom + 15)}, {"class", "middle"}});
  }
  for (const auto& [value, text] : up_.values) {
    markup_.element("text", text,
                    {{"x", pixels(size_.left - 6)}, {"y", pixels(y(value) + 4)}, {"class", "end"}});
  }
  markup_.element("text", across_.title,
                  {{"x", pixels((size_.left + right) / 2)},
                   {"y", pixels(size_.height - 10)},
                   {"class", "middle title"}});
  if (up_.title.empty()) return;
  markup_.element(
      "text", up_.title,
      {{"transform", fmt::format("translate(13 {}) rotate(-90)", pixels((kTop + bottom) / 2))},
       {"class", "middle title"}});
}

void Chart::dots(const char* style, const std::vector<Point>& points, double radius) {
  // A line of length 0 with round ends is drawn as a dot, and takes a third of the text of a
  // circle.
  std::string path;
  for (const auto& [across, up] : points) {
    path += fmt::format("M{} {}h0", pixels(x(across)), pixels(y(up)));
  }
  if (path.empty()) return;
  markup_.leaf(
      "path",
      {{"class", std::string("dot ") + style}, {"stroke-width", pixels(2 * radius)}, {"d", path}});
}

void Chart::lines(const char* style, const std::vector<Point>& points) {
  std::string path;
  for (const auto& [across, up] : points) {
    path += fmt::format("{}{} {}", path.empty() ? "M" : "L", pixels(x(across)), pixels(y(up)));
  }
  if (!path.empty()) markup_.leaf("path", {{"class", std::string("line ") + style}, {"d", path}});
}

void Chart::dashes(const char* style, const std::vector<Point>& points, double half_width) {
  std::string path;
  for (const auto& [across, up] : points) {
    path += fmt::format("M{} {}h{}", pixels(x(across) - half_width), pixels(y(up)),
                        pixels(2 * half_width));
  }
  if (!path.empty()) markup_.leaf("path", {{"class", std::string("line ") + style}, {"d", path}});
}

void Chart::label(Point at, std::string_view text) {
  const double across = x(at.first);
  const bool is_right = across > (size_.left + size_.width) / 2;
  markup_.element("text", text,
                  {{"x", pixels(across + (is_right ? -9 : 9))},
                   {"y", pixels(std::max(y(at.second) - 8, kTop + 9))},
                   {"class", is_right ? "end" : "start"}});
}

std::string Chart::take() {
  markup_.close();
  return markup_.take();
}

}  // namespace annulus::program::report
