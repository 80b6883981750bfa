#ifndef ANNULUS_RING_PARCELS_H_
#define ANNULUS_RING_PARCELS_H_

// The rows of a shard that travel. An owner packs the rows that other ranks need, each once, one
// after another: packed row p is some row of the shard. A taker is a set of rows that travels
// together: the rows that one rank needs, or the rows that one hop around a ring carries. The order
// of the packed rows is chosen so that each taker has one range of them, if such an order exists,
// because a range is one message.

#include <cstdint>
#include <span>
#include <vector>

#include "pattern/interval.h"

namespace annulus::ring {

class PackedRows {
 public:
  PackedRows() = default;
  // `pieces` are rows of the shard in the order in which they are packed. Requires: no row occurs
  // twice.
  explicit PackedRows(std::vector<pattern::Interval> pieces);

  // The packed rows as intervals of the shard's rows, in packed order.
  const std::vector<pattern::Interval>& pieces() const { return pieces_; }
  std::int64_t count() const { return count_; }

  // The places of rows of the shard among the packed rows. Requires: all of the rows are packed.
  pattern::IntervalSet places_of(const pattern::IntervalSet& rows) const;
  // Calls f(interval of the shard's rows) for packed rows [places.begin, places.end), in order.
  template <typename F>
  void each_piece(const pattern::Interval& places, F f) const {
    for (std::size_t i = first_piece(places.begin); i < pieces_.size(); ++i) {
      const pattern::Interval at =
          pattern::intersection(places, {starts_[i], starts_[i] + pieces_[i].size()});
      if (at.empty()) return;
      const std::int64_t shift = pieces_[i].begin - starts_[i];
      f(pattern::Interval{at.begin + shift, at.end + shift});
    }
  }

  friend bool operator==(const PackedRows& a, const PackedRows& b) {
    return a.pieces_ == b.pieces_;
  }

 private:
  std::size_t first_piece(std::int64_t place) const;

  std::vector<pattern::Interval> pieces_;
  std::vector<std::int64_t> starts_;  // the starts of the pieces, as indices among the packed rows
  std::vector<std::uint32_t> ascending_;  // indices of the pieces, sorted by first row
  std::int64_t count_ = 0;
};

// Packs the rows of all takers. It uses the shard's own order if that order gives each taker one
// range. Otherwise it uses the better of that order and an order by groups: rows of the same takers
// are adjacent, and groups that share the most takers are neighbours. The same takers give the same
// order.
PackedRows pack_rows_of(std::span<const pattern::IntervalSet* const> takers);

}  // namespace annulus::ring

#endif  // ANNULUS_RING_PARCELS_H_
