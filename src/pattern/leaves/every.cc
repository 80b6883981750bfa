#include "pattern/leaves/every.h"

#include <algorithm>
#include <iterator>

#include "pattern/check_number.h"
#include "pattern/leaves/arguments.h"
#include "pattern/leaves/arithmetic.h"
#include "pattern/leaves/mask_writer.h"
#include "pattern/node.h"

namespace annulus::pattern::leaves {
namespace {

constexpr Word kEveryWords[] = {
    {"every", "every(s, r)", "keys whose position is r modulo s", [](Arguments* read) {
       const auto [s, r] = read->numbers<2>("every");
       return read->built([&] { return annulus::every(s, r); });
     }}};

// From this stride on, each key of a row is in a tile of its own. With smaller strides the keys are
// a comb finer than a tile.
constexpr std::int64_t kFineStride = 64;

}  // namespace

void Every::check() {
  check_number("every", "s", stride, 1);
  check_number("every", "r", remainder, 0, stride - 1);
}

void Every::print(std::string* text) const {
  fmt::format_to(std::back_inserter(*text), "every({}, {})", stride, remainder);
}

bool Every::visible(const Pair& pair) const { return floor_mod(pair.k, stride) == remainder; }

// All queries see the same keys, so kAny and kAll give the same result.
void Every::keys(const Question& question, Wanted wanted, IntervalSet* out) const {
  static_cast<void>(wanted);
  append_comb({remainder, remainder}, stride, kLow, kHigh, 1, question.universe, out);
}

bool Every::coarse_keys(const Question& question, std::int64_t grain, CoarseKeys* out) const {
  if (stride == 1 || stride > grain) return false;
  append(out->any, question.universe);
  *out->mixed = *out->any;
  return true;
}

std::optional<Stripes> Every::stripes(std::int64_t, std::int64_t) const {
  if (stride == 1) return {};
  return Stripes{{kLow, kHigh}, remainder, stride, 1};
}

std::int64_t Every::alike_rows() const { return kNever; }

std::int64_t Every::next_form(std::int64_t) const { return kNever; }

// Visible keys are single keys, so there are ends at every key with the remainder and at the key
// after it.
std::int64_t Every::next_end(std::int64_t, std::int64_t position) const {
  if (stride == 1) return kNever;
  const std::int64_t begin = next_multiple(position - remainder, stride) + remainder;
  const std::int64_t end = next_multiple(position - remainder - 1, stride) + remainder + 1;
  return std::min(begin, end);
}

MovingEnds Every::moving_ends(std::int64_t) const { return {}; }

Piece Every::code(MaskWriter* write) const {
  return write->call(functions::every,
                     {write->slot("s of every", stride), write->slot("r of every", remainder)});
}

Structure Every::structure() const {
  return {.head_period = 1,
          .context_block = 0,
          .agreeing_rows = kNever,
          .is_scattered = stride > kFineStride};
}

std::span<const Word> Every::words() { return kEveryWords; }

}  // namespace annulus::pattern::leaves

namespace annulus::inline v0 {

Pattern every(std::int64_t s, std::int64_t r) {
  return pattern::make_leaf(pattern::leaves::Every{.stride = s, .remainder = r});
}

}  // namespace annulus::inline v0
