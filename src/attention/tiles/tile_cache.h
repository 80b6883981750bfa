#ifndef ANNULUS_ATTENTION_TILES_TILE_CACHE_H_
#define ANNULUS_ATTENTION_TILES_TILE_CACHE_H_

// Tile lists that were made already, on the host. Plans share them: they never change, a changed
// problem has another key and so another list, and one stays as long as a plan holds it. Bounded;
// all functions may be called from any thread, and of several that ask for a missing list one makes
// it (base/shared_cache.h).

#include <memory>
#include <string>

#include "attention/tiles/tile_list.h"
#include "base/shared_cache.h"

namespace annulus::attention {

class TileCache {
 public:
  explicit TileCache(const base::CacheLimits& limits) : cache_(limits) {}

  // make_plan_tiles(), made or found. Never null. What is computed from the lengths takes no memory
  // and is not kept.
  std::shared_ptr<const TileList> get(const Problem& problem, const pattern::Placement& placement,
                                      std::int64_t tile_rows, std::int64_t tile_columns,
                                      const BlockLayout* layout);

  base::CacheCounters counters() const { return cache_.counters(); }

 private:
  base::SharedCache<std::string, TileList, std::hash<std::string>> cache_;
};

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_TILES_TILE_CACHE_H_
