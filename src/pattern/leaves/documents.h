#ifndef ANNULUS_PATTERN_LEAVES_DOCUMENTS_H_
#define ANNULUS_PATTERN_LEAVES_DOCUMENTS_H_

// documents([s, ...]): no start s has min(q, k) < s <= max(q, k).

#include <vector>

#include "pattern/leaves/leaf.h"

namespace annulus::pattern::leaves {

struct Documents {
  std::vector<std::int64_t> starts = {};  // strictly ascending

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

  // The interval from the start of q's document to the start of the next one. If there is no start,
  // it begins at the least number; if there is no next start, it ends at the largest number.
  Interval document_of(std::int64_t q) const;

  friend bool operator==(const Documents&, const Documents&) = default;
};

}  // namespace annulus::pattern::leaves

#endif  // ANNULUS_PATTERN_LEAVES_DOCUMENTS_H_
