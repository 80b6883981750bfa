#ifndef ANNULUS_BASE_SHARED_CACHE_H_
#define ANNULUS_BASE_SHARED_CACHE_H_

// A cache of immutable values that are expensive to make. Of the threads that ask for a missing
// one, the first makes it and the others wait for it. The value that was used longest ago is
// dropped when a limit is reached; callers keep the values that they were given. All functions may
// be called from any thread.

#include <cstddef>
#include <cstdint>
#include <future>
#include <iterator>
#include <limits>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "annulus/types.h"

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
  // again. Only where make() was ended by its own caller's limit of work or flag, a thread that
  // waited makes the value itself.
  template <typename Make, typename BytesOf>
  Pointer get(const Key& key, const Make& make, const BytesOf& bytes_of) {
    std::optional<std::promise<Pointer>> promise;
    std::shared_future<Pointer> others;
    {
      std::lock_guard lock(mutex_);
      if (const auto found = map_.find(key); found == map_.end()) {
        Entry entry;
        entry.making = promise.emplace().get_future().share();
        map_.emplace(key, std::move(entry));
        ++counters_.misses;
      } else if (found->second.made) {
        ++counters_.hits;
        order_.splice(order_.begin(), order_, found->second.place);
        return found->second.place->value;
      } else {
        ++counters_.waits;
        others = found->second.making;
      }
    }
    // Waits for the thread that makes the value; rethrows what its make() threw.
    if (others.valid()) {
      try {
        return others.get();
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kLimit && error.code() != ErrorCode::kCancelled) throw;
      }
      return get(key, make, bytes_of);
    }
    try {
      Pointer value = make();
      // All that keeping needs is allocated here: once the lock is held nothing can fail, so map_
      // and order_ always name the same entries.
      MadeList made{{nullptr, value, bytes_of(*value)}};
      MadeList dropped;
      {
        std::lock_guard lock(mutex_);
        keep(map_.find(key), &made, &dropped);
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
    return found != map_.end() && found->second.made;
  }

  CacheCounters counters() const {
    std::lock_guard lock(mutex_);
    return counters_;
  }

  // Forgets the values that nobody holds but the cache.
  void drop_unused() {
    MadeList dropped;
    std::lock_guard lock(mutex_);
    // A value with a single owner gets no other one meanwhile, as only get() gives it out.
    for (auto at = order_.begin(); at != order_.end();) {
      const auto made = at++;
      if (made->value.use_count() > 1) continue;
      drop(made, &dropped);
      ++counters_.evictions;
    }
  }

  // Forgets all values that are made; counters stay.
  void clear() {
    MadeList dropped;
    std::lock_guard lock(mutex_);
    while (!order_.empty()) drop(std::prev(order_.end()), &dropped);
  }

 private:
  struct Made {
    const Key* key = nullptr;  // of the entry in map_
    Pointer value;
    std::int64_t bytes = 0;
  };
  // A node moves between lists without an allocation. Values that are dropped go to a list of the
  // caller's, to be destroyed after the lock is released, since that may take long.
  using MadeList = std::list<Made>;
  struct Entry {
    bool made = false;
    std::shared_future<Pointer> making;  // until then
    typename MadeList::iterator place;   // in order_, from then on
  };
  using Map = std::unordered_map<Key, Entry, Hash>;

  // Takes the only node of `made`. Requires: mutex_ is held.
  void keep(typename Map::iterator found, MadeList* made, MadeList* dropped) noexcept {
    const std::int64_t bytes = made->front().bytes;
    if (bytes > limits_.bytes || limits_.entries < 1) {
      ++counters_.too_large;
      map_.erase(found);
      return;
    }
    made->front().key = &found->first;
    order_.splice(order_.begin(), *made);
    found->second.made = true;
    found->second.making = {};
    found->second.place = order_.begin();
    counters_.bytes += bytes;
    ++counters_.entries;
    while (counters_.bytes > limits_.bytes || counters_.entries > limits_.entries) {
      drop(std::prev(order_.end()), dropped);
      ++counters_.evictions;
    }
  }

  // Requires: mutex_ is held; `made` is in order_.
  void drop(typename MadeList::iterator made, MadeList* dropped) noexcept {
    counters_.bytes -= made->bytes;
    --counters_.entries;
    map_.erase(map_.find(*made->key));
    made->key = nullptr;
    dropped->splice(dropped->begin(), order_, made);
  }

  const CacheLimits limits_;
  mutable std::mutex mutex_;  // guards all below
  Map map_;
  MadeList order_;  // the made values, the last used first
  CacheCounters counters_;
};

}  // namespace annulus::base

#endif  // ANNULUS_BASE_SHARED_CACHE_H_
