#ifndef ANNULUS_PATTERN_LEAVES_LEAF_H_
#define ANNULUS_PATTERN_LEAVES_LEAF_H_

// The interface of a leaf of a pattern. A leaf is a struct of named numbers and lists with the
// functions of IsLeaf below, in a file of its own. leaves.def lists all leaves, and a leaf that
// lacks a function does not compile. Code outside this folder never tests which leaf it has: it
// calls structure() or one of the other functions.

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "annulus/pattern.h"
#include "pattern/interval.h"

namespace annulus::pattern {

// A number beyond every row and position, for "never changes" and "never ends".
constexpr std::int64_t kNever = std::int64_t{1} << 62;

enum class Wanted { kAny, kAll };

}  // namespace annulus::pattern

namespace annulus::pattern::leaves {

class Arguments;   // pattern/leaves/arguments.h
class MaskWriter;  // pattern/leaves/mask_writer.h
struct Piece;      // also pattern/leaves/mask_writer.h

// One query and one key, with their head and context.
struct Pair {
  std::int64_t head;
  std::int64_t q;
  std::int64_t k;
  const PatternContext& context;
};

// The arguments of an evaluation: which keys of the universe do these queries see? Neither range is
// empty, and positions stay within +-2^60.
struct Question {
  std::int64_t head;
  const PatternContext& context;
  Interval queries;
  Interval universe;
};

// Bounds of the visible keys, for leaves that see one key in every few. An exact result would have
// more intervals than the caller has blocks.
//   all    keys that all queries see, perhaps not all of them
//   any    the keys that some query sees, and perhaps others
//   mixed  part of what is in any and not in all: any `grain` neighbours in one of its intervals
//          hold a visible and an invisible pair. No two intervals touch.
struct CoarseKeys {
  IntervalSet* all;
  IntervalSet* any;
  IntervalSet* mixed;
};

// The keys of one query that sees a few keys of every period: the keys of the interval whose offset
// from `begin`, modulo the period, is below `width`.
struct Stripes {
  Interval keys;
  std::int64_t begin;
  std::int64_t period;
  std::int64_t width;
};

// The ends of a row's keys that move with the row, such as the ends of a window.
struct MovingEnds {
  int count = 0;
  std::int64_t at[2] = {};
};

// A value that every leaf has to state; a leaf that omits it does not compile.
template <typename T>
struct Stated {
  T value;
  constexpr Stated(T stated) : value(stated) {}
  constexpr operator T() const { return value; }
};

// The size of the blocks that define a leaf.
struct BlockSize {
  std::int64_t rows;
  std::int64_t columns;
  bool independent;  // neighbouring rows of blocks have little in common
};

// Query q sees the keys from `first` to before `end`. Each end is an offset from q or a fixed
// position, and absent if the band has no such end.
struct KeyBand {
  struct End {
    std::int64_t value;
    bool moves;  // the offset moves with the query
  };
  std::optional<End> first = {};
  std::optional<End> end = {};

  bool is_diagonal() const { return (!first || first->moves) && (!end || end->moves); }
};

// Properties of a leaf that other parts of the library read before they choose a kernel or make a
// list of tiles. Properties that need not be stated have defaults that are always safe.
struct Structure {
  // Head h sees what head h mod this number sees; 0: no two heads are known to agree.
  Stated<std::int64_t> head_period;
  // The keys that are seen depend on the layer, and on the number of blocks of this size in the
  // keys of the whole sequence; 0: they depend on neither.
  Stated<std::int64_t> context_block;
  // Up to this number of neighbouring queries together see little more than one of them does.
  Stated<std::int64_t> agreeing_rows;
  // Whether the keys of a row are in so many places that its tiles do not form a few runs.
  Stated<bool> is_scattered;
  bool is_short = false;   // always one or two intervals, computed directly
  std::int64_t heads = 1;  // H if a layout has one pattern for each head, or 1
  std::optional<BlockSize> blocks = {};
  std::optional<KeyBand> band = {};
  const BlockLayout* layout = nullptr;  // the layout whose blocks the leaf keeps
  // How that layout treats positions outside of it.
  OutsideLayout outside = OutsideLayout::kRefused;
};

// A word of the language that names a leaf.
struct Word {
  std::string_view name;
  std::string_view form;  // the usage of the word, as in PatternWord::form
  std::string_view meaning;
  Pattern (*parse)(Arguments* read);  // reads the arguments between the parentheses
  bool is_bare = false;               // without parentheses, such as `dense`
};

template <typename L>
concept IsLeaf = std::equality_comparable<L> &&
    requires(L leaf, const L& made, const Pair& pair, const Question& question, std::string* text,
             IntervalSet* keys, CoarseKeys* coarse, MaskWriter* write, std::int64_t number) {
  // Throws Error{kInvalidArgument} for numbers outside their range, and puts lists in order.
  leaf.check();
  // Appends a text that parses to an equal leaf.
  made.print(text);
  // The definition of the leaf, written as in docs/patterns.md. Tests compare all functions below
  // with it.
  { made.visible(pair) } -> std::same_as<bool>;
  // Appends the keys that any or all of the queries see. The result is exact, and the time grows
  // with the number of its intervals, never with the keys or the pairs. *keys is empty at first.
  made.keys(question, Wanted::kAny, keys);
  // Computes bounds, if the pattern of keys repeats within a grain. Returns false if the exact
  // result is as short. All sets are empty at first.
  { made.coarse_keys(question, number, coarse) } -> std::same_as<bool>;
  // The keys that a head's query sees as stripes; nullopt if they are not stripes. The period is
  // the same for all queries.
  { made.stripes(number, number) } -> std::same_as<std::optional<Stripes>>;
  // Rows in one block of this length see the same keys because of their positions; kNever: all rows
  // do; 0: nothing is known.
  { made.alike_rows() } -> std::same_as<std::int64_t>;
  // The first row after q in which the leaf's fixed and moving ends are not the ones of row q. A
  // result that is too large causes wrong counts and wrong lists of tiles; a result that is too
  // small only costs time.
  { made.next_form(number) } -> std::same_as<std::int64_t>;
  // The first fixed end of a row above a position. Wrong results have the same effects as in
  // next_form().
  { made.next_end(number, number) } -> std::same_as<std::int64_t>;
  { made.moving_ends(number) } -> std::same_as<MovingEnds>;
  // The leaf's call of a device function (leaves::functions in mask_writer.h), or a constant.
  { made.code(write) } -> std::same_as<Piece>;
  { made.structure() } -> std::same_as<Structure>;
  { L::words() } -> std::same_as<std::span<const Word>>;
};

}  // namespace annulus::pattern::leaves

#endif  // ANNULUS_PATTERN_LEAVES_LEAF_H_
