#ifndef ANNULUS_PATTERN_LEAVES_NATTEN_H_
#define ANNULUS_PATTERN_LEAVES_NATTEN_H_

// natten(height, width, n): k is in the n x n neighbourhood of q. At the border of the grid the
// centre of the neighbourhood moves inwards.

#include "pattern/leaves/leaf.h"

namespace annulus::pattern::leaves {

struct Natten {
  std::int64_t height = 1;
  std::int64_t width = 1;
  std::int64_t n = 1;

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

  friend bool operator==(const Natten&, const Natten&) = default;
};

}  // namespace annulus::pattern::leaves

#endif  // ANNULUS_PATTERN_LEAVES_NATTEN_H_
