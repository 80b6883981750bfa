#ifndef ANNULUS_PROGRAM_TUNE_REPORT_CHART_H_
#define ANNULUS_PROGRAM_TUNE_REPORT_CHART_H_

// A plot as inline SVG: two axes with their values and titles, and what is drawn between them. The
// colours are classes of the page's style, which has them for light and for dark.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "program/tune/report/markup.h"

namespace annulus::program::report {

struct Axis {
  std::string title;  // with the unit
  double low = 0;
  double high = 1;
  bool is_log = false;
  std::vector<std::pair<double, std::string>> values;  // that are written at it

  // How far from `low` to `high` a value lies, 0 to 1; a value outside lies on the edge.
  double share(double value) const;
};

// Axes for values from `low` to `high`, which are made a little wider.
Axis linear_axis(std::string title, double low, double high);
Axis log_axis(std::string title, double low, double high);  // Requires: low > 0
// The axis of a kind that suits the values: logarithmic where they spread over a factor of four.
Axis ratio_axis(std::string title, double low, double high);
// From 1 to `most`, with whole numbers.
Axis count_axis(std::string title, std::size_t most);
// One place for each name, at 0, 1, 2, ...
Axis named_axis(std::string title, const std::vector<std::string>& names);

struct Size {
  double width;
  double height;
  double left = 64;  // for what is written beside the vertical axis
};

using Point = std::pair<double, double>;

class Chart {
 public:
  // `name` is for those who cannot see it.
  Chart(std::string_view name, Size size, Axis across, Axis up);

  // `style` is a class of the page's style.
  void dots(const char* style, const std::vector<Point>& points, double radius);
  void lines(const char* style, const std::vector<Point>& points);  // from each to the next
  // Horizontal, a few pixels long, at each point.
  void dashes(const char* style, const std::vector<Point>& points, double half_width);
  // Beside a point, on the side where there is room.
  void label(Point at, std::string_view text);

  std::string take();

 private:
  double x(double value) const;
  double y(double value) const;
  void draw_axes();

  Size size_;
  Axis across_, up_;
  Markup markup_;
};

}  // namespace annulus::program::report

#endif  // ANNULUS_PROGRAM_TUNE_REPORT_CHART_H_
