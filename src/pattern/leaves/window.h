#ifndef ANNULUS_PATTERN_LEAVES_WINDOW_H_
#define ANNULUS_PATTERN_LEAVES_WINDOW_H_

// window(left, right): -left <= k - q <= right. A bound below -1 is a key on the other side of the
// query: window(-3, 10) sees the keys q + 3 to q + 10.

#include "pattern/leaves/leaf.h"

namespace annulus::pattern::leaves {

struct Window {
  std::int64_t left = kUnbounded;
  std::int64_t right = kUnbounded;

  static constexpr std::int64_t kUnbounded = -1;

  void check();
  void print(std::string* text) const;
  bool visible(const Pair& pair) const;
  void keys(const Question& question, Wanted wanted, IntervalSet* out) const;
  bool coarse_keys(const Question& question, std::int64_t grain, CoarseKeys* out) const;
  std::optional<Stripes> stripes(std::int64_t head, std::int64_t q) const;
  std::int64_t alike_rows() const;
  std::int64_t next_form(std::int64_t q) const;
  std::int64_t next_end(std::int64_t q, std::int64_t position) const;
  MovingEnds moving_ends(std::int64_t q) const;
  Piece code(MaskWriter* write) const;
  Structure structure() const;
  static std::span<const Word> words();

  friend bool operator==(const Window&, const Window&) = default;
};

}  // namespace annulus::pattern::leaves

#endif  // ANNULUS_PATTERN_LEAVES_WINDOW_H_
