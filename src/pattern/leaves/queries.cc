#include "pattern/leaves/queries.h"

#include <algorithm>
#include <iterator>

#include "pattern/check_number.h"
#include "pattern/leaves/arguments.h"
#include "pattern/leaves/arithmetic.h"
#include "pattern/leaves/mask_writer.h"
#include "pattern/node.h"

namespace annulus::pattern::leaves {
namespace {

constexpr Word kQueriesWords[] = {
    {"queries", "queries(a, b)",
     "queries at positions a to b - 1 see every key, other queries see none", [](Arguments* read) {
       const auto [a, b] = read->numbers<2>("queries");
       return read->built([&] { return annulus::queries(a, b); });
     }}};

}  // namespace

void Queries::check() {
  const std::int64_t ends[] = {begin, end};
  check_positions("queries", ends);
  if (begin > end) {
    base::fail(ErrorCode::kInvalidArgument,
               "queries: from {} to {}; the first must not be above the second", begin, end);
  }
}

void Queries::print(std::string* text) const {
  fmt::format_to(std::back_inserter(*text), "queries({}, {})", begin, end);
}

bool Queries::visible(const Pair& pair) const { return pair.q >= begin && pair.q < end; }

void Queries::keys(const Question& question, Wanted wanted, IntervalSet* out) const {
  const Interval common = intersection(question.queries, {begin, end});
  if (wanted == Wanted::kAny ? !common.empty() : common == question.queries) {
    add(out, question.universe, {kLow, kHigh});
  }
}

bool Queries::coarse_keys(const Question&, std::int64_t, CoarseKeys*) const { return false; }

std::optional<Stripes> Queries::stripes(std::int64_t, std::int64_t) const { return {}; }

std::int64_t Queries::alike_rows() const { return 0; }

std::int64_t Queries::next_form(std::int64_t q) const {
  return std::min(if_above(begin, q), if_above(end, q));
}

std::int64_t Queries::next_end(std::int64_t, std::int64_t) const { return kNever; }

MovingEnds Queries::moving_ends(std::int64_t) const { return {}; }

Piece Queries::code(MaskWriter* write) const {
  return write->call(functions::queries,
                     {write->slot("a of queries", begin), write->slot("b of queries", end)});
}

Structure Queries::structure() const {
  return {.head_period = 1,
          .context_block = 0,
          .agreeing_rows = kNever,
          .is_scattered = false,
          .is_short = true};
}

std::span<const Word> Queries::words() { return kQueriesWords; }

}  // namespace annulus::pattern::leaves

namespace annulus::inline v0 {

Pattern queries(std::int64_t a, std::int64_t b) {
  return pattern::make_leaf(pattern::leaves::Queries{.begin = a, .end = b});
}

}  // namespace annulus::inline v0
