#ifndef ANNULUS_PATTERN_H_
#define ANNULUS_PATTERN_H_

// Sparsity as an algebra: a pattern is an expression over (head, q position, k position) and, where
// it says batches(...), the batch, built
// with ordinary operators or parsed from text, for example
//   Pattern local = causal() & (window(511, 0) | global(16));
//   Pattern same = Pattern::parse("causal & (window(511,0) | global(16))");
// Positions are global: pos_q = q0 + i, pos_k = k0 + j, with q0 = Sk - Sq and k0 = 0 unless the
// caller says otherwise, so causal is aligned to the bottom right. They may be negative.
//
// Everything here is a value: immutable once made, free to share between threads.

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "annulus/types.h"

namespace annulus::inline v0 {

// Which R x C blocks of an Sq x Sk problem are kept: compressed sparse rows, one after another for
// each distinct head; heads that keep the same blocks share them. It must not change once it is
// shared.
struct ANNULUS_EXPORT BlockLayout {
  std::int64_t block_rows = 0;     // R
  std::int64_t block_columns = 0;  // C
  std::int64_t seq_q = 0;          // Sq
  std::int64_t seq_k = 0;          // Sk
  std::int64_t heads = 1;          // distinct heads, which the arrays hold
  // [heads * ceil(Sq / R) + 1]: row r of head h is indices[indptr[h * rows() + r]] up to the next.
  std::vector<std::int64_t> indptr;
  std::vector<std::int32_t> indices;  // block columns, ascending and distinct in each row
  // For each kept block 0 where every pair is visible and 1 where only some are; empty where all
  // are 0. The flags serve statistics and other libraries: the expression blocks(layout) keeps
  // whole blocks.
  std::vector<std::uint8_t> partial;
  // [H]: the distinct head of each query head. Empty: each query head has its own, and where heads
  // is 1 any number of query heads shares that one.
  std::vector<std::int32_t> head_map = {};

  // H, or 1 for any number of heads.
  std::int64_t query_heads() const {
    return head_map.empty() ? heads : static_cast<std::int64_t>(head_map.size());
  }
  // Requires: 0 <= head, and head < query_heads() where that is not 1.
  std::int64_t distinct_head(std::int64_t head) const {
    if (head_map.size() > 1) return head_map[static_cast<std::size_t>(head)];
    return head_map.empty() && heads > 1 ? head : head_map.empty() ? 0 : head_map[0];
  }

  std::int64_t rows() const;     // ceil(Sq / R); 0 where R is not positive
  std::int64_t columns() const;  // ceil(Sk / C); 0 where C is not positive

  // The kept block columns of one row of blocks of a distinct head. Requires: a valid layout,
  // 0 <= head < heads, 0 <= row < rows().
  std::span<const std::int32_t> row(std::int64_t head, std::int64_t row) const;

  // Throws Error{kInvalidArgument}, which names the first bad entry: sizes out of range, indptr
  // that does not start at 0, is not monotone or has the wrong length, indices out of range,
  // unsorted or twice in a row, a head map that names no head.
  void validate() const;

  friend bool operator==(const BlockLayout&, const BlockLayout&) = default;
};

// Kept blocks over all blocks of all query heads; 0 for a problem without blocks. Partial blocks
// count as whole ones.
ANNULUS_EXPORT Density block_density(const BlockLayout& layout);

// The layout's file, drawn in docs/layouts.md; annulus/layout.h maps one without copying it.
// Loading validates everything and throws Error{kFile, kInvalidFile}, which names the first fault;
// saving replaces the file whole or leaves it untouched.
ANNULUS_EXPORT BlockLayout load_layout(const std::string& path);
ANNULUS_EXPORT void save_layout(const BlockLayout& layout, const std::string& path);

namespace detail {
struct PatternNode;  // src/pattern/node.h
}

// What a leaf may depend on besides head and positions. It describes the whole sequence also where
// a problem is a shard or a chunk of it, so that what a query sees does not depend on how the
// sequence was cut.
struct PatternContext {
  std::int64_t seq_k = -1;  // keys of the sequence, at positions [0, seq_k); -1: not known
  std::int64_t layer = 0;   // layer of the model, in [0, 2^32): random() chooses anew in each
  std::int64_t batch = -1;  // batch that is asked about, on which batches() depends; -1: not known
};

// How a text is parsed, for texts that the program's own author did not write.
struct ParseOptions {
  // Whether blocks("file") may name files, which are read with the rights of this process.
  bool allow_files = true;
  WorkLimit work = {};  // a step for each byte, and for the entries of files
};

class ANNULUS_EXPORT Pattern {
 public:
  Pattern();  // dense
  // Used by the functions below. Throws Error{kInvalidArgument} for null.
  explicit Pattern(std::shared_ptr<const detail::PatternNode> node);
  // No move: a pattern that was moved from would be none. A copy is a pointer.
  Pattern(const Pattern&) = default;
  Pattern& operator=(const Pattern&) = default;

  // Grammar: docs/patterns.md. Throws Error{kParse} with the column; Error{kUnsupported} for a
  // leaf that this version does not know; Error{kFile, kInvalidFile} from blocks("file");
  // Error{kLimit, kCancelled}.
  static Pattern parse(std::string_view text, const ParseOptions& options = {});
  // Parses a text with blocks(), which stands for `layout`. Throws Error{kInvalidArgument} where
  // the text has no blocks(), or for a layout that does not validate().
  static Pattern parse(std::string_view text, std::shared_ptr<const BlockLayout> layout,
                       const ParseOptions& options = {});

  // Text that parses back to an equal tree. Only blocks() of a layout that came from no file has
  // no such text: it prints as blocks("#digest"), which parse refuses.
  std::string to_string() const;

  // True when query position q of `head` sees key position k; for a sum, when some branch does. Any
  // positions. Throws Error{kInvalidArgument} where a per-head layout has no such head, and where
  // a leaf needs what the context does not know: random() needs seq_k, batches() the batch.
  bool visible(std::int64_t head, std::int64_t q, std::int64_t k,
               const PatternContext& context = {}) const;

  // How many heads the expression is made for: H of its per-head layouts; 1: any number.
  std::int64_t heads() const;
  // How many of `heads` heads can differ: head h sees what head h mod this number sees. Throws
  // Error{kInvalidArgument} where the expression is made for another number.
  std::int64_t distinct_heads(std::int64_t heads) const;

  // How many batches the expression tells apart: batch b sees what batch b mod this number sees.
  std::int64_t batches() const;
  // How many of `batches` batches differ, which may be fewer.
  std::int64_t distinct_batches(std::int64_t batches) const;
  // What one batch sees, as an expression without batches(). Throws Error{kInvalidArgument} for a
  // negative one where batches can differ.
  Pattern of_batch(std::int64_t batch) const;

  // The branches of a sum, in their order; for any other pattern the pattern itself.
  std::vector<Pattern> branches() const;

  const detail::PatternNode& node() const { return *node_; }
  const std::shared_ptr<const detail::PatternNode>& shared_node() const { return node_; }
  // Equal trees: the same leaves with the same numbers in the same order; layouts by their content.
  friend ANNULUS_EXPORT bool operator==(const Pattern& a, const Pattern& b);

 private:
  std::shared_ptr<const detail::PatternNode> node_;
};

// The leaves. They throw Error{kInvalidArgument} for numbers outside their range.
ANNULUS_EXPORT Pattern dense();   // all
ANNULUS_EXPORT Pattern causal();  // k <= q
// -left <= k - q <= right; -1 is unbounded. A bound below -1 is on the other side of the query:
// window(-3, 10) sees the keys q + 3 to q + 10. left + right >= 0 where neither is -1.
ANNULUS_EXPORT Pattern window(std::int64_t left, std::int64_t right);
ANNULUS_EXPORT Pattern sink(std::int64_t n);    // k < n; n >= 0
ANNULUS_EXPORT Pattern prefix(std::int64_t n);  // another word for sink
ANNULUS_EXPORT Pattern global(std::int64_t n);  // q < n or k < n; n >= 0
// q or k is listed, in any order.
ANNULUS_EXPORT Pattern global(std::span<const std::int64_t> positions);
ANNULUS_EXPORT Pattern global(std::initializer_list<std::int64_t> positions);
// Same document: no start s with min(q, k) < s <= max(q, k). Starts ascend strictly; positions
// before the first start are one document too.
ANNULUS_EXPORT Pattern documents(std::span<const std::int64_t> starts);
ANNULUS_EXPORT Pattern documents(std::initializer_list<std::int64_t> starts);
// Whether a problem may have queries and keys at positions that a layout was not made for. The
// layout hides them: such a query sees nothing through it, and such a key is not seen.
enum class OutsideLayout {
  kRefused,  // a problem that has such queries or keys is refused: its lengths or positions are
             // most likely not those that the layout is for
  kHidden,   // they are meant; in text blocks("file", hide_outside)
};
// The pairs of the kept blocks. The layout has queries at the positions from Sk - Sq to before Sk
// and keys at those from 0 to before Sk, with its own lengths. A problem may have fewer: a step of
// a decode, a chunk or a shard. `outside` says whether it may have others.
ANNULUS_EXPORT Pattern blocks(std::shared_ptr<const BlockLayout> layout,
                              OutsideLayout outside = OutsideLayout::kRefused);
ANNULUS_EXPORT Pattern blocks(BlockLayout layout, OutsideLayout outside = OutsideLayout::kRefused);
ANNULUS_EXPORT Pattern blocks(const std::string& path,
                              OutsideLayout outside = OutsideLayout::kRefused);

// Leaves that are defined by blocks name the block size b >= 1 in tokens; i = floor(pos_q / b) and
// j = floor(pos_k / b). This size is independent of compute tiles and of the sparse blocks of a
// problem.
ANNULUS_EXPORT Pattern dilated(std::int64_t r);                        // (q - k) mod r = 0; r >= 1
ANNULUS_EXPORT Pattern block_dilated(std::int64_t r, std::int64_t b);  // (i - j) mod r = 0; r >= 1
// j mod s = 0 or |i - j| <= n; s >= 1, n >= 0.
ANNULUS_EXPORT Pattern strided(std::int64_t s, std::int64_t n, std::int64_t b);
// j is one of min(c, ceil(Sk / b)) distinct blocks, chosen for each (seed, layer, head, i) before
// any other operator; docs/patterns.md says how. c in [0, 2^16], seed >= 0.
ANNULUS_EXPORT Pattern random(std::int64_t c, std::int64_t seed, std::int64_t b);
// LongNet: the same segment of length w, and both offsets in it congruent to the head (mod r).
// Queries that a head does not take see nothing. w, r >= 1.
ANNULUS_EXPORT Pattern segment(std::int64_t w, std::int64_t r);
// Positions 0 to height x width - 1 are the cells of a grid, row by row; other positions see and
// are seen by nothing. axial() sees the same row and the same column of the grid.
ANNULUS_EXPORT Pattern axial(std::int64_t height, std::int64_t width);
// natten() sees the n x n neighbourhood, whose centre moves inwards at the border. n is odd and at
// most either side.
ANNULUS_EXPORT Pattern natten(std::int64_t height, std::int64_t width, std::int64_t n);
// k is listed in `columns`, or q - k in `slashes`; in any order.
ANNULUS_EXPORT Pattern vertical_slash(std::span<const std::int64_t> columns,
                                      std::span<const std::int64_t> slashes);
ANNULUS_EXPORT Pattern vertical_slash(std::initializer_list<std::int64_t> columns,
                                      std::initializer_list<std::int64_t> slashes);

ANNULUS_EXPORT Pattern queries(std::int64_t a, std::int64_t b);  // a <= q < b; a <= b
ANNULUS_EXPORT Pattern keys(std::int64_t a, std::int64_t b);     // a <= k < b; a <= b
ANNULUS_EXPORT Pattern every(std::int64_t s, std::int64_t r);    // k mod s = r; 0 <= r < s

// A level: (i - j) mod stride = 0 and |i - j| <= window, in blocks of its own.
struct HierarchyLevel {
  std::int64_t stride = 1;  // >= 1
  std::int64_t window = 0;  // >= 0; -1 is unbounded
  std::int64_t block = 1;   // b
};
// Sees what any of its levels sees; at least one level.
ANNULUS_EXPORT Pattern hierarchical(std::span<const HierarchyLevel> levels);
ANNULUS_EXPORT Pattern hierarchical(std::initializer_list<HierarchyLevel> levels);

// Head h sees what patterns[h mod their number] sees. heads() of one pattern is that pattern.
ANNULUS_EXPORT Pattern heads(std::span<const Pattern> patterns);
ANNULUS_EXPORT Pattern heads(std::initializer_list<Pattern> patterns);
// heads() for groups of n heads: head h sees what patterns[floor(h / n) mod their number] sees. n
// >= 1.
ANNULUS_EXPORT Pattern head_groups(std::int64_t n, std::span<const Pattern> patterns);
ANNULUS_EXPORT Pattern head_groups(std::int64_t n, std::initializer_list<Pattern> patterns);
// Batch b sees what patterns[b mod their number] sees; heads(...) and batches(...) may stand in
// each other. One pattern is itself. An expression tells at most 4096 batches apart.
ANNULUS_EXPORT Pattern batches(std::span<const Pattern> patterns);
ANNULUS_EXPORT Pattern batches(std::initializer_list<Pattern> patterns);
// In the sums of softmax a key counts once for each branch that sees it: branches run one after
// another into the carried state. A sum cannot be part of another expression. sum() of one pattern
// is that pattern.
ANNULUS_EXPORT Pattern sum(std::span<const Pattern> patterns);
ANNULUS_EXPORT Pattern sum(std::initializer_list<Pattern> patterns);

// A chain a & b & c is one node with three children. The operators throw Error{kInvalidArgument}
// where the tree would be deeper than 64 levels or have more than 1024 leaves.
ANNULUS_EXPORT Pattern operator&(const Pattern& a, const Pattern& b);
ANNULUS_EXPORT Pattern operator|(const Pattern& a, const Pattern& b);
ANNULUS_EXPORT Pattern operator~(const Pattern& a);

// A word of the language, for those who list what there is.
struct PatternWord {
  std::string_view name;     // "window"
  std::string_view form;     // with its arguments named: "window(left, right)"
  std::string_view meaning;  // what a query sees, in a line
};
// All words: leaves, then those that join patterns. Stays as long as the library.
ANNULUS_EXPORT std::span<const PatternWord> pattern_words();

// Presets are named expressions, for which preset(name) stands in a text. Their densities are over
// 12 heads at Sq = Sk = kPresetLengths.
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
