#ifndef ANNULUS_ATTENTION_TILES_TILE_CACHE_H_
#define ANNULUS_ATTENTION_TILES_TILE_CACHE_H_

// A cache of tile lists on the host. Plans share lists. A list never changes; a changed problem has
// another key and so another list. A list lives as long as a plan holds it. The cache has a size
// limit. All functions may be called from any thread; if several threads need a missing list, one
// of them makes it (base/shared_cache.h).

#include <memory>
#include <string>

#include "attention/tiles/tile_list.h"
#include "base/shared_cache.h"

namespace annulus::attention {

class TileCache {
 public:
  explicit TileCache(const base::CacheLimits& limits) : cache_(limits) {}

  // The list of make_plan_tiles(), taken from the cache or made. Never null. A band takes no memory
  // and is not kept in the cache.
  std::shared_ptr<const TileList> get(const Problem& problem, const pattern::Placement& placement,
                                      std::int64_t tile_rows, std::int64_t tile_columns,
                                      const BlockLayout* layout);

  base::CacheCounters counters() const { return cache_.counters(); }

 private:
  base::SharedCache<std::string, TileList, std::hash<std::string>> cache_;
};

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_TILES_TILE_CACHE_H_
