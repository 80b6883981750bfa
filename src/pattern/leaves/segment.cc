#include "pattern/leaves/segment.h"

#include <algorithm>
#include <iterator>

#include "base/work.h"
#include "pattern/check_number.h"
#include "pattern/leaves/arguments.h"
#include "pattern/leaves/arithmetic.h"
#include "pattern/leaves/mask_writer.h"
#include "pattern/node.h"

namespace annulus::pattern::leaves {
namespace {

constexpr Word kSegmentWords[] = {
    {"segment", "segment(w, r)",
     "every r-th key of the query's segment of w keys, by head (LongNet)", [](Arguments* read) {
       const auto [w, r] = read->numbers<2>("segment");
       return read->built([&] { return segment(w, r); });
     }}};

// In a segment, a head takes the offsets first = head % rate, first + rate, ... Returns `at` if it
// is one of them, else the next one after it.
inline std::int64_t next_chosen(const Segment& leaf, std::int64_t first, std::int64_t at) {
  const auto [width, rate] = leaf;
  const std::int64_t offset = floor_mod(at, width);
  const std::int64_t next = offset + floor_mod(first - offset, rate);
  if (next < width) return at - offset + next;
  return first < width ? at - offset + width + first : kHigh;
}

// Calls f(segment) for each segment of which the head takes a query. The leaf is passed by value,
// so that its numbers stay in registers although f writes intervals.
template <typename F>
void each_segment(Segment leaf, std::int64_t head, Interval queries, const F& f) {
  const std::int64_t first = head % leaf.rate;
  for (std::int64_t q = next_chosen(leaf, first, queries.begin); q < queries.end;) {
    const std::int64_t begin = q - floor_mod(q, leaf.width);
    f(Interval{begin, begin + leaf.width});
    // The next segment begins after this one, so its first chosen offset is known.
    if (first >= leaf.width) return;
    q = begin + leaf.width + first;
  }
}

}  // namespace

void Segment::check() {
  check_number("segment", "w", width, 1);
  check_number("segment", "r", rate, 1);
}

void Segment::print(std::string* text) const {
  fmt::format_to(std::back_inserter(*text), "segment({}, {})", width, rate);
}

bool Segment::visible(const Pair& pair) const {
  const auto chosen = [&](std::int64_t position) {
    return floor_mod(position, width) % rate == pair.head % rate;
  };
  return floor_div(pair.q, width) == floor_div(pair.k, width) && chosen(pair.q) && chosen(pair.k);
}

void Segment::keys(const Question& question, Wanted wanted, IntervalSet* out) const {
  const Interval& queries = question.queries;
  if (wanted == Wanted::kAll && queries.size() > 1) {
    // The head takes at most one of two neighbouring queries in a segment, unless it takes all
    // queries.
    if (rate > 1 || floor_div(queries.begin, width) != floor_div(queries.end - 1, width)) return;
  }
  // The steps of long results are charged before they are written.
  const std::int64_t most = std::min(width, question.universe.size()) / rate;
  if (rate > 1 && most > 4096) base::charge(most / 2);
  const Segment leaf = *this;
  each_segment(leaf, question.head, queries, [&](const Interval& segment) {
    const Interval keys = intersection(segment, question.universe);
    if (leaf.rate == 1) return append(out, keys);
    const std::int64_t first = next_chosen(leaf, question.head % leaf.rate, keys.begin);
    for (std::int64_t k = first; k < keys.end; k += leaf.rate) append(out, {k, k + 1});
  });
}

bool Segment::coarse_keys(const Question& question, std::int64_t grain, CoarseKeys* out) const {
  if (rate == 1 || rate > grain || width < rate) return false;
  each_segment(*this, question.head, question.queries, [&](const Interval& segment) {
    const Interval keys = intersection(segment, question.universe);
    append(out->any, keys);
    // Each mixed interval loses its last key, so that the intervals of two segments do not touch.
    append(out->mixed, {keys.begin, std::min(keys.end, segment.end - 1)});
  });
  return true;
}

std::optional<Stripes> Segment::stripes(std::int64_t head, std::int64_t q) const {
  if (rate == 1) return {};
  const std::int64_t begin = q - floor_mod(q, width);
  const bool taken = (q - begin) % rate == head % rate;
  return Stripes{taken ? Interval{begin, begin + width} : Interval{}, begin + head % rate, rate, 1};
}

std::int64_t Segment::alike_rows() const { return rate == 1 ? width : 1; }

std::int64_t Segment::next_form(std::int64_t q) const { return next_multiple(q, alike_rows()); }

std::int64_t Segment::next_end(std::int64_t, std::int64_t position) const {
  return next_multiple(position, alike_rows());
}

MovingEnds Segment::moving_ends(std::int64_t) const { return {}; }

Piece Segment::code(MaskWriter* write) const {
  return write->call(functions::segment,
                     {write->slot("w of segment", width), write->slot("r of segment", rate)});
}

Structure Segment::structure() const {
  return {.head_period = rate,
          .context_block = 0,
          .agreeing_rows = rate == 1 ? kNever : 0,
          .is_scattered = false};
}

std::span<const Word> Segment::words() { return kSegmentWords; }

}  // namespace annulus::pattern::leaves

namespace annulus::inline v0 {

Pattern segment(std::int64_t w, std::int64_t r) {
  return pattern::make_leaf(pattern::leaves::Segment{.width = w, .rate = r});
}

}  // namespace annulus::inline v0
