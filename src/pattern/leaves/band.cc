#include "pattern/leaves/band.h"

#include <iterator>

#include "pattern/check_number.h"
#include "pattern/leaves/arguments.h"
#include "pattern/leaves/arithmetic.h"
#include "pattern/leaves/mask_writer.h"
#include "pattern/node.h"

namespace annulus::pattern::leaves {
namespace {

constexpr Word kBandWords[] = {
    {"dilated", "dilated(r)", "every r-th key, counted from the query",
     [](Arguments* read) {
       const std::int64_t r = read->number();
       return read->built([&] { return dilated(r); });
     }},
    {"block_dilated", "block_dilated(r, b)", "every r-th block of b keys, counted from the query's",
     [](Arguments* read) {
       const auto [r, b] = read->numbers<2>("block_dilated");
       return read->built([&] { return block_dilated(r, b); });
     }},
};

// The number of strides that the window extends to each side.
std::int64_t reach_of(const Band& band) {
  return band.window == Band::kUnbounded ? kHigh : band.window / band.stride;
}

}  // namespace

// Each level of hierarchical() reports its numbers under their own names.
void Band::check() {
  const char* word = block == 1 ? "dilated" : "block_dilated";
  check_number(word, "r", stride, 1);
  check_number(word, "b", block, 1);
  check_number(word, "window", window, kUnbounded);
}

void Band::print(std::string* text) const {
  const auto out = std::back_inserter(*text);
  if (block == 1) {
    fmt::format_to(out, "dilated({})", stride);
  } else {
    fmt::format_to(out, "block_dilated({}, {})", stride, block);
  }
}

bool Band::visible(const Pair& pair) const {
  const std::int64_t i = floor_div(pair.q, block);
  const std::int64_t j = floor_div(pair.k, block);
  if (floor_mod(i, stride) != floor_mod(j, stride)) return false;
  return window == kUnbounded || block_distance(i, j) <= window;
}

// Row i sees the blocks i + t stride with |t| <= reach, so neighbouring rows see neighbouring
// blocks.
void Band::keys(const Question& question, Wanted wanted, IntervalSet* out) const {
  const Interval& universe = question.universe;
  const Rows rows = rows_of(question.queries, block);
  const std::int64_t reach = reach_of(*this);
  if (wanted == Wanted::kAll && rows.count() > 1) {
    if (stride > 1) return;
    if (window == kUnbounded) return add(out, universe, {kLow, kHigh});
    return add(out, universe,
               {product(rows.last - window, block), product(rows.first + window + 1, block)});
  }
  if (rows.count() < stride) {
    return append_comb(rows, stride, reach == kHigh ? kLow : -reach, reach, block, universe, out);
  }
  if (reach == kHigh) return add(out, universe, {kLow, kHigh});
  add(out, universe,
      {product(rows.first - reach * stride, block),
       product(rows.last + reach * stride + 1, block)});
}

bool Band::coarse_keys(const Question& question, std::int64_t grain, CoarseKeys* out) const {
  const Rows rows = rows_of(question.queries, block);
  if (rows.count() >= stride || product(stride, block) > grain) return false;
  const std::int64_t reach = reach_of(*this);
  const bool bounded = reach != kHigh;
  add(out->any, question.universe,
      {bounded ? product(rows.first - reach * stride, block) : kLow,
       bounded ? product(rows.last + reach * stride + 1, block) : kHigh});
  *out->mixed = *out->any;
  return true;
}

std::optional<Stripes> Band::stripes(std::int64_t, std::int64_t q) const {
  if (stride == 1) return {};
  const std::int64_t row = floor_div(q, block);
  const Interval near = window == kUnbounded ? Interval{kLow, kHigh}
                                             : Interval{product(row - window, block),
                                                        product(row + window + 1, block)};
  return Stripes{near, row * block, product(stride, block), block};
}

std::int64_t Band::alike_rows() const { return block; }

std::int64_t Band::next_form(std::int64_t q) const { return next_multiple(q, block); }

std::int64_t Band::next_end(std::int64_t, std::int64_t position) const {
  return next_multiple(position, block);
}

MovingEnds Band::moving_ends(std::int64_t) const { return {}; }

Piece Band::code(MaskWriter* write) const {
  const std::size_t r = write->slot("a stride", stride);
  if (window == kUnbounded && block == 1) return write->call(functions::dilated, {r});
  if (window == kUnbounded) return write->call(functions::band, {r, write->slot("a block", block)});
  return write->call(functions::level, {r, write->slot("a window of hierarchical", window),
                                        write->slot("a block", block)});
}

Structure Band::structure() const {
  Structure structure = {
      .head_period = 1,
      .context_block = 0,
      .agreeing_rows = stride == 1 ? kNever : product(block, 4),
      .is_scattered = block > 1};  // blocks of one token are a comb finer than a tile
  if (block > 1) structure.blocks = {block, block, false};
  return structure;
}

std::span<const Word> Band::words() { return kBandWords; }

}  // namespace annulus::pattern::leaves

namespace annulus::inline v0 {

Pattern dilated(std::int64_t r) { return pattern::make_leaf(pattern::leaves::Band{.stride = r}); }

Pattern block_dilated(std::int64_t r, std::int64_t b) {
  return pattern::make_leaf(pattern::leaves::Band{.stride = r, .block = b});
}

}  // namespace annulus::inline v0
