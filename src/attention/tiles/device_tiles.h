#ifndef ANNULUS_ATTENTION_TILES_DEVICE_TILES_H_
#define ANNULUS_ATTENTION_TILES_DEVICE_TILES_H_

// A tile list on the device, and a cache of such lists: plans that share a list share its memory on
// the device.

#include <memory>
#include <mutex>

#include "attention/tiles/tile_list.h"
#include "base/shared_cache.h"
#include "device/buffer.h"
#include "device/stream.h"
#include "params/attention_params.h"

namespace annulus::attention {

// Immutable once it is uploaded; keeps its list alive.
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

  // Waits until the arrays are on the device. Throws Error{kDevice, kFault}.
  void wait() const;

  const kernels::TileListParams& parameters() const { return parameters_; }
  std::int64_t bytes() const { return static_cast<std::int64_t>(buffer_.bytes()); }

 private:
  std::shared_ptr<const TileList> tiles_;
  device::Buffer buffer_;
  kernels::TileListParams parameters_ = {};
  // The state of an upload that may be under way.
  mutable std::mutex mutex_;
  mutable device::HostBuffer staged_;  // what the copy reads
  mutable device::Event there_;
  mutable bool under_way_ = false;
};

// A cache whose key is the list object itself: a list never changes, so the same object is the same
// list. It is bounded by bytes on the device; the memory of a dropped list is freed when no plan
// holds it any more. All functions may be called from any thread.
class DeviceTileCache {
 public:
  DeviceTileCache(device::ContextPointer context, const base::CacheLimits& limits)
      : context_(std::move(context)), cache_(limits) {}

  // The list on the device, uploaded if it is not there yet; waits for the upload.
  std::shared_ptr<const DeviceTiles> get(const std::shared_ptr<const TileList>& tiles);
  // Starts the upload if the list is not on the device, on a stream of the cache's own.
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
