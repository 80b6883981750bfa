#include "pattern/leaves/sink.h"

#include <iterator>

#include "pattern/check_number.h"
#include "pattern/leaves/arguments.h"
#include "pattern/leaves/arithmetic.h"
#include "pattern/leaves/mask_writer.h"
#include "pattern/node.h"

namespace annulus::pattern::leaves {
namespace {

template <Pattern (*kMake)(std::int64_t)>
Pattern parse(Arguments* read) {
  const std::int64_t n = read->number();
  return read->built([&] { return kMake(n); });
}
constexpr Word kSinkWords[] = {{"sink", "sink(n)", "the first n keys", parse<sink>},
                               {"prefix", "prefix(n)", "another name for sink", parse<prefix>}};

}  // namespace

void Sink::check() { check_number("sink", "n", n, 0); }

void Sink::print(std::string* text) const {
  fmt::format_to(std::back_inserter(*text), "sink({})", n);
}

bool Sink::visible(const Pair& pair) const { return pair.k < n; }

void Sink::keys(const Question& question, Wanted, IntervalSet* out) const {
  add(out, question.universe, {kLow, n});
}

bool Sink::coarse_keys(const Question&, std::int64_t, CoarseKeys*) const { return false; }

std::optional<Stripes> Sink::stripes(std::int64_t, std::int64_t) const { return {}; }

std::int64_t Sink::alike_rows() const { return 0; }

std::int64_t Sink::next_form(std::int64_t) const { return kNever; }

std::int64_t Sink::next_end(std::int64_t, std::int64_t position) const {
  return if_above(n, position);
}

MovingEnds Sink::moving_ends(std::int64_t) const { return {}; }

Piece Sink::code(MaskWriter* write) const {
  return write->call(functions::sink, {write->slot("n of sink", n)});
}

Structure Sink::structure() const {
  return {.head_period = 1,
          .context_block = 0,
          .agreeing_rows = kNever,
          .is_scattered = false,
          .is_short = true,
          .band = KeyBand{.end = {{n, false}}}};
}

std::span<const Word> Sink::words() { return kSinkWords; }

}  // namespace annulus::pattern::leaves

namespace annulus::inline v0 {

Pattern sink(std::int64_t n) { return pattern::make_leaf(pattern::leaves::Sink{.n = n}); }

Pattern prefix(std::int64_t n) { return sink(n); }

}  // namespace annulus::inline v0
