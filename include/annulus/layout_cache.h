#ifndef ANNULUS_LAYOUT_CACHE_H_
#define ANNULUS_LAYOUT_CACHE_H_

// A cache of layouts. Lengths matter only through the size of the block grid: all lengths that need
// the same blocks share one layout, so a decode that grows by a token finds its layout again until
// a new block begins.
//
//   LayoutCache cache;
//   const LayoutQuery local(causal() & window(4095, 0), 128, 128);       // once
//   std::shared_ptr<const GridLayout> found = cache.get(local, Sq, Sk);  // at each step
//
// The cache is bounded in bytes and entries. A layout that it gave out stays as long as somebody
// holds it, also when the cache has dropped it. Any thread may call anything at any time: of
// several that ask for a missing layout one makes it and the others wait for it.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "annulus/layout.h"
#include "annulus/pattern.h"

namespace annulus::inline v0 {

// The blocks of a pattern on a grid of positions: block (i, j) has the queries at positions
// q_position + [i R, (i + 1) R) and the keys at k_position + [j C, (j + 1) C). The kernel masks
// what is outside the lengths that were asked for. For all lengths that share the layout, a block
// with a visible pair is kept, and a full block has no hidden pair.
struct GridLayout {
  BlockLayout layout;           // its Sq and Sk are whole blocks
  std::int64_t q_position = 0;  // a multiple of R, at or before Sk - Sq
  std::int64_t k_position = 0;  // 0
  // The first block row of a problem whose first query is at this position.
  std::int64_t row_of(std::int64_t position) const {
    return (position - q_position) / layout.block_rows;
  }
};

// Everything that a layout depends on except the lengths. Immutable; copies share.
class ANNULUS_EXPORT LayoutQuery {
 public:
  // Throws Error{kInvalidArgument} for sizes out of range and where the pattern has layouts for
  // another number of heads.
  LayoutQuery(const Pattern& pattern, std::int64_t block_rows, std::int64_t block_columns,
              std::int64_t heads = 1, std::int64_t layer = 0);

  // The key of the layout for these lengths. Two keys are equal exactly where the pattern (with its
  // layouts by content), the block sizes, the heads and the grid are equal, and for patterns with
  // random() also the layer and the number of its column blocks. Throws Error{kInvalidArgument} for
  // lengths outside [0, 2^48].
  std::string key(std::int64_t seq_q, std::int64_t seq_k) const;

 private:
  friend class LayoutCache;
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

struct LayoutCacheLimits {
  std::int64_t bytes = std::int64_t{256} << 20;  // that the kept layouts may take together
  std::int64_t entries = 512;
};

struct LayoutCacheCounters {
  std::int64_t hits = 0;       // kept already
  std::int64_t waits = 0;      // another thread was making it
  std::int64_t misses = 0;     // made for this call
  std::int64_t failures = 0;   // misses where making the layout threw
  std::int64_t evictions = 0;  // layouts dropped for newer ones
  std::int64_t too_large = 0;  // misses whose layout is larger than the limit: given out, not kept
  std::int64_t bytes = 0;      // kept now
  std::int64_t entries = 0;
};

class ANNULUS_EXPORT LayoutCache {
 public:
  explicit LayoutCache(const LayoutCacheLimits& limits = {});
  ~LayoutCache();
  LayoutCache(const LayoutCache&) = delete;
  LayoutCache& operator=(const LayoutCache&) = delete;

  // Never null. Throws Error{kInvalidArgument} where a layout of the pattern does not cover the
  // lengths (OutsideLayout), and what making the layout throws, to every thread that waited for it;
  // the next call tries again. A thread that waited for one whose limit or flag ended it makes the
  // layout itself, within its own limit.
  std::shared_ptr<const GridLayout> get(const LayoutQuery& query, std::int64_t seq_q,
                                        std::int64_t seq_k, const WorkLimit& limit = {});

  LayoutCacheCounters counters() const;
  void clear();  // forgets all entries; counters stay

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace annulus::inline v0

#endif  // ANNULUS_LAYOUT_CACHE_H_
