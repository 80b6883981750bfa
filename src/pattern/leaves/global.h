#ifndef ANNULUS_PATTERN_LEAVES_GLOBAL_H_
#define ANNULUS_PATTERN_LEAVES_GLOBAL_H_

// global(n): q < n or k < n. global([p, ...]): q or k is in the list.

#include <vector>

#include "pattern/leaves/leaf.h"

namespace annulus::pattern::leaves {

struct GlobalFirst {
  std::int64_t n = 0;

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

  friend bool operator==(const GlobalFirst&, const GlobalFirst&) = default;
};

struct GlobalListed {
  std::vector<std::int64_t> positions = {};  // ascending, distinct

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

  friend bool operator==(const GlobalListed&, const GlobalListed&) = default;
};

}  // namespace annulus::pattern::leaves

#endif  // ANNULUS_PATTERN_LEAVES_GLOBAL_H_
