#ifndef ANNULUS_PATTERN_LEAVES_SEGMENT_H_
#define ANNULUS_PATTERN_LEAVES_SEGMENT_H_

// segment(w, r), as in LongNet: q and k are in the same segment of length w, and both offsets in it
// are congruent to the head (mod r).

#include "pattern/leaves/leaf.h"

namespace annulus::pattern::leaves {

struct Segment {
  std::int64_t width = 1;
  std::int64_t rate = 1;

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

  friend bool operator==(const Segment&, const Segment&) = default;
};

}  // namespace annulus::pattern::leaves

#endif  // ANNULUS_PATTERN_LEAVES_SEGMENT_H_
