#include "pattern/leaves/strided.h"

#include <iterator>

#include "pattern/check_number.h"
#include "pattern/leaves/arguments.h"
#include "pattern/leaves/arithmetic.h"
#include "pattern/leaves/mask_writer.h"
#include "pattern/node.h"

namespace annulus::pattern::leaves {
namespace {

constexpr Word kStridedWords[] = {{"strided", "strided(s, n, b)",
                                   "every s-th block of b keys, and n blocks around the query's",
                                   [](Arguments* read) {
                                     const auto [s, n, b] = read->numbers<3>("strided");
                                     return read->built([&] { return strided(s, n, b); });
                                   }}};

// The blocks within distance n of any of the rows, or of all rows.
Interval neighbours(const Strided& leaf, Rows rows, Wanted wanted) {
  const bool any = wanted == Wanted::kAny;
  return {product((any ? rows.first : rows.last) - leaf.near, leaf.block),
          product((any ? rows.last : rows.first) + leaf.near + 1, leaf.block)};
}

}  // namespace

void Strided::check() {
  check_number("strided", "s", stride, 1);
  check_number("strided", "n", near, 0);
  check_number("strided", "b", block, 1);
}

void Strided::print(std::string* text) const {
  fmt::format_to(std::back_inserter(*text), "strided({}, {}, {})", stride, near, block);
}

bool Strided::visible(const Pair& pair) const {
  const std::int64_t i = floor_div(pair.q, block);
  const std::int64_t j = floor_div(pair.k, block);
  return floor_mod(j, stride) == 0 || block_distance(i, j) <= near;
}

void Strided::keys(const Question& question, Wanted wanted, IntervalSet* out) const {
  const Interval& universe = question.universe;
  const Rows rows = rows_of(question.queries, block);
  const Interval close = intersection(neighbours(*this, rows, wanted), universe);
  // Queries see everything inside the neighbourhood, so the comb is only needed outside of it.
  const Interval below = {universe.begin, close.empty() ? universe.end : close.begin};
  append_comb({0, 0}, stride, kLow, kHigh, block, below, out);
  if (close.empty()) return;
  append(out, close);
  append_comb({0, 0}, stride, kLow, kHigh, block, {close.end, universe.end}, out);
}

bool Strided::coarse_keys(const Question& question, std::int64_t grain, CoarseKeys* out) const {
  if (stride == 1 || product(stride, block) > grain) return false;
  // Outside of the blocks that all rows see by distance, any b s neighbouring keys hold a block
  // that only near rows see, and a block that all rows see.
  const Interval close = neighbours(*this, rows_of(question.queries, block), Wanted::kAll);
  append(out->all, intersection(close, question.universe));
  append(out->any, question.universe);
  subtract(*out->any, *out->all, out->mixed);
  return true;
}

std::optional<Stripes> Strided::stripes(std::int64_t, std::int64_t) const { return {}; }

std::int64_t Strided::alike_rows() const { return block; }

std::int64_t Strided::next_form(std::int64_t q) const { return next_multiple(q, block); }

std::int64_t Strided::next_end(std::int64_t, std::int64_t position) const {
  return next_multiple(position, block);
}

MovingEnds Strided::moving_ends(std::int64_t) const { return {}; }

Piece Strided::code(MaskWriter* write) const {
  return write->call(functions::strided,
                     {write->slot("s of strided", stride), write->slot("n of strided", near),
                      write->slot("b of strided", block)});
}

Structure Strided::structure() const {
  return {.head_period = 1,
          .context_block = 0,
          .agreeing_rows = stride == 1 ? kNever : product(block, 4),
          .is_scattered = true,
          .blocks = BlockSize{block, block, false}};
}

std::span<const Word> Strided::words() { return kStridedWords; }

}  // namespace annulus::pattern::leaves

namespace annulus::inline v0 {

Pattern strided(std::int64_t s, std::int64_t n, std::int64_t b) {
  return pattern::make_leaf(pattern::leaves::Strided{.stride = s, .near = n, .block = b});
}

}  // namespace annulus::inline v0
