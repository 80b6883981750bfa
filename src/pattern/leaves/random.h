#ifndef ANNULUS_PATTERN_LEAVES_RANDOM_H_
#define ANNULUS_PATTERN_LEAVES_RANDOM_H_

// random(c, seed, b): j is one of the c blocks that the row of blocks i has chosen. The choice is
// the same on every machine, and the same if the problem is cut into parts, because it comes from a
// counter-based generator whose counter is the row, the head and the layer.

#include <vector>

#include "pattern/leaves/leaf.h"

namespace annulus::pattern::leaves {

struct Random {
  std::int64_t count = 0;
  std::int64_t seed = 0;
  std::int64_t block = 1;

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

  // The number of column blocks to choose from: ceil(Sk / b). Throws Error{kInvalidArgument} if the
  // context does not have Sk, or if its layer is outside [0, 2^32).
  std::int64_t columns(const PatternContext& context) const;
  // Writes min(c, columns) distinct numbers in [0, columns) to *chosen, in ascending order, by
  // Floyd's algorithm: for d = 0, 1, ... and top = columns - c + d draw t in [0, top], and take t,
  // or top if t is taken already. Draw d is philox(counter {d, row, head, layer}, key {seed low,
  // seed high}): its first two words, low first, are u, and t = floor(u (top + 1) / 2^64). Row and
  // head are taken modulo 2^32.
  void choose(std::int64_t head, std::int64_t block_row, std::int64_t columns,
              const PatternContext& context, std::vector<std::int64_t>* chosen) const;

  friend bool operator==(const Random&, const Random&) = default;
};

}  // namespace annulus::pattern::leaves

#endif  // ANNULUS_PATTERN_LEAVES_RANDOM_H_
