#ifndef ANNULUS_PROGRAM_TUNE_REPORT_CHART_H_
#define ANNULUS_PROGRAM_TUNE_REPORT_CHART_H_

// A plot as inline SVG: two axes with values and titles, and the drawing between them. The colours
// are classes of the page's style, which has a light and a dark version.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "program/tune/report/markup.h"

namespace annulus::program::report {

struct Axis {
  std::string title;  // includes the unit
  double low = 0;
  double high = 1;
  bool is_log = false;
  // The values written along the axis, with their texts.
  std::vector<std::pair<double, std::string>> values;

  // The position of a value between `low` (0) and `high` (1). A value outside lies on the edge.
  double share(double value) const;
};

// Axes for values from `low` to `high`. The range of the axis is a little wider.
Axis linear_axis(std::string title, double low, double high);
Axis log_axis(std::string title, double low, double high);  // Requires: low > 0
// An axis that suits the values: logarithmic if they differ by more than a factor of four.
Axis ratio_axis(std::string title, double low, double high);
// An axis from 1 to `most` with whole numbers.
Axis count_axis(std::string title, std::size_t most);
// An axis with one place for each name, at 0, 1, 2 and so on.
Axis named_axis(std::string title, const std::vector<std::string>& names);

struct Size {
  double width;
  double height;
  double left = 64;  // room for the text next to the vertical axis
};

using Point = std::pair<double, double>;

class Chart {
 public:
  // `name` describes the plot for screen readers.
  Chart(std::string_view name, Size size, Axis across, Axis up);

  // Draws a dot at each point. `style` is a class of the page's style.
  void dots(const char* style, const std::vector<Point>& points, double radius);
  void lines(const char* style, const std::vector<Point>& points);  // one line through all points
  // Draws a horizontal dash of a few pixels at each point.
  void dashes(const char* style, const std::vector<Point>& points, double half_width);
  // Writes a text next to a point, on the side with room.
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
