#include "attention/tiles/tile_cache.h"

#include "attention/tiles/tile_band.h"
#include "attention/tiles/tile_grid.h"
#include "base/span.h"

namespace annulus::attention {

std::shared_ptr<const TileList> TileCache::get(const Problem& problem,
                                               const pattern::Placement& placement,
                                               std::int64_t tile_rows, std::int64_t tile_columns,
                                               const BlockLayout* layout) {
  const auto make = [&] {
    const base::Span span("list tiles");
    return std::make_shared<const TileList>(
        make_plan_tiles(problem, placement, tile_rows, tile_columns, layout));
  };
  if (layout == nullptr && find_band(problem.pattern, placement, tile_rows, tile_columns)) {
    return make();
  }
  const TileGrid grid = grid_of(problem, placement, tile_rows, tile_columns);
  const std::string key = key_of(problem, grid, tile_rows, tile_columns);
  return cache_.get(key, make, [&](const TileList& made) {
    return made.device_bytes() + static_cast<std::int64_t>(sizeof(TileList) + 2 * key.size());
  });
}

}  // namespace annulus::attention
