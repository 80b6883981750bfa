#include "attention/tiles/device_tiles.h"

#include <utility>

#include "attention/tiles/packed.h"

namespace annulus::attention {
namespace {

// A list's arrays packed into one block. After the block is uploaded, it gives the kernel's
// parameters.
struct PackedTiles {
  explicit PackedTiles(const TileList& tiles)
      : row_begin(packed.add(tiles.row_begin)),
        entries(packed.add(tiles.tiles)),
        tile_masks(packed.add(tiles.tile_masks)),
        mask_words(packed.add(tiles.mask_words)),
        runs(packed.add(tiles.runs)),
        groups(packed.add(tiles.groups)),
        row_order(packed.add(tiles.row_order)),
        head_list(packed.add(tiles.head_list)) {}

  kernels::TileListParams at(const device::Buffer& buffer, const TileList& tiles) const {
    kernels::TileListParams list = {};
    list.row_begin = pointer<long long>(buffer, row_begin);
    list.tiles = pointer<unsigned>(buffer, entries);
    list.tile_masks = pointer<int>(buffer, tile_masks);
    list.mask_words = pointer<unsigned>(buffer, mask_words);
    list.runs = pointer<kernels::RowRuns>(buffer, runs);
    list.groups = pointer<kernels::RowGroup>(buffer, groups);
    list.group_count = static_cast<int>(tiles.group_count);
    list.band = tiles.band;
    list.row_order = pointer<int>(buffer, row_order);
    list.head_list = pointer<int>(buffer, head_list);
    list.row_tiles = static_cast<int>(tiles.row_tiles);
    list.granule_row_shift = tiles.granule_row_shift;
    list.granule_column_shift = tiles.granule_column_shift;
    list.distinct_batches = static_cast<int>(tiles.batches);
    return list;
  }

  Packed packed;
  std::size_t row_begin, entries, tile_masks, mask_words, runs, groups, row_order, head_list;
};

}  // namespace

DeviceTiles::DeviceTiles(const device::ContextPointer& context,
                         std::shared_ptr<const TileList> tiles)
    : tiles_(std::move(tiles)) {
  const PackedTiles made(*tiles_);
  buffer_ = made.packed.upload(context, device::MemoryUse::kLists);
  parameters_ = made.at(buffer_, *tiles_);
}

DeviceTileCache::DeviceTileCache(device::ContextPointer context, const base::CacheLimits& limits)
    : context_(std::move(context)),
      cache_(limits),
      tables_(limits),
      trimmer_(context_->arena().add_trimmer([this] {
        cache_.drop_unused();
        tables_.drop_unused();
      })) {}

DeviceTileCache::~DeviceTileCache() { context_->arena().remove_trimmer(trimmer_); }

std::shared_ptr<const DeviceTiles> DeviceTileCache::get(const List& tiles) {
  const auto make = [&] { return std::make_shared<const DeviceTiles>(context_, tiles); };
  if (tiles->device_bytes() == 0) return make();  // nothing to share
  return cache_.get(tiles, make, [](const DeviceTiles& made) { return made.bytes(); });
}

std::shared_ptr<const device::Buffer> DeviceTileCache::get(std::span<const std::byte> bytes) {
  const auto make = [&] {
    return std::make_shared<const device::Buffer>(
        device::upload(context_, bytes, device::MemoryUse::kTables));
  };
  if (bytes.empty()) return make();
  const std::string key(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return tables_.get(key, make, [](const device::Buffer& made) {
    return static_cast<std::int64_t>(made.bytes());
  });
}

}  // namespace annulus::attention
