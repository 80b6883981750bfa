#include "attention/tiles/tile_band.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/math.h"
#include "pattern/node.h"

namespace annulus::attention {
namespace {

using kernels::Ramp;
using kernels::RowBand;
using kernels::RowRun;

// kFar is beyond every position and far from overflow. Offsets between rows are cut to kMaxOffset,
// which is beyond every row.
constexpr std::int64_t kFar = std::int64_t{1} << 61;
constexpr std::int64_t kMaxOffset = std::int64_t{1} << 30;

// A key position as a function of the query's: q + offset, clamped to [least, most].
struct Line {
  std::int64_t offset = 0;
  std::int64_t least = -kFar;
  std::int64_t most = kFar;

  static Line constant(std::int64_t key) { return {0, key, key}; }
  bool is_constant() const { return least == most; }
  bool is_unbounded() const { return least == -kFar && most == kFar; }
  friend bool operator==(const Line&, const Line&) = default;
};

struct Band {
  Line first = Line::constant(-kFar);  // the first key that is seen
  Line end = Line::constant(kFar);     // the first key after them that is not seen
};

// The pointwise maximum and minimum of two lines, or nullopt if they are not lines of this form.
std::optional<Line> larger(const Line& a, const Line& b) {
  if (a == b) return a;
  if (b.is_constant()) return Line{a.offset, std::max(a.least, b.least), std::max(a.most, b.most)};
  if (a.is_constant()) return larger(b, a);
  if (!a.is_unbounded() || !b.is_unbounded()) return std::nullopt;
  return Line{std::max(a.offset, b.offset), -kFar, kFar};
}

std::optional<Line> smaller(const Line& a, const Line& b) {
  if (a == b) return a;
  if (b.is_constant()) return Line{a.offset, std::min(a.least, b.least), std::min(a.most, b.most)};
  if (a.is_constant()) return smaller(b, a);
  if (!a.is_unbounded() || !b.is_unbounded()) return std::nullopt;
  return Line{std::min(a.offset, b.offset), -kFar, kFar};
}

std::optional<Band> intersection(const Band& a, const Band& b) {
  const std::optional<Line> first = larger(a.first, b.first);
  const std::optional<Line> end = smaller(a.end, b.end);
  if (!first || !end) return std::nullopt;
  return Band{*first, *end};
}

// The union of two bands. It is a band if they share one end; otherwise nullopt.
std::optional<Band> union_of(const Band& a, const Band& b) {
  std::optional<Line> first = a.first, end = a.end;
  if (a.first == b.first) {
    end = larger(a.end, b.end);
  } else if (a.end == b.end) {
    first = smaller(a.first, b.first);
  } else {
    return std::nullopt;
  }
  if (!first || !end) return std::nullopt;
  return Band{*first, *end};
}

// The complement of a band that is open on one side. The complement of any other band would be two
// bands.
std::optional<Band> complement(const Band& band) {
  const Band all;
  if (band.first == all.first) return Band{band.end, all.end};
  if (band.end == all.end) return Band{all.first, band.first};
  return std::nullopt;
}

std::optional<Band> band_of(const pattern::leaves::Leaf& leaf) {
  const std::optional<pattern::leaves::KeyBand> keys = pattern::leaves::structure_of(leaf).band;
  if (!keys) return std::nullopt;
  const auto line_of = [](const pattern::leaves::KeyBand::End& end) {
    return end.moves ? Line{end.value} : Line::constant(end.value);
  };
  Band band;
  if (keys->first) band.first = line_of(*keys->first);
  if (keys->end) band.end = line_of(*keys->end);
  return band;
}

// The band of an expression, from the bands of its parts. Expressions by head, by level or of
// several branches have no band.
std::optional<Band> band_of(const pattern::Node& node) {
  using pattern::Kind;
  switch (node.kind) {
    case Kind::kLeaf:
      return band_of(node.leaf);
    case Kind::kNot: {
      const std::optional<Band> band = band_of(*node.children.front());
      return band ? complement(*band) : std::nullopt;
    }
    case Kind::kAnd:
    case Kind::kOr: {
      std::optional<Band> all = band_of(*node.children[0]);
      for (std::size_t i = 1; all && i < node.children.size(); ++i) {
        const std::optional<Band> one = band_of(*node.children[i]);
        if (!one) return std::nullopt;
        all = node.kind == Kind::kAnd ? intersection(*all, *one) : union_of(*all, *one);
      }
      return all;
    }
    case Kind::kHierarchical:
    case Kind::kHeads:
    case Kind::kBatches:
    case Kind::kSum:
      break;
  }
  return std::nullopt;
}

// Converts a line from positions to rows of Q and K.
Ramp ramp_of(const Line& line, std::int64_t q_position, std::int64_t k_position,
             std::int64_t seq_k) {
  const auto row_of = [&](std::int64_t key) {
    return static_cast<int>(std::clamp<std::int64_t>(key - k_position, 0, seq_k));
  };
  const std::int64_t offset = line.offset + q_position - k_position;
  return {static_cast<int>(std::clamp(offset, -kMaxOffset, kMaxOffset)), row_of(line.least),
          row_of(line.most)};
}

// Adds the queries at which a ramp begins to rise and stops rising.
void add_corners(const Ramp& ramp, std::vector<std::int64_t>* corners) {
  for (const std::int64_t key : {ramp.least, ramp.most}) corners->push_back(key - ramp.offset);
}

// Sets seen_begin and seen_end. Returns false if the queries that see something are not one run.
// Between corners the number of keys that a query sees is linear, so only corners are checked.
bool find_seen(std::int64_t seq_q, RowBand* band) {
  std::vector<std::int64_t> corners = {0, seq_q - 1};
  add_corners(band->first, &corners);
  add_corners(band->end, &corners);
  std::erase_if(corners, [&](std::int64_t q) { return q < 0 || q >= seq_q; });
  std::ranges::sort(corners);
  const auto keys = [&](std::int64_t q) {
    return band->end.at(static_cast<int>(q)) - band->first.at(static_cast<int>(q));
  };
  std::int64_t begin = 0, end = 0;
  const auto add = [&](std::int64_t first, std::int64_t last) {
    if (begin == end) {
      begin = first;
    } else if (first > end) {
      return false;
    }
    end = std::max(end, last + 1);
    return true;
  };
  for (std::size_t i = 0; i + 1 < corners.size(); ++i) {
    const std::int64_t from = corners[i], to = corners[i + 1];
    const std::int64_t at_from = keys(from), at_to = keys(to);
    if (at_from <= 0 && at_to <= 0) continue;
    // A number of keys that becomes positive between two corners has slope 1, and one that ceases
    // to be positive has slope -1, because a ramp has slope 0 or 1.
    const std::int64_t first = at_from > 0 ? from : to - at_to + 1;
    const std::int64_t last = at_to > 0 ? to : from + at_from - 1;
    if (!add(first, last)) return false;
  }
  band->seen_begin = static_cast<int>(begin);
  band->seen_end = static_cast<int>(end);
  return true;
}

// Adds up counts over the rows of a band. Rows near a corner are computed one by one. Between
// corners counts are linear functions of the row, so the first and last rows give the sum.
class BandAdder {
 public:
  BandAdder(const RowBand& band, std::int64_t seq_q, std::int64_t seq_k, std::int64_t tile_rows,
            std::int64_t tile_columns)
      : band_(band), seq_q_(seq_q), seq_k_(seq_k), rows_(tile_rows), columns_(tile_columns) {}

  BandSums run() {
    const std::int64_t row_tiles = base::ceil_div(seq_q_, rows_);
    // The rows that are computed one by one: two on each side of the row of a corner.
    std::vector<std::int64_t> corners = {0, seq_q_, band_.seen_begin, band_.seen_end};
    add_corners(band_.first, &corners);
    add_corners(band_.end, &corners);
    std::vector<std::int64_t> alone;
    for (const std::int64_t corner : corners) {
      for (std::int64_t row = corner / rows_ - 2; row <= corner / rows_ + 2; ++row) {
        if (row >= 0 && row < row_tiles) alone.push_back(row);
      }
    }
    std::ranges::sort(alone);
    alone.erase(std::unique(alone.begin(), alone.end()), alone.end());
    std::int64_t next = 0;
    for (const std::int64_t row : alone) {
      add_smooth(next, row);
      add_one(row);
      next = row + 1;
    }
    add_smooth(next, row_tiles);
    return sums_;
  }

 private:
  RowRun at(std::int64_t row) const {
    return kernels::band_row(band_, static_cast<int>(rows_), static_cast<int>(columns_),
                             static_cast<int>(seq_q_), static_cast<int>(seq_k_),
                             static_cast<int>(row));
  }

  void add_one(std::int64_t row) {
    const RowRun run = at(row);
    sums_.tiles += run.count;
    sums_.full_tiles += run.full_count;
    sums_.longest_row = std::max<std::int64_t>(sums_.longest_row, run.count);
    sums_.empty_rows += run.count == 0;
  }

  // Adds rows [begin, end), which have no corner in them or next to them. From one row to the row a
  // period later the band moves by whole tiles, so that the counts of such rows are a linear
  // function.
  void add_smooth(std::int64_t begin, std::int64_t end) {
    const std::int64_t period = columns_ / std::gcd(rows_, columns_);
    if (end - begin <= 4 * period) {
      for (std::int64_t row = begin; row < end; ++row) add_one(row);
      return;
    }
    for (std::int64_t first = begin; first < begin + period; ++first) {
      add_progression(first, period, (end - 1 - first) / period + 1);
    }
  }

  // Adds the n >= 4 rows first, first + period, ...
  void add_progression(std::int64_t first, std::int64_t period, std::int64_t n) {
    const RowRun from = at(first);
    const RowRun to = at(first + (n - 1) * period);
    sums_.tiles += n * (std::int64_t{from.count} + to.count) / 2;
    sums_.longest_row = std::max<std::int64_t>({sums_.longest_row, from.count, to.count});
    sums_.empty_rows += from.count == 0 ? n : 0;
    // The number of full tiles is the positive part of a linear function. If it is positive at one
    // end only, the two terms at that end give its slope, and so the term at which it reaches 0.
    std::int64_t full_begin = 0, full_end = n;  // terms that may be positive
    if (from.full_count == 0 && to.full_count == 0) return;
    const auto full = [&](std::int64_t term) {
      return std::int64_t{at(first + term * period).full_count};
    };
    if (to.full_count == 0) {
      const std::int64_t step = full(0) - full(1);
      full_end = step > 0 ? base::ceil_div(full(0), step) : n;
    } else if (from.full_count == 0) {
      const std::int64_t step = full(n - 1) - full(n - 2);
      full_begin = step > 0 ? n - base::ceil_div(full(n - 1), step) : 0;
    }
    const std::int64_t terms = full_end - full_begin;
    sums_.full_tiles += terms * (full(full_begin) + full(full_end - 1)) / 2;
  }

  const RowBand& band_;
  const std::int64_t seq_q_, seq_k_, rows_, columns_;
  BandSums sums_;
};

}  // namespace

std::optional<RowBand> find_band(const Pattern& pattern, const pattern::Placement& placement,
                                 std::int64_t tile_rows, std::int64_t tile_columns) {
  if (placement.q.size() != 1 || placement.k.size() != 1) return std::nullopt;
  const Segment& q = placement.q[0];
  const Segment& k = placement.k[0];
  if (q.length == 0) return std::nullopt;
  const std::optional<Band> lines = band_of(pattern.node());
  if (!lines) return std::nullopt;
  RowBand band{};
  band.first = ramp_of(lines->first, q.start, k.start, k.length);
  band.end = ramp_of(lines->end, q.start, k.start, k.length);
  if (!find_seen(q.length, &band)) return std::nullopt;
  const auto row_count = [&](std::int64_t row) {
    return kernels::band_row(band, static_cast<int>(tile_rows), static_cast<int>(tile_columns),
                             static_cast<int>(q.length), static_cast<int>(k.length),
                             static_cast<int>(row))
        .count;
  };
  band.descending = row_count((q.length - 1) / tile_rows) > row_count(0);
  return band;
}

BandSums sum_band(const RowBand& band, std::int64_t seq_q, std::int64_t seq_k,
                  std::int64_t tile_rows, std::int64_t tile_columns) {
  return BandAdder(band, seq_q, seq_k, tile_rows, tile_columns).run();
}

}  // namespace annulus::attention
