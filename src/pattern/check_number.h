#ifndef ANNULUS_PATTERN_CHECK_NUMBER_H_
#define ANNULUS_PATTERN_CHECK_NUMBER_H_

// Checks of the numbers of leaves. Both throw Error{kInvalidArgument}, which names the first wrong
// number.

#include <cstdint>
#include <span>

#include "base/fail.h"

namespace annulus::pattern {

// The bound of numbers and listed positions: sums of three of them do not overflow.
constexpr std::int64_t kMaxNumber = std::int64_t{1} << 60;

// `least` is -1 if -1 stands for unbounded.
inline void check_number(const char* leaf, const char* name, std::int64_t value, std::int64_t least,
                         std::int64_t most = kMaxNumber) {
  if (value >= least && value <= most) return;
  base::fail(ErrorCode::kInvalidArgument, "{}: {} is {}; it must be in [{}, {}]{}", leaf, name,
             value, least, most == kMaxNumber ? "2^60" : fmt::format("{}", most),
             least == -1 ? " (-1 is unbounded)" : "");
}

inline void check_positions(const char* leaf, std::span<const std::int64_t> positions) {
  for (std::size_t i = 0; i < positions.size(); ++i) {
    if (positions[i] >= -kMaxNumber && positions[i] <= kMaxNumber) continue;
    base::fail(ErrorCode::kInvalidArgument, "{}: entry {} is {}; positions are within +-2^60", leaf,
               i, positions[i]);
  }
}

}  // namespace annulus::pattern

#endif  // ANNULUS_PATTERN_CHECK_NUMBER_H_
