#include "pattern/leaves/dense.h"

#include "pattern/check_number.h"
#include "pattern/leaves/arguments.h"
#include "pattern/leaves/arithmetic.h"
#include "pattern/leaves/mask_writer.h"
#include "pattern/node.h"

namespace annulus::pattern::leaves {
namespace {

constexpr Word kDenseWords[] = {
    {"dense", "dense", "every key", [](Arguments*) { return dense(); }, true}};

}  // namespace

void Dense::check() {}

void Dense::print(std::string* text) const { *text += "dense"; }

bool Dense::visible(const Pair&) const { return true; }

void Dense::keys(const Question& question, Wanted, IntervalSet* out) const {
  add(out, question.universe, {kLow, kHigh});
}

bool Dense::coarse_keys(const Question&, std::int64_t, CoarseKeys*) const { return false; }

std::optional<Stripes> Dense::stripes(std::int64_t, std::int64_t) const { return {}; }

std::int64_t Dense::alike_rows() const { return kNever; }

std::int64_t Dense::next_form(std::int64_t) const { return kNever; }

std::int64_t Dense::next_end(std::int64_t, std::int64_t) const { return kNever; }

MovingEnds Dense::moving_ends(std::int64_t) const { return {}; }

Piece Dense::code(MaskWriter*) const { return constant(true); }

Structure Dense::structure() const {
  return {.head_period = 1,
          .context_block = 0,
          .agreeing_rows = kNever,
          .is_scattered = false,
          .is_short = true,
          .band = KeyBand{}};
}

std::span<const Word> Dense::words() { return kDenseWords; }

}  // namespace annulus::pattern::leaves

namespace annulus::inline v0 {

Pattern dense() { return Pattern(); }

}  // namespace annulus::inline v0
