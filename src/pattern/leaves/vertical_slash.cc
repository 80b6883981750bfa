#include "pattern/leaves/vertical_slash.h"

#include <fmt/core.h>

#include <iterator>

#include "base/join.h"
#include "base/work.h"
#include "pattern/check_number.h"
#include "pattern/leaves/arguments.h"
#include "pattern/leaves/arithmetic.h"
#include "pattern/leaves/mask_writer.h"
#include "pattern/node.h"

namespace annulus::pattern::leaves {
namespace {

constexpr Word kVerticalSlashWords[] = {
    {"vertical_slash", "vertical_slash([k, ...], [d, ...])",
     "keys k, and the keys d before the query", [](Arguments* read) {
       const std::vector<std::int64_t> columns = read->list();
       read->expect(',', "between the two lists of vertical_slash");
       const std::vector<std::int64_t> slashes = read->list();
       return read->built([&] { return vertical_slash(columns, slashes); });
     }}};

}  // namespace

void VerticalSlash::check() {
  check_positions("vertical_slash: columns", columns);
  check_positions("vertical_slash: slashes", slashes);
  put_in_order(&columns);
  put_in_order(&slashes);
}

void VerticalSlash::print(std::string* text) const {
  fmt::format_to(std::back_inserter(*text), "vertical_slash([{}], [{}])", base::join(columns, ", "),
                 base::join(slashes, ", "));
}

bool VerticalSlash::visible(const Pair& pair) const {
  return has(columns, pair.k) || has(slashes, difference(pair.q, pair.k));
}

void VerticalSlash::keys(const Question& question, Wanted wanted, IntervalSet* out) const {
  const Interval& queries = question.queries;
  IntervalSet vertical, diagonal;
  base::charge(std::ssize(slashes) / 4);
  append_listed(columns, question.universe, &vertical);
  // For slashes d, d + 1, ..., e and queries [a, b), the keys of kAny are [a - e, b - d), and the
  // keys of kAll are [b - 1 - e, a - d + 1). Larger slashes are earlier keys.
  for (auto end = slashes.rbegin(); end != slashes.rend();) {
    auto last = end;
    while (std::next(last) != slashes.rend() && *std::next(last) == *last - 1) ++last;
    const bool any = wanted == Wanted::kAny;
    add(&diagonal, question.universe,
        {(any ? queries.begin : queries.end - 1) - *end,
         (any ? queries.end - 1 : queries.begin) - *last + 1});
    end = std::next(last);
  }
  unite(vertical, diagonal, out);
}

bool VerticalSlash::coarse_keys(const Question&, std::int64_t, CoarseKeys*) const { return false; }

std::optional<Stripes> VerticalSlash::stripes(std::int64_t, std::int64_t) const { return {}; }

std::int64_t VerticalSlash::alike_rows() const { return 1; }

std::int64_t VerticalSlash::next_form(std::int64_t q) const { return q + 1; }

std::int64_t VerticalSlash::next_end(std::int64_t, std::int64_t position) const {
  return position + 1;
}

MovingEnds VerticalSlash::moving_ends(std::int64_t) const { return {}; }

Piece VerticalSlash::code(MaskWriter* write) const {
  const auto [column_list, column_count] = write->list_slots("a column of vertical_slash", columns);
  const auto [slash_list, slash_count] = write->list_slots("a slash of vertical_slash", slashes);
  return write->call(functions::vertical_slash,
                     {column_list, column_count, slash_list, slash_count});
}

Structure VerticalSlash::structure() const {
  return {.head_period = 1, .context_block = 0, .agreeing_rows = 0, .is_scattered = true};
}

std::span<const Word> VerticalSlash::words() { return kVerticalSlashWords; }

}  // namespace annulus::pattern::leaves

namespace annulus::inline v0 {

Pattern vertical_slash(std::span<const std::int64_t> columns,
                       std::span<const std::int64_t> slashes) {
  return pattern::make_leaf(pattern::leaves::VerticalSlash{{columns.begin(), columns.end()},
                                                           {slashes.begin(), slashes.end()}});
}

Pattern vertical_slash(std::initializer_list<std::int64_t> columns,
                       std::initializer_list<std::int64_t> slashes) {
  return vertical_slash(std::span<const std::int64_t>(columns.begin(), columns.size()),
                        std::span<const std::int64_t>(slashes.begin(), slashes.size()));
}

}  // namespace annulus::inline v0
