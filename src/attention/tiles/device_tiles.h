#ifndef ANNULUS_ATTENTION_TILES_DEVICE_TILES_H_
#define ANNULUS_ATTENTION_TILES_DEVICE_TILES_H_

// A tile list on the device, and a cache of such lists and of the other arrays that plans read:
// plans that read the same arrays share one copy on the device.

#include <cstddef>
#include <memory>
#include <string>

#include "attention/tiles/tile_list.h"
#include "base/shared_cache.h"
#include "device/buffer.h"
#include "params/attention_params.h"

namespace annulus::attention {

// Immutable; it keeps its list alive.
class DeviceTiles {
 public:
  // Uploads the arrays and waits for the copy. A list without arrays takes no memory.
  DeviceTiles(const device::ContextPointer& context, std::shared_ptr<const TileList> tiles);

  const kernels::TileListParams& parameters() const { return parameters_; }
  std::int64_t bytes() const { return static_cast<std::int64_t>(buffer_.bytes()); }

 private:
  std::shared_ptr<const TileList> tiles_;
  device::Buffer buffer_;
  kernels::TileListParams parameters_ = {};
};

// The keys are exact. The key of a list is the object itself: a list never changes, so the same
// object is the same list. The key of other arrays is their bytes. The cache has a limit of bytes
// on the device. The memory of an entry that the cache drops goes back to the arena when no plan
// holds the entry any more. Before the arena runs out of memory, the cache drops all entries that
// no plan holds. All functions may be called from any thread.
class DeviceTileCache {
 public:
  DeviceTileCache(device::ContextPointer context, const base::CacheLimits& limits);
  ~DeviceTileCache();
  DeviceTileCache(const DeviceTileCache&) = delete;
  DeviceTileCache& operator=(const DeviceTileCache&) = delete;

  // The list on the device, uploaded if it is not there yet.
  std::shared_ptr<const DeviceTiles> get(const std::shared_ptr<const TileList>& tiles);
  // A copy of the bytes on the device.
  std::shared_ptr<const device::Buffer> get(std::span<const std::byte> bytes);

  // Counts lists only.
  base::CacheCounters counters() const { return cache_.counters(); }
  bool has(const std::shared_ptr<const TileList>& tiles) const { return cache_.has(tiles); }

 private:
  using List = std::shared_ptr<const TileList>;

  device::ContextPointer context_;
  base::SharedCache<List, DeviceTiles, std::hash<List>> cache_;
  base::SharedCache<std::string, device::Buffer, std::hash<std::string>> tables_;
  device::Arena::Trimmers::iterator trimmer_;
};

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_TILES_DEVICE_TILES_H_
