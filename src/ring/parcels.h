#ifndef ANNULUS_RING_PARCELS_H_
#define ANNULUS_RING_PARCELS_H_

// The rows of a shard that travel. An owner packs the rows that other ranks need, each once, behind
// one another: row p of its packed rows is row `rows` of its shard. A taker is a set of rows that
// travels together: what one rank needs, or what one hop around a ring carries. The order of the
// packed rows is chosen so that each taker has one range of them, where an order allows it, since a
// range is one message.

#include <cstdint>
#include <span>
#include <vector>

#include "pattern/interval.h"

namespace annulus::ring {

class PackedRows {
 public:
  PackedRows() = default;
  // Rows of the shard in the order in which they are packed. Requires: no row occurs twice.
  explicit PackedRows(std::vector<pattern::Interval> pieces);

  // The packed rows as intervals of the shard's rows, in packed order.
  const std::vector<pattern::Interval>& pieces() const { return pieces_; }
  std::int64_t count() const { return count_; }

  // Where rows of the shard are among the packed rows. Requires: all of them are packed.
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
  std::vector<std::int64_t> starts_;      // of each piece, among the packed rows
  std::vector<std::uint32_t> ascending_;  // indices of the pieces by their first row
  std::int64_t count_ = 0;
};

// Packs the rows of all takers, in the shard's own order if that gives each taker one range; else
// in the better of that order and one that brings rows of the same takers together, and such groups
// next to groups with which they share most takers. The same takers give the same order.
PackedRows pack_rows_of(std::span<const pattern::IntervalSet* const> takers);

}  // namespace annulus::ring

#endif  // ANNULUS_RING_PARCELS_H_
