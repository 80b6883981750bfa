#ifndef ANNULUS_PATTERN_LEAVES_LEAF_H_
#define ANNULUS_PATTERN_LEAVES_LEAF_H_

// What every leaf of a pattern answers. A leaf is a struct of named numbers and lists with the
// verbs of IsLeaf below, in a file of its own; leaves.def lists them, and one that lacks a verb
// does not compile. Nobody outside this folder asks which leaf it has before it: the rest of the
// project asks structure(), or one of the verbs.

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "annulus/pattern.h"
#include "pattern/interval.h"

namespace annulus::pattern {

// Further than any row or position: what never changes or never ends.
constexpr std::int64_t kNever = std::int64_t{1} << 62;

enum class Wanted { kAny, kAll };

}  // namespace annulus::pattern

namespace annulus::pattern::leaves {

class Arguments;   // pattern/leaves/arguments.h
class MaskWriter;  // pattern/leaves/mask_writer.h
struct Piece;      // likewise

// One query, one key, and whose they are.
struct Pair {
  std::int64_t head;
  std::int64_t q;
  std::int64_t k;
  const PatternContext& context;
};

// Which keys of the universe do these queries see? Neither range is empty, and positions stay
// within
// +-2^60.
struct Question {
  std::int64_t head;
  const PatternContext& context;
  Interval queries;
  Interval universe;
};

// An answer by bounds, for leaves that see one key in every few: exactly it would have more
// intervals than a caller has blocks.
//   all    keys that all queries see, perhaps not all of them
//   any    the keys that some query sees, and perhaps others
//   mixed  part of what is in any and not in all: any `grain` neighbours in one of its intervals
//          hold a visible and an invisible pair. No two intervals touch.
struct CoarseKeys {
  IntervalSet* all;
  IntervalSet* any;
  IntervalSet* mixed;
};

// The keys of one query where they are every few: of the interval those that lie fewer than `width`
// behind `begin` or a whole number of periods away from there.
struct Stripes {
  Interval keys;
  std::int64_t begin;
  std::int64_t period;
  std::int64_t width;
};

// The ends of a row's keys that move along with the row.
struct MovingEnds {
  int count = 0;
  std::int64_t at[2] = {};
};

// A fact that every leaf must state: where it is left out, the leaf does not compile.
template <typename T>
struct Stated {
  T value;
  constexpr Stated(T stated) : value(stated) {}
  constexpr operator T() const { return value; }
};

// Blocks that a leaf speaks of.
struct BlockSize {
  std::int64_t rows;
  std::int64_t columns;
  bool independent;  // neighbouring rows of blocks have little in common
};

// Query q sees the keys from `first` to before `end`, each an offset from q or a fixed position,
// and absent where there is no such end.
struct KeyBand {
  struct End {
    std::int64_t value;
    bool moves;  // along with the query
  };
  std::optional<End> first = {};
  std::optional<End> end = {};

  bool is_diagonal() const { return (!first || first->moves) && (!end || end->moves); }
};

// What other rooms ask of a leaf before they choose a kernel or make a list of tiles. What need not
// be stated is safe where it is left out.
struct Structure {
  // Head h sees what head h mod this number sees; 0: no two heads are known to agree.
  Stated<std::int64_t> head_period;
  // Which keys are seen depends on the layer and on how many blocks of this size the keys of the
  // whole sequence fill; 0: on neither.
  Stated<std::int64_t> context_block;
  // Tiles of up to so many neighbouring queries see little more than one of the queries does.
  Stated<std::int64_t> agreeing_rows;
  // The keys of a row lie in so many places that its tiles make no few runs.
  Stated<bool> is_scattered;
  bool is_short = false;   // one interval or two, found at once
  std::int64_t heads = 1;  // H of a layout for each head, or 1
  std::optional<BlockSize> blocks = {};
  std::optional<KeyBand> band = {};
  const BlockLayout* layout = nullptr;  // whose blocks it keeps
};

// A word of the language that stands for a leaf.
struct Word {
  std::string_view name;
  Pattern (*parse)(Arguments* read);  // reads what stands between the parentheses
  bool is_bare = false;               // has no parentheses: `dense`
};

// A function of templates/tile/mask.cuh that the text of a mask calls. Long ones search in memory
// or divide: better evaluated in a loop over a row's columns than written out for every element.
struct DeviceFunction {
  std::string_view name;
  bool is_long;
};

template <typename L>
concept IsLeaf = std::equality_comparable<L> &&
    requires(L leaf, const L& made, const Pair& pair, const Question& question, std::string* text,
             IntervalSet* keys, CoarseKeys* coarse, MaskWriter* write, std::int64_t number) {
  // Throws Error{kInvalidArgument} for numbers outside their range, and puts lists in order.
  leaf.check();
  // Appends the text that parses back to it.
  made.print(text);
  // The definition, written as docs/patterns.md says it; everything below is tested against it.
  { made.visible(pair) } -> std::same_as<bool>;
  // Appends the keys that any or all of the queries see; exact, and at the cost of the answer's
  // intervals, never of the keys or the pairs. *keys begins empty.
  made.keys(question, Wanted::kAny, keys);
  // The same by bounds, where the pattern of keys repeats within a grain. False where the exact
  // answer is as short. All sets begin empty.
  { made.coarse_keys(question, number, coarse) } -> std::same_as<bool>;
  // What a head's query sees, where it is stripes, whose period is the same for all of them.
  { made.stripes(number, number) } -> std::same_as<std::optional<Stripes>>;
  // Rows that lie in one block of this length see the same keys because of where they lie; kNever:
  // all rows do; 0: nothing is known.
  { made.alike_rows() } -> std::same_as<std::int64_t>;
  // The first row behind q in which the leaf is something else than ends that stay or move. An
  // answer that is too large lets rows be taken for others, which is wrong; one that is too small
  // is slow.
  { made.next_form(number) } -> std::same_as<std::int64_t>;
  // The first end above a position that the leaf has in a row and that stays where it is. Likewise.
  { made.next_end(number, number) } -> std::same_as<std::int64_t>;
  { made.moving_ends(number) } -> std::same_as<MovingEnds>;
  // Its call of a device function, or a constant.
  { made.code(write) } -> std::same_as<Piece>;
  { made.structure() } -> std::same_as<Structure>;
  { L::words() } -> std::same_as<std::span<const Word>>;
  { L::functions() } -> std::same_as<std::span<const DeviceFunction>>;
};

}  // namespace annulus::pattern::leaves

#endif  // ANNULUS_PATTERN_LEAVES_LEAF_H_
