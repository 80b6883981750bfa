#include "annulus/layout.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/fail.h"
#include "base/hash.h"
#include "base/math.h"
#include "base/process.h"
#include "base/shared_cache.h"
#include "base/work.h"
#include "layout/entries.h"
#include "pattern/classify.h"
#include "pattern/layout_file.h"
#include "pattern/node.h"

namespace annulus::layout {

// The grid of blocks that two lengths need, counted from position 0.
struct BlockGrid {
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  // The least Sk with which each random() of the pattern has the same number of blocks to choose
  // from; 0 if there is no random().
  std::int64_t least_keys = 0;
  friend bool operator==(const BlockGrid&, const BlockGrid&) = default;
};

namespace {

// `chosen` has the block size of each random().
BlockGrid grid_of(std::int64_t block_rows, std::int64_t block_columns,
                  std::span<const std::int64_t> chosen, std::int64_t seq_q, std::int64_t seq_k) {
  const auto extent = pattern::Extent::whole(seq_q, seq_k);
  BlockGrid grid;
  grid.first_row = base::floor_div(extent.q_position, block_rows);
  grid.rows = seq_q == 0
                  ? 0
                  : base::floor_div(extent.q_position + seq_q - 1, block_rows) + 1 - grid.first_row;
  grid.columns = base::floor_div(seq_k + block_columns - 1, block_columns);
  for (const std::int64_t b : chosen) {
    if (seq_k == 0) break;
    grid.least_keys = std::max(grid.least_keys, (seq_k - 1) / b * b + 1);
  }
  return grid;
}

// Collects the block sizes of the leaves that depend on the length of the sequence.
void find_context_blocks(const pattern::Node& node, std::vector<std::int64_t>* blocks) {
  pattern::each_leaf(node, [&](const pattern::leaves::Leaf& leaf) {
    const std::int64_t block = pattern::leaves::structure_of(leaf).context_block;
    if (block > 0) blocks->push_back(block);
  });
}

}  // namespace
}  // namespace annulus::layout

namespace annulus::inline v0 {

struct LayoutQuery::Impl {
  Pattern pattern;
  LayoutSizes sizes;                 // the lengths in it are unused
  std::vector<std::int64_t> chosen;  // the block size of each random()
  std::int64_t layer = 0;            // 0 if there is no random()
  std::string text;                  // everything that determines the layout, except the lengths
  std::uint64_t hash = 0;

  layout::BlockGrid grid(std::int64_t seq_q, std::int64_t seq_k) const {
    return layout::grid_of(sizes.block_rows, sizes.block_columns, chosen, seq_q, seq_k);
  }
};

LayoutQuery::LayoutQuery(const Pattern& pattern, std::int64_t block_rows,
                         std::int64_t block_columns, std::int64_t heads, std::int64_t layer) {
  auto made = std::make_shared<Impl>();
  made->pattern = pattern;
  made->sizes = {block_rows, block_columns, 0, 0, heads};
  make_layout(pattern, made->sizes, {layer, 1});  // called only to check the pattern and the sizes
  layout::find_context_blocks(pattern.node(), &made->chosen);
  if (!made->chosen.empty()) made->layer = layer;
  std::string layouts;
  pattern::add_layout_digests(pattern.node(), &layouts);
  made->text =
      fmt::format("{}\nlayouts {}\nblocks {} x {}, heads {}, layer {}", pattern.to_string(),
                  layouts, block_rows, block_columns, heads, made->layer);
  const base::Digest digest = base::digest(made->text);
  std::memcpy(&made->hash, digest.bytes.data(), sizeof(made->hash));
  impl_ = std::move(made);
}

std::string LayoutQuery::key(std::int64_t seq_q, std::int64_t seq_k) const {
  const layout::BlockGrid grid = impl_->grid(seq_q, seq_k);
  return fmt::format("{}\nrows {} from {}, columns {}, keys from {}", impl_->text, grid.rows,
                     grid.first_row, grid.columns, grid.least_keys);
}

struct LayoutCache::Impl {
  using Pointer = std::shared_ptr<const GridLayout>;
  using Query = std::shared_ptr<const LayoutQuery::Impl>;

  struct Key {
    Query query;
    layout::BlockGrid grid;
    // Equal hashes are not enough, so texts are compared too. Usually both keys come from the same
    // query.
    friend bool operator==(const Key& a, const Key& b) {
      return a.grid == b.grid && (a.query == b.query || (a.query->hash == b.query->hash &&
                                                         a.query->text == b.query->text));
    }
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      std::uint64_t hash = key.query->hash;
      for (const std::int64_t word :
           {key.grid.first_row, key.grid.rows, key.grid.columns, key.grid.least_keys}) {
        hash = (hash ^ static_cast<std::uint64_t>(word)) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 29;
      }
      return static_cast<std::size_t>(hash);
    }
  };
  using Cache = base::SharedCache<Key, GridLayout, Hash>;

  static std::int64_t bytes_of(const Key& key, const GridLayout& value) {
    const BlockLayout& of = value.layout;
    const auto capacity = [](const auto& array) { return array.capacity() * sizeof(array[0]); };
    return static_cast<std::int64_t>(2 * sizeof(Key) + sizeof(GridLayout) + key.query->text.size() +
                                     capacity(of.indptr) + capacity(of.indices) +
                                     capacity(of.partial) + capacity(of.head_map));
  }

  static Pointer make(const Key& key) {
    const LayoutSizes& sizes = key.query->sizes;
    auto made = std::make_shared<GridLayout>();
    made->q_position = key.grid.first_row * sizes.block_rows;
    const pattern::Extent extent = {key.grid.rows * sizes.block_rows,
                                    key.grid.columns * sizes.block_columns, made->q_position, 0};
    made->layout = pattern::make_layout(
        key.query->pattern, extent, sizes.block_rows, sizes.block_columns, sizes.heads,
        {key.query->chosen.empty() ? extent.seq_k : key.grid.least_keys, key.query->layer});
    return made;
  }

  explicit Impl(const LayoutCacheLimits& limits) : cache({limits.bytes, limits.entries}) {}
  // In a child process after fork, a lock of the cache stays locked if another thread held it
  // during the fork.
  Cache& here() {
    process.check("layout cache");
    return cache;
  }

 private:
  Cache cache;
  base::ProcessMark process;
};

LayoutCache::LayoutCache(const LayoutCacheLimits& limits) : impl_(std::make_unique<Impl>(limits)) {}
LayoutCache::~LayoutCache() = default;

std::shared_ptr<const GridLayout> LayoutCache::get(const LayoutQuery& query, std::int64_t seq_q,
                                                   std::int64_t seq_k, const WorkLimit& limit) {
  const base::Work work(limit, "making a layout");
  pattern::check_layouts(query.impl_->pattern.node(), pattern::Extent::whole(seq_q, seq_k));
  const Impl::Key key = {query.impl_, query.impl_->grid(seq_q, seq_k)};
  return impl_->here().get(
      key, [&] { return Impl::make(key); },
      [&](const GridLayout& made) { return Impl::bytes_of(key, made); });
}

LayoutCacheCounters LayoutCache::counters() const {
  const base::CacheCounters of = impl_->here().counters();
  return {of.hits,      of.waits,     of.misses, of.failures,
          of.evictions, of.too_large, of.bytes,  of.entries};
}

void LayoutCache::clear() { impl_->here().clear(); }

}  // namespace annulus::inline v0
