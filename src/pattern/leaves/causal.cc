#include "pattern/leaves/causal.h"

#include "pattern/check_number.h"
#include "pattern/leaves/arguments.h"
#include "pattern/leaves/arithmetic.h"
#include "pattern/leaves/mask_writer.h"
#include "pattern/node.h"

namespace annulus::pattern::leaves {
namespace {

constexpr Word kCausalWords[] = {{"causal", "causal",
                                  "the query's own position and those before it",
                                  [](Arguments*) { return causal(); }, true}};

}  // namespace

void Causal::check() {}

void Causal::print(std::string* text) const { *text += "causal"; }

bool Causal::visible(const Pair& pair) const { return pair.k <= pair.q; }

void Causal::keys(const Question& question, Wanted wanted, IntervalSet* out) const {
  const Interval& queries = question.queries;
  add(out, question.universe, {kLow, wanted == Wanted::kAny ? queries.end : queries.begin + 1});
}

bool Causal::coarse_keys(const Question&, std::int64_t, CoarseKeys*) const { return false; }

std::optional<Stripes> Causal::stripes(std::int64_t, std::int64_t) const { return {}; }

std::int64_t Causal::alike_rows() const { return 0; }

std::int64_t Causal::next_form(std::int64_t) const { return kNever; }

std::int64_t Causal::next_end(std::int64_t, std::int64_t) const { return kNever; }

MovingEnds Causal::moving_ends(std::int64_t q) const { return {1, {q + 1}}; }

Piece Causal::code(MaskWriter* write) const { return write->call(functions::causal, {}); }

Structure Causal::structure() const {
  return {.head_period = 1,
          .context_block = 0,
          .agreeing_rows = kNever,
          .is_scattered = false,
          .is_short = true,
          .band = KeyBand{.end = {{1, true}}}};
}

std::span<const Word> Causal::words() { return kCausalWords; }

}  // namespace annulus::pattern::leaves

namespace annulus::inline v0 {

Pattern causal() { return pattern::make_leaf(pattern::leaves::Causal{}); }

}  // namespace annulus::inline v0
