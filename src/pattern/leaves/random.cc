#include "pattern/leaves/random.h"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <memory>
#include <span>

#include "base/math.h"
#include "base/random.h"
#include "base/work.h"
#include "pattern/check_number.h"
#include "pattern/leaves/arguments.h"
#include "pattern/leaves/arithmetic.h"
#include "pattern/leaves/mask_writer.h"
#include "pattern/node.h"

namespace annulus::pattern::leaves {
namespace {

constexpr Word kRandomWords[] = {{"random", "random(c, seed, b)",
                                  "c blocks of b keys, drawn for each block of b queries",
                                  [](Arguments* read) {
                                    const auto [c, seed, b] = read->numbers<3>("random");
                                    return read->built([&] { return annulus::random(c, seed, b); });
                                  }}};

// The largest c: the most blocks that a row of blocks may choose.
constexpr std::int64_t kMaxChosen = std::int64_t{1} << 16;
// The largest list on the device: it takes 1 GB, and its indices fit 32 bits.
constexpr std::int64_t kMaxEntries = std::int64_t{1} << 28;

// Steps of work (base/work.h) for one draw.
constexpr std::int64_t kStepsOfDraw = 8;
// Draws that are made together.
constexpr std::size_t kDrawsTogether = 64;

// A set of numbers below `bound`, of at most `most` elements. The numbers are drawn evenly, so a
// table in their order has a free place near to each number's share of the table. A number is
// stored at this place, or at the next free place. Reading the numbers in order takes one pass over
// the table with few exchanges, and numbers are compared only with their neighbours.
class EvenSet {
 public:
  EvenSet(std::int64_t bound, std::int64_t most)
      : scale_(static_cast<double>(kSpread * most) / static_cast<double>(bound)),
        places_(std::make_unique_for_overwrite<std::int64_t[]>(
            static_cast<std::size_t>((kSpread + 1) * most))),
        is_used_(static_cast<std::size_t>((kSpread + 1) * most + 63) / 64) {}

  // Returns false if the number was in the set already.
  bool insert(std::int64_t number) {
    // The conversion uses a signed number, because processors have no conversion to unsigned
    // numbers.
    auto at =
        static_cast<std::size_t>(static_cast<std::int64_t>(static_cast<double>(number) * scale_));
    for (; (is_used_[at / 64] >> at % 64 & 1) != 0; ++at) {
      if (places_[at] == number) return false;
    }
    is_used_[at / 64] |= std::uint64_t{1} << at % 64;
    places_[at] = number;
    return true;
  }

  // Writes the numbers to the memory from `first` on, in ascending order.
  void write(std::int64_t* const first) const {
    std::int64_t* end = first;
    for (std::size_t word = 0; word < is_used_.size(); ++word) {
      for (std::uint64_t used = is_used_[word]; used != 0; used &= used - 1) {
        const std::int64_t number = places_[word * 64 + std::countr_zero(used)];
        std::int64_t* at = end++;
        for (; at > first && at[-1] > number; --at) *at = at[-1];
        *at = number;
      }
    }
  }

 private:
  static constexpr std::int64_t kSpread = 4;  // places for each number, so most places are free

  double scale_;
  std::unique_ptr<std::int64_t[]> places_;  // after the last share there are places for all
                                            // numbers
  std::vector<std::uint64_t> is_used_;      // one bit for each place
};

// A set for small bounds with many numbers: it has a bit for each number, and a bit for each word
// of these bits that is not zero. Nothing is compared or allocated, and hardly any branch depends
// on the drawn numbers.
class BitSet {
 public:
  static bool suits(std::int64_t bound, std::int64_t most) {
    // The more bits, the longer it takes to clear them.
    constexpr std::int64_t kMaxBitsOfNumber = 512;
    return bound <= kBits && bound < kMaxBitsOfNumber * most;
  }

  // Requires: suits().
  explicit BitSet(std::int64_t bound) : groups_((static_cast<std::size_t>(bound) + 4095) / 4096) {
    std::fill_n(used_, groups_, 0);
    std::fill_n(words_, groups_ * 64, 0);
  }

  // Returns false if the number was in the set already.
  bool insert(std::int64_t number) {
    const auto at = static_cast<std::size_t>(number);
    std::uint64_t& word = words_[at / 64];
    const std::uint64_t bit = std::uint64_t{1} << at % 64;
    if ((word & bit) != 0) return false;
    word |= bit;
    used_[at / 4096] |= std::uint64_t{1} << at / 64 % 64;
    return true;
  }

  // Writes the numbers to the memory from `out` on, in ascending order.
  void write(std::int64_t* out) const {
    for (std::size_t group = 0; group < groups_; ++group) {
      for (std::uint64_t used = used_[group]; used != 0; used &= used - 1) {
        const std::size_t at = group * 64 + static_cast<std::size_t>(std::countr_zero(used));
        for (std::uint64_t bits = words_[at]; bits != 0; bits &= bits - 1) {
          *out++ = static_cast<std::int64_t>(at * 64) + std::countr_zero(bits);
        }
      }
    }
  }

 private:
  static constexpr std::int64_t kBits = 1 << 16;

  std::size_t groups_;  // groups of 64 words
  std::uint64_t used_[kBits / 4096];
  std::uint64_t words_[kBits / 64];
};

std::uint32_t low(std::int64_t value) { return static_cast<std::uint32_t>(value); }

// The draws of a row.
struct Draws {
  std::int64_t count;
  std::int64_t columns;
  std::array<std::uint32_t, 4> counter;
  std::array<std::uint32_t, 2> key;

  // Draws into an empty set, and writes the chosen numbers to the memory from `out` on.
  template <typename Set>
  void make(Set&& taken, std::int64_t* out) const {
    std::array<std::uint32_t, 4> next = counter;
    std::uint64_t words[kDrawsTogether];
    for (std::int64_t first = 0; first < count; first += kDrawsTogether) {
      const std::span some(words,
                           std::min(kDrawsTogether, static_cast<std::size_t>(count - first)));
      next[0] = low(first);
      base::philox(next, key, some);
      std::int64_t top = columns - count + first;
      for (const std::uint64_t word : some) {
        __extension__ using Wide = unsigned __int128;
        const auto t = static_cast<std::int64_t>(
            static_cast<std::uint64_t>(Wide{word} * static_cast<std::uint64_t>(top + 1) >> 64));
        // All blocks chosen so far are below top.
        if (!taken.insert(t)) taken.insert(top);
        ++top;
      }
    }
    taken.write(out);
  }
};

}  // namespace

void Random::check() {
  check_number("random", "c", count, 0, kMaxChosen);
  check_number("random", "seed", seed, 0);
  check_number("random", "b", block, 1);
}

void Random::print(std::string* text) const {
  fmt::format_to(std::back_inserter(*text), "random({}, {}, {})", count, seed, block);
}

bool Random::visible(const Pair& pair) const {
  const std::int64_t all = columns(pair.context);
  const std::int64_t j = floor_div(pair.k, block);
  if (j < 0 || j >= all) return false;
  std::vector<std::int64_t> chosen;
  choose(pair.head, floor_div(pair.q, block), all, pair.context, &chosen);
  return has(chosen, j);
}

void Random::keys(const Question& question, Wanted wanted, IntervalSet* out) const {
  const std::int64_t all = columns(question.context);
  if (count >= all) return add(out, question.universe, {0, product(all, block)});
  std::vector<std::int64_t> chosen;
  join_rows(
      rows_of(question.queries, block), wanted,
      [&](std::int64_t row, IntervalSet* keys) {
        choose(question.head, row, all, question.context, &chosen);
        for (const std::int64_t column : chosen) {
          add(keys, question.universe, {product(column, block), product(column + 1, block)});
        }
      },
      out);
}

bool Random::coarse_keys(const Question&, std::int64_t, CoarseKeys*) const { return false; }

std::optional<Stripes> Random::stripes(std::int64_t, std::int64_t) const { return {}; }

std::int64_t Random::alike_rows() const { return block; }

std::int64_t Random::next_form(std::int64_t q) const { return next_multiple(q, block); }

std::int64_t Random::next_end(std::int64_t, std::int64_t position) const {
  return next_multiple(position, block);
}

MovingEnds Random::moving_ends(std::int64_t) const { return {}; }

// Stores a list of the blocks that each head chooses in each row of blocks.
Piece Random::code(MaskWriter* write) const {
  const MaskScope& scope = write->scope();
  const std::int64_t all_columns = columns(scope.context);
  const std::int64_t each = std::min(count, all_columns);
  const std::int64_t first = floor_div(scope.queries.begin, block);
  const std::int64_t rows =
      scope.queries.empty() ? 0 : floor_div(scope.queries.end - 1, block) - first + 1;
  // On a device each factor is below 2^31, but the product of three factors may exceed 64 bits.
  if (static_cast<double>(scope.heads) * static_cast<double>(rows) * static_cast<double>(each) >
      static_cast<double>(kMaxEntries)) {
    base::fail(ErrorCode::kUnsupported,
               "random({}, {}, {}) makes {} choices for each of {} heads and {} rows of blocks, "
               "more than 2^28 in all; use larger blocks",
               count, seed, block, each, scope.heads, rows);
  }
  base::expect(scope.heads * rows * each * kStepsOfDraw, "the list of the choices of random()");
  std::vector<std::int64_t> chosen;
  std::int64_t next = 0;  // the row of the first head, then the row of the second, ...
  const std::size_t offset = write
                                 ->list_slots("a choice of random", scope.heads * rows * each,
                                              [&]() -> const std::vector<std::int64_t>& {
                                                choose(next / rows, first + next % rows,
                                                       all_columns, scope.context, &chosen);
                                                ++next;
                                                return chosen;
                                              })
                                 .first;
  return write->call(
      functions::random,
      {offset, write->slot("c of random", each), write->slot("b of random", block),
       write->slot("the first row of random", first), write->slot("the rows of random", rows)});
}

Structure Random::structure() const {
  return {.head_period = 0,
          .context_block = block,
          .agreeing_rows = product(block, 4),
          .is_scattered = true,
          .blocks = BlockSize{block, block, true}};
}

std::span<const Word> Random::words() { return kRandomWords; }

std::int64_t Random::columns(const PatternContext& context) const {
  if (context.seq_k < 0) {
    base::fail(
        ErrorCode::kInvalidArgument,
        "random({}, {}, {}) chooses among the blocks of the whole sequence; give the number of "
        "its keys",
        count, seed, block);
  }
  if (context.layer < 0 || context.layer >= std::int64_t{1} << 32) {
    base::fail(ErrorCode::kInvalidArgument, "layer {}; random() takes layers from 0 to 2^32 - 1",
               context.layer);
  }
  return base::ceil_div(context.seq_k, block);
}

void Random::choose(std::int64_t head, std::int64_t block_row, std::int64_t columns,
                    const PatternContext& context, std::vector<std::int64_t>* chosen) const {
  chosen->clear();
  const std::int64_t draws = std::min(count, columns);
  base::charge(1 + draws * (draws == columns ? 1 : kStepsOfDraw));
  if (draws == columns) {  // all blocks are chosen
    for (std::int64_t column = 0; column < columns; ++column) chosen->push_back(column);
    return;
  }
  chosen->resize(static_cast<std::size_t>(draws));
  const Draws of_row = {.count = draws,
                        .columns = columns,
                        .counter = {0, low(block_row), low(head), low(context.layer)},
                        .key = {low(seed), low(seed >> 32)}};
  if (BitSet::suits(columns, draws)) {
    of_row.make(BitSet(columns), chosen->data());
  } else {
    of_row.make(EvenSet(columns, draws), chosen->data());
  }
}

}  // namespace annulus::pattern::leaves

namespace annulus::inline v0 {

Pattern random(std::int64_t c, std::int64_t seed, std::int64_t b) {
  return pattern::make_leaf(pattern::leaves::Random{.count = c, .seed = seed, .block = b});
}

}  // namespace annulus::inline v0
