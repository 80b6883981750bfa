#ifndef ANNULUS_PATTERN_H_
#define ANNULUS_PATTERN_H_

// Sparsity as an algebra: a pattern is an expression over (head, q position, k position), built
// with ordinary operators or parsed from text, for example
//   Pattern local = causal() & (window(511, 0) | global(16));
//   Pattern same = Pattern::parse("causal & (window(511,0) | global(16))");
// Positions are global: pos_q = q0 + i, pos_k = k0 + j, with q0 = Sk - Sq and k0 = 0 unless the
// caller says otherwise, so causal is aligned to the bottom right. They may be negative.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "annulus/types.h"

namespace annulus::inline v0 {

// Which R x C blocks of an Sq x Sk problem are kept: compressed sparse rows, one after another for
// each distinct head. Immutable once it is shared.
struct BlockLayout {
  std::int64_t block_rows = 0;     // R
  std::int64_t block_columns = 0;  // C
  std::int64_t seq_q = 0;          // Sq
  std::int64_t seq_k = 0;          // Sk
  std::int64_t heads = 1;          // distinct heads: 1 (shared by all) or H
  // [heads * ceil(Sq / R) + 1]: row r of head h is indices[indptr[h * rows() + r]] up to the next.
  std::vector<std::int64_t> indptr;
  std::vector<std::int32_t> indices;   // block columns, ascending and distinct in each row
  std::vector<std::uint8_t> partial;   // per kept block: 0 every pair visible, 1 some; may be empty
                                       // (all full)

  std::int64_t rows() const;     // ceil(Sq / R)
  std::int64_t columns() const;  // ceil(Sk / C)
  friend bool operator==(const BlockLayout&, const BlockLayout&) = default;
};

namespace detail {
struct PatternNode;  // src/pattern/node.h
}

class ANNULUS_EXPORT Pattern {
 public:
  Pattern();  // dense
  explicit Pattern(std::shared_ptr<const detail::PatternNode> node) : node_(std::move(node)) {}

  // Grammar: docs/patterns.md. Throws Error{kParse} with the column; Error{kUnsupported} for a
  // leaf that this version does not know; Error{kFile, kInvalidFile} from blocks("file").
  static Pattern parse(std::string_view text);

  // Text that parses back to an equal tree.
  std::string to_string() const;

  // True when query position q of `head` sees key position k.
  bool visible(std::int64_t head, std::int64_t q, std::int64_t k) const;

  const detail::PatternNode& node() const { return *node_; }
  friend ANNULUS_EXPORT bool operator==(const Pattern& a, const Pattern& b);

 private:
  std::shared_ptr<const detail::PatternNode> node_;
};

ANNULUS_EXPORT Pattern dense();
ANNULUS_EXPORT Pattern causal();                                            // k <= q
ANNULUS_EXPORT Pattern window(std::int64_t left, std::int64_t right);       // -left <= k - q <= right; -1 unbounded
ANNULUS_EXPORT Pattern sink(std::int64_t n);                                // k < n
ANNULUS_EXPORT Pattern global(std::int64_t n);                              // q < n or k < n
ANNULUS_EXPORT Pattern global(std::span<const std::int64_t> positions);     // q or k is listed
ANNULUS_EXPORT Pattern documents(std::span<const std::int64_t> starts);     // same document
ANNULUS_EXPORT Pattern blocks(std::shared_ptr<const BlockLayout> layout);   // an explicit layout
ANNULUS_EXPORT Pattern operator&(const Pattern& a, const Pattern& b);
ANNULUS_EXPORT Pattern operator|(const Pattern& a, const Pattern& b);
ANNULUS_EXPORT Pattern operator~(const Pattern& a);

}  // namespace annulus::inline v0

#endif  // ANNULUS_PATTERN_H_
