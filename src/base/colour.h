#ifndef ANNULUS_BASE_COLOUR_H_
#define ANNULUS_BASE_COLOUR_H_

// Colours of pictures in the form of SVG 1.1, "#rrggbb". SVG 1.1 has no hsl(), and some viewers
// draw black for it.

#include <algorithm>
#include <cmath>
#include <string>

#include "base/fail.h"

namespace annulus::base {

// Hue in degrees from 0 to 360, saturation and lightness from 0 to 1 (CSS Color Module Level 3,
// section 4.2.4).
inline std::string hsl_colour(double hue, double saturation, double lightness) {
  const auto channel = [&](double offset) {
    const double at = std::fmod(offset + hue / 30, 12);
    const double range = saturation * std::min(lightness, 1 - lightness);
    const double value = lightness - range * std::clamp(std::min(at - 3, 9 - at), -1.0, 1.0);
    return static_cast<int>(std::lround(255 * value));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", channel(0), channel(8), channel(4));
}

}  // namespace annulus::base

#endif  // ANNULUS_BASE_COLOUR_H_
