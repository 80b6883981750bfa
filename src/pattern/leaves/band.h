#ifndef ANNULUS_PATTERN_LEAVES_BAND_H_
#define ANNULUS_PATTERN_LEAVES_BAND_H_

// dilated(r), block_dilated(r, b) and a level of hierarchical([(stride, window, b), ...]):
// (i - j) mod stride = 0 and |i - j| <= window, where i and j are the blocks of q and k.

#include "pattern/leaves/leaf.h"

namespace annulus::pattern::leaves {

struct Band {
  std::int64_t stride = 1;
  std::int64_t window = kUnbounded;  // set by a level of hierarchical()
  std::int64_t block = 1;

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

  friend bool operator==(const Band&, const Band&) = default;
};

}  // namespace annulus::pattern::leaves

#endif  // ANNULUS_PATTERN_LEAVES_BAND_H_
