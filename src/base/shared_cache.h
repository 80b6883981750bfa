#ifndef ANNULUS_BASE_SHARED_CACHE_H_
#define ANNULUS_BASE_SHARED_CACHE_H_

// A cache of immutable values that are expensive to make. Of the threads that ask for a missing
// one, the first makes it and the others wait for it. The value that was used longest ago is
// dropped when a limit is reached; callers keep the values that they were given. All functions may
// be called from any thread.

#include <cstddef>
#include <cstdint>
#include <future>
#include <limits>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

namespace annulus::base {

struct CacheLimits {
  std::int64_t bytes = std::numeric_limits<std::int64_t>::max();
  std::int64_t entries = std::numeric_limits<std::int64_t>::max();
};

// The fields of annulus::LayoutCacheCounters, which says what they count.
struct CacheCounters {
  std::int64_t hits = 0;
  std::int64_t waits = 0;
  std::int64_t misses = 0;
  std::int64_t failures = 0;
  std::int64_t evictions = 0;
  std::int64_t too_large = 0;
  std::int64_t bytes = 0;
  std::int64_t entries = 0;
};

template <typename Key, typename Value, typename Hash>
class SharedCache {
 public:
  using Pointer = std::shared_ptr<const Value>;

  explicit SharedCache(const CacheLimits& limits = {}) : limits_(limits) {}
  SharedCache(const SharedCache&) = delete;
  SharedCache& operator=(const SharedCache&) = delete;

  // make() returns a Pointer that is not null, and bytes_of(*pointer) the bytes that it counts for.
  // Both run without the lock; make() must not ask for the same key, since it would wait for
  // itself. Throws what make() throws, to every thread that waited for it; the next call tries
  // again.
  template <typename Make, typename BytesOf>
  Pointer get(const Key& key, const Make& make, const BytesOf& bytes_of) {
    std::optional<std::promise<Pointer>> promise;
    std::shared_future<Pointer> others;
    {
      std::lock_guard lock(mutex_);
      if (const auto found = map_.find(key); found == map_.end()) {
        ++counters_.misses;
        Entry entry;
        entry.making = promise.emplace().get_future().share();
        map_.emplace(key, std::move(entry));
      } else if (found->second.value) {
        ++counters_.hits;
        order_.splice(order_.begin(), order_, found->second.place);
        return found->second.value;
      } else {
        ++counters_.waits;
        others = found->second.making;
      }
    }
    // Waits for the thread that makes the value; rethrows what its make() threw.
    if (others.valid()) return others.get();
    try {
      Pointer value = make();
      const std::int64_t bytes = bytes_of(*value);
      Dropped dropped;
      {
        std::lock_guard lock(mutex_);
        keep(map_.find(key), value, bytes, &dropped);
      }
      // The map has the value before the waiting threads have it, so that later calls are hits.
      promise->set_value(value);
      return value;
    } catch (...) {
      {
        std::lock_guard lock(mutex_);
        ++counters_.failures;
        map_.erase(key);
      }
      promise->set_exception(std::current_exception());
      throw;
    }
  }

  bool has(const Key& key) const {
    std::lock_guard lock(mutex_);
    const auto found = map_.find(key);
    return found != map_.end() && found->second.value != nullptr;
  }

  CacheCounters counters() const {
    std::lock_guard lock(mutex_);
    return counters_;
  }

  // Forgets the values that nobody holds but the cache.
  void drop_unused() {
    Dropped dropped;
    std::lock_guard lock(mutex_);
    // A value with a single owner gets no other one meanwhile, as only get() gives it out.
    for (auto at = order_.begin(); at != order_.end();) {
      const auto entry = map_.find(**at);
      ++at;
      if (entry->second.value.use_count() > 1) continue;
      drop(entry, &dropped);
      ++counters_.evictions;
    }
  }

  // Forgets all values that are made; counters stay.
  void clear() {
    Dropped dropped;
    std::lock_guard lock(mutex_);
    while (!order_.empty()) drop(map_.find(*order_.back()), &dropped);
  }

 private:
  struct Entry {
    Pointer value;  // null while the value is made
    std::shared_future<Pointer> making;
    std::int64_t bytes = 0;
    typename std::list<const Key*>::iterator place;  // in order_, once the value is made
  };
  using Map = std::unordered_map<Key, Entry, Hash>;
  // Values that are dropped. They are destroyed after the lock is released, since that may take
  // long.
  using Dropped = std::list<Pointer>;

  // Requires: mutex_ is held.
  void keep(typename Map::iterator found, const Pointer& value, std::int64_t bytes,
            Dropped* dropped) {
    if (bytes > limits_.bytes || limits_.entries < 1) {
      ++counters_.too_large;
      map_.erase(found);
      return;
    }
    found->second.value = value;
    found->second.making = {};
    found->second.bytes = bytes;
    order_.push_front(&found->first);
    found->second.place = order_.begin();
    counters_.bytes += bytes;
    ++counters_.entries;
    while (counters_.bytes > limits_.bytes || counters_.entries > limits_.entries) {
      drop(map_.find(*order_.back()), dropped);
      ++counters_.evictions;
    }
  }

  // Requires: mutex_ is held; the entry is made.
  void drop(typename Map::iterator found, Dropped* dropped) {
    dropped->push_back(std::move(found->second.value));
    counters_.bytes -= found->second.bytes;
    --counters_.entries;
    order_.erase(found->second.place);
    map_.erase(found);
  }

  const CacheLimits limits_;
  mutable std::mutex mutex_;  // guards all below
  Map map_;
  std::list<const Key*> order_;  // keys of the made values in map_, the last used first
  CacheCounters counters_;
};

}  // namespace annulus::base

#endif  // ANNULUS_BASE_SHARED_CACHE_H_
