#ifndef ANNULUS_PATTERN_LEAVES_BLOCKS_H_
#define ANNULUS_PATTERN_LEAVES_BLOCKS_H_

// blocks("file"): the layout keeps the block of (q, k). blocks("file", hide_outside) means the
// same, for problems whose queries or keys may lie outside of the layout.

#include <memory>
#include <string>

#include "pattern/leaves/leaf.h"

namespace annulus::pattern::leaves {

struct Blocks {
  std::shared_ptr<const BlockLayout> layout = {};  // always valid
  std::string name = {};                           // the name of the file, or "#digest"
  OutsideLayout outside = OutsideLayout::kRefused;

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

  // Layouts are compared by content, not by name.
  friend bool operator==(const Blocks& a, const Blocks& b) {
    return a.outside == b.outside && (a.layout == b.layout || *a.layout == *b.layout);
  }
};

}  // namespace annulus::pattern::leaves

#endif  // ANNULUS_PATTERN_LEAVES_BLOCKS_H_
