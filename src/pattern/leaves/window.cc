#include "pattern/leaves/window.h"

#include <iterator>

#include "pattern/check_number.h"
#include "pattern/leaves/arguments.h"
#include "pattern/leaves/arithmetic.h"
#include "pattern/leaves/mask_writer.h"
#include "pattern/node.h"

namespace annulus::pattern::leaves {
namespace {

constexpr Word kWindowWords[] = {
    {"window", "window(left, right)",
     "from left keys before the query to right after it; -1: any number", [](Arguments* read) {
       const auto [left, right] = read->numbers<2>("window");
       return read->built([&] { return window(left, right); });
     }}};

}  // namespace

void Window::check() {
  const auto check_bound = [](const char* name, std::int64_t value) {
    if (value >= -kMaxNumber && value <= kMaxNumber) return;
    base::fail(ErrorCode::kInvalidArgument,
               "window: {} is {}; it must be in +-2^60 (-1 is unbounded)", name, value);
  };
  check_bound("left", left);
  check_bound("right", right);
  if (left != kUnbounded && right != kUnbounded && -left > right) {
    base::fail(
        ErrorCode::kInvalidArgument,
        "window({}, {}) begins {} after the query and ends {} after it: there is no key in between",
        left, right, -left, right);
  }
}

void Window::print(std::string* text) const {
  fmt::format_to(std::back_inserter(*text), "window({}, {})", left, right);
}

bool Window::visible(const Pair& pair) const {
  const std::int64_t distance = difference(pair.k, pair.q);
  return (left == kUnbounded || distance >= -left) && (right == kUnbounded || distance <= right);
}

// Windows of neighbouring queries overlap or touch, so their union has no gap.
void Window::keys(const Question& question, Wanted wanted, IntervalSet* out) const {
  const std::int64_t first = question.queries.begin;
  const std::int64_t last = question.queries.end - 1;
  const bool any = wanted == Wanted::kAny;
  add(out, question.universe,
      {left == kUnbounded ? kLow : (any ? first : last) - left,
       right == kUnbounded ? kHigh : (any ? last : first) + right + 1});
}

bool Window::coarse_keys(const Question&, std::int64_t, CoarseKeys*) const { return false; }

std::optional<Stripes> Window::stripes(std::int64_t, std::int64_t) const { return {}; }

std::int64_t Window::alike_rows() const { return 0; }

std::int64_t Window::next_form(std::int64_t) const { return kNever; }

std::int64_t Window::next_end(std::int64_t, std::int64_t) const { return kNever; }

MovingEnds Window::moving_ends(std::int64_t q) const {
  MovingEnds ends;
  if (left != kUnbounded) ends.at[ends.count++] = q - left;
  if (right != kUnbounded) ends.at[ends.count++] = q + right + 1;
  return ends;
}

Piece Window::code(MaskWriter* write) const {
  if (left == kUnbounded && right == kUnbounded) return constant(true);
  if (right == kUnbounded)
    return write->call(functions::window_left, {write->slot("left of window", left)});
  if (left == kUnbounded)
    return write->call(functions::window_right, {write->slot("right of window", right)});
  return write->call(functions::window,
                     {write->slot("left of window", left), write->slot("right of window", right)});
}

Structure Window::structure() const {
  KeyBand band;
  if (left != kUnbounded) band.first = {-left, true};
  if (right != kUnbounded) band.end = {right + 1, true};
  return {.head_period = 1,
          .context_block = 0,
          .agreeing_rows = kNever,
          .is_scattered = false,
          .is_short = true,
          .band = band};
}

std::span<const Word> Window::words() { return kWindowWords; }

}  // namespace annulus::pattern::leaves

namespace annulus::inline v0 {

Pattern window(std::int64_t left, std::int64_t right) {
  return pattern::make_leaf(pattern::leaves::Window{.left = left, .right = right});
}

}  // namespace annulus::inline v0
