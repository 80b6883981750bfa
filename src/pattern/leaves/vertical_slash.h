#ifndef ANNULUS_PATTERN_LEAVES_VERTICAL_SLASH_H_
#define ANNULUS_PATTERN_LEAVES_VERTICAL_SLASH_H_

// vertical_slash([c, ...], [d, ...]): k = c or q - k = d for some c or d of the lists.

#include <vector>

#include "pattern/leaves/leaf.h"

namespace annulus::pattern::leaves {

struct VerticalSlash {
  std::vector<std::int64_t> columns = {};  // ascending, distinct
  std::vector<std::int64_t> slashes = {};  // values of q - k; ascending, distinct

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

  friend bool operator==(const VerticalSlash&, const VerticalSlash&) = default;
};

}  // namespace annulus::pattern::leaves

#endif  // ANNULUS_PATTERN_LEAVES_VERTICAL_SLASH_H_
