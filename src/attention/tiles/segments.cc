#include "attention/tiles/segments.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "base/math.h"

namespace annulus::attention {
namespace {

std::int64_t shortest_of(const std::vector<Segment>& segments) {
  return std::ranges::min(segments, {}, &Segment::length).length;
}

void extend(std::vector<Segment>* segments, std::int64_t tile) {
  if (segments->size() < 2) return;
  for (Segment& segment : *segments) segment.length = base::round_up(segment.length, tile);
}

}  // namespace

void Segments::add_q(const std::vector<Segment>& segments) {
  if (segments.size() < 2) return;
  most = std::max(most, std::ssize(segments));
  shortest_q = std::min(shortest_q, shortest_of(segments));
  std::int64_t row = 0;
  for (const Segment& segment : std::span(segments).first(segments.size() - 1)) {
    row += segment.length;
    q_edges = std::gcd(q_edges, row);
  }
}

void Segments::add_k(const std::vector<Segment>& segments) {
  if (segments.size() < 2) return;
  most = std::max(most, std::ssize(segments));
  shortest_k = std::min(shortest_k, shortest_of(segments));
}

Segments segments_of(const pattern::Placement& placement) {
  Segments segments;
  segments.add_q(placement.q);
  segments.add_k(placement.k);
  return segments;
}

pattern::Placement in_whole_tiles(const pattern::Placement& placement, std::int64_t tile_rows,
                                  std::int64_t tile_columns) {
  pattern::Placement whole = placement;
  extend(&whole.q, tile_rows);
  extend(&whole.k, tile_columns);
  return whole;
}

kernels::SecondSegment second_segment(const std::vector<Segment>& segments, std::int64_t tile) {
  const std::int64_t first = segments.front().length;
  if (segments.size() == 1) {
    return {.tile = std::numeric_limits<int>::max(),
            .first = static_cast<int>(first),
            .shift = 0,
            .position = 0};
  }
  const std::int64_t tiles = base::ceil_div(first, tile);
  return {.tile = static_cast<int>(tiles),
          .first = static_cast<int>(first),
          .shift = static_cast<int>(first - tiles * tile),
          .position = static_cast<int>(segments[1].start - first)};
}

}  // namespace annulus::attention
