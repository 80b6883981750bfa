#include "program/tune/report/text.h"

#include <fmt/format.h>

#include <cmath>

namespace annulus::program::report {

std::string time_text(double time, bool predicted) {
  return predicted ? fmt::format("{:.0f} predicted cycles", time) : fmt::format("{:.2f} us", time);
}

std::string ratio_text(const Interval& ratio) {
  if (ratio.low == ratio.high) return fmt::format("{:.3f}", ratio.middle);
  if (!std::isfinite(ratio.low) || !std::isfinite(ratio.high)) {
    return fmt::format("{:.3f} (not bounded)", ratio.middle);
  }
  return fmt::format("{:.3f} ({:.3f} to {:.3f})", ratio.middle, ratio.low, ratio.high);
}

std::string ratio_text(const Search& search) {
  if (!search.decision) return "nothing to compare";
  if (search.decision->winner == search.decision->default_at) return "1: the default stays";
  return ratio_text(search.winner().ratio) + (search.predicted ? ", predicted" : "");
}

std::string ending_text(const Search& search) {
  if (search.ended) return "ended by itself";
  if (search.decision && search.decision->complete) {
    return "complete, but its process ended before it recorded that";
  }
  return "cut short by a limit, by its user or with its process";
}

}  // namespace annulus::program::report
