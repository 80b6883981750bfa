#include "pattern/leaves/keys.h"

#include <algorithm>
#include <iterator>

#include "pattern/check_number.h"
#include "pattern/leaves/arguments.h"
#include "pattern/leaves/arithmetic.h"
#include "pattern/leaves/mask_writer.h"
#include "pattern/node.h"

namespace annulus::pattern::leaves {
namespace {

constexpr Word kKeysWords[] = {
    {"keys", "keys(a, b)", "keys at positions a to b - 1", [](Arguments* read) {
       const auto [a, b] = read->numbers<2>("keys");
       return read->built([&] { return annulus::keys(a, b); });
     }}};

}  // namespace

void Keys::check() {
  const std::int64_t ends[] = {begin, end};
  check_positions("keys", ends);
  if (begin > end) {
    base::fail(ErrorCode::kInvalidArgument,
               "keys: from {} to {}; the first must not be above the second", begin, end);
  }
}

void Keys::print(std::string* text) const {
  fmt::format_to(std::back_inserter(*text), "keys({}, {})", begin, end);
}

bool Keys::visible(const Pair& pair) const { return pair.k >= begin && pair.k < end; }

// All queries see the same keys, so kAny and kAll give the same result.
void Keys::keys(const Question& question, Wanted wanted, IntervalSet* out) const {
  static_cast<void>(wanted);
  add(out, question.universe, {begin, end});
}

bool Keys::coarse_keys(const Question&, std::int64_t, CoarseKeys*) const { return false; }

std::optional<Stripes> Keys::stripes(std::int64_t, std::int64_t) const { return {}; }

std::int64_t Keys::alike_rows() const { return kNever; }

std::int64_t Keys::next_form(std::int64_t) const { return kNever; }

std::int64_t Keys::next_end(std::int64_t, std::int64_t position) const {
  return std::min(if_above(begin, position), if_above(end, position));
}

MovingEnds Keys::moving_ends(std::int64_t) const { return {}; }

Piece Keys::code(MaskWriter* write) const {
  return write->call(functions::keys,
                     {write->slot("a of keys", begin), write->slot("b of keys", end)});
}

Structure Keys::structure() const {
  return {.head_period = 1,
          .context_block = 0,
          .agreeing_rows = kNever,
          .is_scattered = false,
          .is_short = true,
          .band = KeyBand{.first = {{begin, false}}, .end = {{end, false}}}};
}

std::span<const Word> Keys::words() { return kKeysWords; }

}  // namespace annulus::pattern::leaves

namespace annulus::inline v0 {

Pattern keys(std::int64_t a, std::int64_t b) {
  return pattern::make_leaf(pattern::leaves::Keys{.begin = a, .end = b});
}

}  // namespace annulus::inline v0
