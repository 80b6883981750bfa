#ifndef ANNULUS_ATTENTION_TILES_DEVICE_TILES_H_
#define ANNULUS_ATTENTION_TILES_DEVICE_TILES_H_

// A tile list on the device, and a cache of such: plans that share a list share its memory there.

#include <memory>
#include <mutex>

#include "attention/tiles/tile_list.h"
#include "base/shared_cache.h"
#include "device/buffer.h"
#include "device/stream.h"
#include "params/attention_params.h"

namespace annulus::attention {

// Immutable once it is there; holds the list that it is of.
class DeviceTiles {
 public:
  // Uploads the arrays and waits.
  DeviceTiles(const device::ContextPointer& context, std::shared_ptr<const TileList> tiles);
  // Queues the upload on a stream and returns; wait() before anything reads it.
  DeviceTiles(const device::ContextPointer& context, std::shared_ptr<const TileList> tiles,
              const device::Stream& stream);
  ~DeviceTiles();
  DeviceTiles(const DeviceTiles&) = delete;
  DeviceTiles& operator=(const DeviceTiles&) = delete;

  // Until the arrays are on the device. Throws Error{kDevice, kFault}.
  void wait() const;

  const kernels::TileListParams& parameters() const { return parameters_; }
  std::int64_t bytes() const { return static_cast<std::int64_t>(buffer_.bytes()); }

 private:
  std::shared_ptr<const TileList> tiles_;
  device::Buffer buffer_;
  kernels::TileListParams parameters_ = {};
  // Of an upload that may be under way.
  mutable std::mutex mutex_;
  mutable device::HostBuffer staged_;  // what the copy reads
  mutable device::Event there_;
  mutable bool under_way_ = false;
};

// Keyed by the list itself: it never changes, so the same object is the same list. Bounded by bytes
// on the device; memory of what is dropped is given back when no plan holds it any more. All
// functions may be called from any thread.
class DeviceTileCache {
 public:
  DeviceTileCache(device::ContextPointer context, const base::CacheLimits& limits)
      : context_(std::move(context)), cache_(limits) {}

  // On the device already, or uploaded; waits for it.
  std::shared_ptr<const DeviceTiles> get(const std::shared_ptr<const TileList>& tiles);
  // Sees to it that the list is on its way, on a stream of the cache's own.
  void prefetch(const std::shared_ptr<const TileList>& tiles);

  base::CacheCounters counters() const { return cache_.counters(); }

 private:
  using List = std::shared_ptr<const TileList>;
  const device::Stream& side_stream();

  device::ContextPointer context_;
  std::once_flag once_;
  device::Stream stream_;  // of prefetch()
  base::SharedCache<List, DeviceTiles, std::hash<List>> cache_;
};

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_TILES_DEVICE_TILES_H_
