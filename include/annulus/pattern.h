#ifndef ANNULUS_PATTERN_H_
#define ANNULUS_PATTERN_H_

// A pattern decides which keys each query sees. It is an expression over (head, q position, k
// position), and over the batch if it has batches(...), built with operators or parsed from text:
//
//   Pattern local = causal() & (window(511, 0) | global(16));
//   Pattern same = Pattern::parse("causal & (window(511,0) | global(16))");
//
// Positions are global: query row i is at q0 + i and key row j at k0 + j. By default q0 = Sk - Sq
// and k0 = 0, so that causal() is aligned to the bottom right. Positions may be negative.
//
// All types here are immutable values that threads may share.

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "annulus/types.h"

namespace annulus::inline v0 {

// ---- Block layouts

// The R x C blocks of an Sq x Sk problem that are kept, as compressed sparse rows (CSR) for each
// distinct head, one after another. Query heads that keep the same blocks share a distinct head. A
// layout must not change after it is shared.
struct ANNULUS_EXPORT BlockLayout {
  std::int64_t block_rows = 0;     // R
  std::int64_t block_columns = 0;  // C
  std::int64_t seq_q = 0;          // Sq
  std::int64_t seq_k = 0;          // Sk
  std::int64_t heads = 1;          // the number of distinct heads in the arrays
  // [heads * ceil(Sq / R) + 1]: row r of head h is the range of `indices` from indptr[i] to before
  // indptr[i + 1], with i = h * rows() + r.
  std::vector<std::int64_t> indptr;
  std::vector<std::int32_t> indices;  // block columns, ascending and distinct in each row
  // For each kept block: 0 if all of its pairs are visible, 1 if some are hidden. Empty: all 0.
  // These flags serve statistics and other libraries; blocks(layout) keeps whole blocks.
  std::vector<std::uint8_t> partial;
  // [H]: the distinct head of each query head. Empty: query head h has distinct head h, or if heads
  // is 1, any number of query heads shares the only one.
  std::vector<std::int32_t> head_map = {};

  // H, or 1 for any number of heads.
  std::int64_t query_heads() const {
    return head_map.empty() ? heads : static_cast<std::int64_t>(head_map.size());
  }
  // Requires: 0 <= head, and head < query_heads() unless that is 1.
  std::int64_t distinct_head(std::int64_t head) const {
    if (head_map.size() > 1) return head_map[static_cast<std::size_t>(head)];
    return head_map.empty() && heads > 1 ? head : head_map.empty() ? 0 : head_map[0];
  }

  std::int64_t rows() const;     // ceil(Sq / R); 0 if R is not positive
  std::int64_t columns() const;  // ceil(Sk / C); 0 if C is not positive

  // The kept block columns of one row of blocks of a distinct head. Requires: a valid layout, 0 <=
  // head < heads, 0 <= row < rows().
  std::span<const std::int32_t> row(std::int64_t head, std::int64_t row) const;

  // Throws Error{kInvalidArgument}, which names the first bad entry: a size out of range; an indptr
  // that does not start at 0, descends or has the wrong length; indices out of range, unsorted or
  // repeated in a row; or a head map with a head that does not exist.
  void validate() const;

  friend bool operator==(const BlockLayout&, const BlockLayout&) = default;
};

// The number of kept blocks over the number of all blocks of all query heads; 0 for a problem
// without blocks. Partial blocks count as whole blocks.
ANNULUS_EXPORT Density block_density(const BlockLayout& layout);

// Loads and saves a layout's file; docs/layouts.md draws its format, and annulus/layout.h maps a
// file without copying it. Loading validates everything and throws Error{kFile} or
// Error{kInvalidFile}, which names the first fault. Saving replaces the whole file or nothing.
ANNULUS_EXPORT BlockLayout load_layout(const std::string& path);
ANNULUS_EXPORT void save_layout(const BlockLayout& layout, const std::string& path);

namespace detail {
struct PatternNode;  // src/pattern/node.h
}

// ---- Patterns

// Values on which leaves may depend in addition to head and positions. They describe the whole
// sequence, even for a shard or a chunk of it, so that cutting it changes no visibility.
struct PatternContext {
  std::int64_t seq_k = -1;  // keys of the sequence, at positions [0, seq_k); -1: unknown
  std::int64_t layer = 0;   // layer of the model, in [0, 2^32); random() depends on it
  std::int64_t batch = -1;  // batch on which batches() depends; -1: unknown
};

// How a text is parsed. Restrict it for texts from untrusted sources.
struct ParseOptions {
  // Whether blocks("file") may name files, which are then read with the rights of this process.
  bool allow_files = true;
  WorkLimit work = {};  // one step for each byte of the text and each entry of a file
};

class ANNULUS_EXPORT Pattern {
 public:
  Pattern();  // dense
  // For the functions below. Throws Error{kInvalidArgument} for null.
  explicit Pattern(std::shared_ptr<const detail::PatternNode> node);
  Pattern(const Pattern&) = default;
  Pattern& operator=(const Pattern&) = default;

  // Parses a text; docs/patterns.md has the grammar. Throws Error{kParse} with the column;
  // Error{kUnsupported} for a leaf that this version does not have; Error{kFile} and
  // Error{kInvalidFile} from blocks("file"); Error{kLimit} and Error{kCancelled}.
  static Pattern parse(std::string_view text, const ParseOptions& options = {});
  // Parses a text in which blocks() stands for `layout`. Also throws Error{kInvalidArgument} if the
  // text has no blocks() or the layout is not valid.
  static Pattern parse(std::string_view text, std::shared_ptr<const BlockLayout> layout,
                       const ParseOptions& options = {});

  // A text that parses to an equal tree. The exception is blocks() of a layout that was not read
  // from a file: it prints as blocks("#digest"), which parse() refuses.
  std::string to_string() const;

  // Whether query position q of `head` sees key position k, through any branch if the pattern is a
  // sum. Positions may be any numbers. Throws Error{kInvalidArgument} if a per-head layout lacks
  // the head, and if a leaf needs a value that is unknown in the context: random() needs seq_k,
  // batches() needs the batch.
  bool visible(std::int64_t head, std::int64_t q, std::int64_t k,
               const PatternContext& context = {}) const;

  // The number of heads for which the expression is made: H of its per-head layouts; 1: any number.
  std::int64_t heads() const;
  // The number of heads of `heads` that can differ: head h sees what head h mod this number sees.
  // Throws Error{kInvalidArgument} if the expression is made for another number of heads.
  std::int64_t distinct_heads(std::int64_t heads) const;

  // The number of batches that can differ: batch b sees what batch b mod this number sees.
  std::int64_t batches() const;
  // batches(), but at most `batches`.
  std::int64_t distinct_batches(std::int64_t batches) const;
  // The pattern of one batch, without batches(). Throws Error{kInvalidArgument} for a negative
  // batch if batches can differ.
  Pattern of_batch(std::int64_t batch) const;

  // The branches of a sum in order. Any other pattern is its own only branch.
  std::vector<Pattern> branches() const;

  const detail::PatternNode& node() const { return *node_; }
  const std::shared_ptr<const detail::PatternNode>& shared_node() const { return node_; }
  // Compares trees: equal leaves with equal numbers in the same order. Layouts compare by content.
  friend ANNULUS_EXPORT bool operator==(const Pattern& a, const Pattern& b);

 private:
  std::shared_ptr<const detail::PatternNode> node_;
};

// ---- Leaves. They throw Error{kInvalidArgument} for numbers outside their range.

ANNULUS_EXPORT Pattern dense();   // all pairs
ANNULUS_EXPORT Pattern causal();  // k <= q
// -left <= k - q <= right; -1 is unbounded. A bound below -1 lies on the other side of the query:
// window(-3, 10) sees the keys q + 3 to q + 10. If neither is -1, left + right >= 0.
ANNULUS_EXPORT Pattern window(std::int64_t left, std::int64_t right);
ANNULUS_EXPORT Pattern sink(std::int64_t n);    // k < n; n >= 0
ANNULUS_EXPORT Pattern prefix(std::int64_t n);  // another name of sink
ANNULUS_EXPORT Pattern global(std::int64_t n);  // q < n or k < n; n >= 0
// q or k is in the list, which may have any order.
ANNULUS_EXPORT Pattern global(std::span<const std::int64_t> positions);
ANNULUS_EXPORT Pattern global(std::initializer_list<std::int64_t> positions);
// q and k are in the same document: no start s has min(q, k) < s <= max(q, k). Starts ascend
// strictly. The positions before the first start are one document.
ANNULUS_EXPORT Pattern documents(std::span<const std::int64_t> starts);
ANNULUS_EXPORT Pattern documents(std::initializer_list<std::int64_t> starts);
// Whether a problem may have queries and keys at positions outside its layout. The layout hides
// them: such a query sees nothing through the layout, and such a key is not seen.
enum class OutsideLayout {
  kRefused,  // such a problem is refused, because its lengths or positions are probably wrong
  kHidden,   // they are allowed; in text blocks("file", hide_outside)
};
// The pairs of the kept blocks. With the layout's own lengths, its queries are at the positions
// from Sk - Sq to Sk - 1 and its keys at the positions from 0 to Sk - 1. A problem may have fewer
// queries or keys: a decode step, a chunk or a shard. `outside` decides whether it may have others.
ANNULUS_EXPORT Pattern blocks(std::shared_ptr<const BlockLayout> layout,
                              OutsideLayout outside = OutsideLayout::kRefused);
ANNULUS_EXPORT Pattern blocks(BlockLayout layout, OutsideLayout outside = OutsideLayout::kRefused);
ANNULUS_EXPORT Pattern blocks(const std::string& path,
                              OutsideLayout outside = OutsideLayout::kRefused);

// Some leaves are defined by blocks of b >= 1 tokens, with i = floor(pos_q / b) and j = floor(pos_k
// / b). b is independent of compute tiles and of the blocks of a layout.
ANNULUS_EXPORT Pattern dilated(std::int64_t r);                        // (q - k) mod r = 0; r >= 1
ANNULUS_EXPORT Pattern block_dilated(std::int64_t r, std::int64_t b);  // (i - j) mod r = 0; r >= 1
// j mod s = 0 or |i - j| <= n; s >= 1, n >= 0.
ANNULUS_EXPORT Pattern strided(std::int64_t s, std::int64_t n, std::int64_t b);
// j is one of min(c, ceil(Sk / b)) distinct blocks, which are chosen for each (seed, layer, head,
// i) before any other operator applies (docs/patterns.md). c in [0, 2^16], seed >= 0.
ANNULUS_EXPORT Pattern random(std::int64_t c, std::int64_t seed, std::int64_t b);
// LongNet: q and k are in the same segment of length w, and both offsets in it are congruent to the
// head (mod r). Other queries see nothing. w, r >= 1.
ANNULUS_EXPORT Pattern segment(std::int64_t w, std::int64_t r);
// Positions 0 to height x width - 1 are the cells of a grid, row by row. Other positions see
// nothing and are not seen. axial(): the same row or the same column of the grid.
ANNULUS_EXPORT Pattern axial(std::int64_t height, std::int64_t width);
// natten(): the n x n neighbourhood in such a grid, whose centre moves inwards at the border. n is
// odd and at most height and width.
ANNULUS_EXPORT Pattern natten(std::int64_t height, std::int64_t width, std::int64_t n);
// k is in `columns`, or q - k is in `slashes`. The lists may have any order.
ANNULUS_EXPORT Pattern vertical_slash(std::span<const std::int64_t> columns,
                                      std::span<const std::int64_t> slashes);
ANNULUS_EXPORT Pattern vertical_slash(std::initializer_list<std::int64_t> columns,
                                      std::initializer_list<std::int64_t> slashes);

ANNULUS_EXPORT Pattern queries(std::int64_t a, std::int64_t b);  // a <= q < b; a <= b
ANNULUS_EXPORT Pattern keys(std::int64_t a, std::int64_t b);     // a <= k < b; a <= b
ANNULUS_EXPORT Pattern every(std::int64_t s, std::int64_t r);    // k mod s = r; 0 <= r < s

// A level: (i - j) mod stride = 0 and |i - j| <= window, with the level's block size b.
struct HierarchyLevel {
  std::int64_t stride = 1;  // >= 1
  std::int64_t window = 0;  // >= 0; -1 is unbounded
  std::int64_t block = 1;   // b
};
// The union of its levels; at least one level.
ANNULUS_EXPORT Pattern hierarchical(std::span<const HierarchyLevel> levels);
ANNULUS_EXPORT Pattern hierarchical(std::initializer_list<HierarchyLevel> levels);

// ---- Combinations

// Head h sees what patterns[h mod their number] sees. heads() of one pattern is that pattern.
ANNULUS_EXPORT Pattern heads(std::span<const Pattern> patterns);
ANNULUS_EXPORT Pattern heads(std::initializer_list<Pattern> patterns);
// heads() for groups of n >= 1: head h sees what patterns[floor(h / n) mod their number] sees.
ANNULUS_EXPORT Pattern head_groups(std::int64_t n, std::span<const Pattern> patterns);
ANNULUS_EXPORT Pattern head_groups(std::int64_t n, std::initializer_list<Pattern> patterns);
// Batch b sees what patterns[b mod their number] sees. heads(...) and batches(...) may contain each
// other. batches() of one pattern is that pattern. At most 4096 batches can differ.
ANNULUS_EXPORT Pattern batches(std::span<const Pattern> patterns);
ANNULUS_EXPORT Pattern batches(std::initializer_list<Pattern> patterns);
// In the sums of softmax a key counts once for each branch that sees it: the branches run one after
// another and carry the state. Sums cannot be nested. sum() of one pattern is that pattern.
ANNULUS_EXPORT Pattern sum(std::span<const Pattern> patterns);
ANNULUS_EXPORT Pattern sum(std::initializer_list<Pattern> patterns);

// A chain a & b & c is one node with three children. The operators throw Error{kInvalidArgument} if
// the tree would be deeper than 64 levels or have more than 1024 leaves.
ANNULUS_EXPORT Pattern operator&(const Pattern& a, const Pattern& b);
ANNULUS_EXPORT Pattern operator|(const Pattern& a, const Pattern& b);
ANNULUS_EXPORT Pattern operator~(const Pattern& a);

// ---- Lists of words and presets

// A word of the pattern language.
struct PatternWord {
  std::string_view name;     // "window"
  std::string_view form;     // the word with its arguments: "window(left, right)"
  std::string_view meaning;  // one line
};
// All words: the leaves, then the combinations. The list is valid as long as the library is loaded.
ANNULUS_EXPORT std::span<const PatternWord> pattern_words();

// Presets are named expressions; in a text preset(name) stands for one. The densities are for 12
// heads at Sq = Sk = kPresetLengths.
constexpr std::int64_t kPresetLengths[3] = {4096, 16384, 65536};
struct PresetInfo {
  std::string_view name;
  std::string_view expression;
  double density[3] = {};
};
ANNULUS_EXPORT std::span<const PresetInfo> presets();
// Throws Error{kInvalidArgument} for an unknown name.
ANNULUS_EXPORT Pattern preset(std::string_view name);

}  // namespace annulus::inline v0

#endif  // ANNULUS_PATTERN_H_
