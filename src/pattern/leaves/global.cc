#include "pattern/leaves/global.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "base/join.h"
#include "pattern/check_number.h"
#include "pattern/leaves/arguments.h"
#include "pattern/leaves/arithmetic.h"
#include "pattern/leaves/mask_writer.h"
#include "pattern/node.h"

namespace annulus::pattern::leaves {
namespace {

// Both leaves have the same word, which takes a number or a list.
constexpr Word kGlobalWords[] = {
    {"global", "global(n) or global([p, ...])",
     "the first n keys, or the listed keys; queries among them see every key", [](Arguments* read) {
       if (read->next_is('[')) {
         const std::vector<std::int64_t> positions = read->list();
         return read->built([&] { return global(std::span(positions)); });
       }
       const std::int64_t n = read->number();
       return read->built([&] { return global(n); });
     }}};

}  // namespace

void GlobalFirst::check() { check_number("global", "n", n, 0); }

void GlobalFirst::print(std::string* text) const {
  fmt::format_to(std::back_inserter(*text), "global({})", n);
}

bool GlobalFirst::visible(const Pair& pair) const { return pair.q < n || pair.k < n; }

void GlobalFirst::keys(const Question& question, Wanted wanted, IntervalSet* out) const {
  const std::int64_t q = wanted == Wanted::kAny ? question.queries.begin : question.queries.end - 1;
  add(out, question.universe, {kLow, q < n ? kHigh : n});
}

bool GlobalFirst::coarse_keys(const Question&, std::int64_t, CoarseKeys*) const { return false; }

std::optional<Stripes> GlobalFirst::stripes(std::int64_t, std::int64_t) const { return {}; }

std::int64_t GlobalFirst::alike_rows() const { return 0; }

std::int64_t GlobalFirst::next_form(std::int64_t q) const { return if_above(n, q); }

std::int64_t GlobalFirst::next_end(std::int64_t q, std::int64_t position) const {
  return q < n ? kNever : if_above(n, position);
}

MovingEnds GlobalFirst::moving_ends(std::int64_t) const { return {}; }

Piece GlobalFirst::code(MaskWriter* write) const {
  return write->call(functions::global_first, {write->slot("n of global", n)});
}

Structure GlobalFirst::structure() const {
  return {.head_period = 1, .context_block = 0, .agreeing_rows = kNever, .is_scattered = false};
}

std::span<const Word> GlobalFirst::words() { return kGlobalWords; }

void GlobalListed::check() {
  check_positions("global", positions);
  put_in_order(&positions);
}

void GlobalListed::print(std::string* text) const {
  fmt::format_to(std::back_inserter(*text), "global([{}])", base::join(positions, ", "));
}

bool GlobalListed::visible(const Pair& pair) const {
  return has(positions, pair.q) || has(positions, pair.k);
}

void GlobalListed::keys(const Question& question, Wanted wanted, IntervalSet* out) const {
  const Interval& queries = question.queries;
  const std::int64_t listed = std::lower_bound(positions.begin(), positions.end(), queries.end) -
                              std::lower_bound(positions.begin(), positions.end(), queries.begin);
  if (wanted == Wanted::kAny ? listed > 0 : listed == queries.size()) {
    return add(out, question.universe, {kLow, kHigh});
  }
  append_listed(positions, question.universe, out);
}

bool GlobalListed::coarse_keys(const Question&, std::int64_t, CoarseKeys*) const { return false; }

std::optional<Stripes> GlobalListed::stripes(std::int64_t, std::int64_t) const { return {}; }

std::int64_t GlobalListed::alike_rows() const { return 0; }

std::int64_t GlobalListed::next_form(std::int64_t q) const {
  return has(positions, q) ? q + 1 : next_listed(positions, q);
}

// Each listed key is an interval of its own, so any key may be an end.
std::int64_t GlobalListed::next_end(std::int64_t, std::int64_t position) const {
  return has(positions, position) ? position + 1 : next_listed(positions, position);
}

MovingEnds GlobalListed::moving_ends(std::int64_t) const { return {}; }

Piece GlobalListed::code(MaskWriter* write) const {
  const auto [offset, length] = write->list_slots("a position of global", positions);
  return write->call(functions::global_listed, {offset, length});
}

Structure GlobalListed::structure() const {
  return {.head_period = 1, .context_block = 0, .agreeing_rows = 0, .is_scattered = true};
}

std::span<const Word> GlobalListed::words() { return {}; }

}  // namespace annulus::pattern::leaves

namespace annulus::inline v0 {

Pattern global(std::int64_t n) { return pattern::make_leaf(pattern::leaves::GlobalFirst{.n = n}); }

Pattern global(std::span<const std::int64_t> positions) {
  return pattern::make_leaf(pattern::leaves::GlobalListed{{positions.begin(), positions.end()}});
}

Pattern global(std::initializer_list<std::int64_t> positions) {
  return global(std::span<const std::int64_t>(positions.begin(), positions.size()));
}

}  // namespace annulus::inline v0
