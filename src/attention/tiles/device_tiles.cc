#include "attention/tiles/device_tiles.h"

#include <cstring>
#include <utility>

#include "attention/tiles/packed.h"

namespace annulus::attention {
namespace {

// A list's arrays packed into one block, and the parameters once the block has an address.
struct PackedTiles {
  explicit PackedTiles(const TileList& tiles)
      : row_begin(packed.add(tiles.row_begin)),
        entries(packed.add(tiles.tiles)),
        tile_masks(packed.add(tiles.tile_masks)),
        mask_words(packed.add(tiles.mask_words)),
        runs(packed.add(tiles.runs)),
        row_order(packed.add(tiles.row_order)),
        head_list(packed.add(tiles.head_list)) {}

  kernels::TileListParams at(const device::Buffer& buffer, const TileList& tiles) const {
    kernels::TileListParams list = {};
    list.row_begin = pointer<long long>(buffer, row_begin);
    list.tiles = pointer<unsigned>(buffer, entries);
    list.tile_masks = pointer<int>(buffer, tile_masks);
    list.mask_words = pointer<unsigned>(buffer, mask_words);
    list.runs = pointer<kernels::RowRuns>(buffer, runs);
    list.band = tiles.band;
    list.row_order = pointer<int>(buffer, row_order);
    list.head_list = pointer<int>(buffer, head_list);
    list.row_tiles = static_cast<int>(tiles.row_tiles);
    list.granule_row_shift = tiles.granule_row_shift;
    list.granule_column_shift = tiles.granule_column_shift;
    return list;
  }

  Packed packed;
  std::size_t row_begin, entries, tile_masks, mask_words, runs, row_order, head_list;
};

}  // namespace

DeviceTiles::DeviceTiles(const device::ContextPointer& context,
                         std::shared_ptr<const TileList> tiles)
    : tiles_(std::move(tiles)) {
  const PackedTiles made(*tiles_);
  buffer_ = device::upload(context, std::span<const std::byte>(made.packed.bytes()));
  parameters_ = made.at(buffer_, *tiles_);
}

DeviceTiles::DeviceTiles(const device::ContextPointer& context,
                         std::shared_ptr<const TileList> tiles, const device::Stream& stream)
    : tiles_(std::move(tiles)) {
  const PackedTiles made(*tiles_);
  const std::vector<std::byte>& bytes = made.packed.bytes();
  buffer_ = device::Buffer(context, bytes.size());
  parameters_ = made.at(buffer_, *tiles_);
  if (bytes.empty()) return;
  staged_ = device::HostBuffer(context, bytes.size());
  std::memcpy(staged_.data(), bytes.data(), bytes.size());
  there_ = device::Event(context);
  device::copy_to_device_async(*context, buffer_.address(), staged_.data(), bytes.size(),
                               stream.handle());
  under_way_ = true;
  try {
    there_.record(stream.handle());
  } catch (...) {
    stream.synchronize();  // the copy reads staged_, which is destroyed with this object
    throw;
  }
}

DeviceTiles::~DeviceTiles() {
  try {
    wait();
  } catch (...) {  // the context is lost, and the copy with it
  }
}

void DeviceTiles::wait() const {
  std::lock_guard lock(mutex_);
  if (!under_way_) return;
  there_.synchronize();
  under_way_ = false;
  staged_ = {};
  there_ = {};
}

const device::Stream& DeviceTileCache::side_stream() {
  std::call_once(once_, [&] { stream_ = device::Stream(context_); });
  return stream_;
}

std::shared_ptr<const DeviceTiles> DeviceTileCache::get(const List& tiles) {
  const auto make = [&] { return std::make_shared<const DeviceTiles>(context_, tiles); };
  if (tiles->device_bytes() == 0) return make();  // nothing to share
  auto found = cache_.get(tiles, make, [](const DeviceTiles& made) { return made.bytes(); });
  found->wait();
  return found;
}

void DeviceTileCache::prefetch(const List& tiles) {
  if (tiles->device_bytes() == 0) return;
  cache_.get(
      tiles, [&] { return std::make_shared<const DeviceTiles>(context_, tiles, side_stream()); },
      [](const DeviceTiles& made) { return made.bytes(); });
}

}  // namespace annulus::attention
