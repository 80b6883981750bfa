#include "pattern/leaves/documents.h"

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

constexpr Word kDocumentsWords[] = {
    {"documents", "documents([start, ...])",
     "the query's own document; documents begin at these positions", [](Arguments* read) {
       const std::vector<std::int64_t> starts = read->list();
       return read->built([&] { return documents(std::span(starts)); });
     }}};

}  // namespace

void Documents::check() {
  check_positions("documents", starts);
  for (std::size_t i = 1; i < starts.size(); ++i) {
    if (starts[i] <= starts[i - 1]) {
      base::fail(ErrorCode::kInvalidArgument,
                 "documents: start {} is {}, after {}; starts must ascend strictly", i, starts[i],
                 starts[i - 1]);
    }
  }
}

void Documents::print(std::string* text) const {
  fmt::format_to(std::back_inserter(*text), "documents([{}])", base::join(starts, ", "));
}

bool Documents::visible(const Pair& pair) const {
  const auto next = std::upper_bound(starts.begin(), starts.end(), std::min(pair.q, pair.k));
  return next == starts.end() || *next > std::max(pair.q, pair.k);
}

// Every document between the documents of the first and the last query holds a query, so the union
// has no gap.
void Documents::keys(const Question& question, Wanted wanted, IntervalSet* out) const {
  const Interval low = document_of(question.queries.begin);
  const Interval high = document_of(question.queries.end - 1);
  if (wanted == Wanted::kAny || low == high) add(out, question.universe, {low.begin, high.end});
}

bool Documents::coarse_keys(const Question&, std::int64_t, CoarseKeys*) const { return false; }

std::optional<Stripes> Documents::stripes(std::int64_t, std::int64_t) const { return {}; }

std::int64_t Documents::alike_rows() const { return 0; }

std::int64_t Documents::next_form(std::int64_t q) const { return next_listed(starts, q); }

std::int64_t Documents::next_end(std::int64_t q, std::int64_t position) const {
  const Interval document = document_of(q);
  return std::min(if_above(document.begin, position), if_above(document.end, position));
}

MovingEnds Documents::moving_ends(std::int64_t) const { return {}; }

Piece Documents::code(MaskWriter* write) const {
  const auto [offset, length] = write->list_slots("a start of documents", starts);
  return write->call(functions::documents, {offset, length});
}

Structure Documents::structure() const {
  return {.head_period = 1,
          .context_block = 0,
          .agreeing_rows = kNever,
          .is_scattered = false,
          .is_short = true};
}

std::span<const Word> Documents::words() { return kDocumentsWords; }

Interval Documents::document_of(std::int64_t q) const {
  const auto next = std::upper_bound(starts.begin(), starts.end(), q);
  return {next == starts.begin() ? kLow : *(next - 1), next == starts.end() ? kHigh : *next};
}

}  // namespace annulus::pattern::leaves

namespace annulus::inline v0 {

Pattern documents(std::span<const std::int64_t> starts) {
  return pattern::make_leaf(pattern::leaves::Documents{{starts.begin(), starts.end()}});
}

Pattern documents(std::initializer_list<std::int64_t> starts) {
  return documents(std::span<const std::int64_t>(starts.begin(), starts.size()));
}

}  // namespace annulus::inline v0
