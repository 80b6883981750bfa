#ifndef ANNULUS_BASE_SHARED_CACHE_H_
#define ANNULUS_BASE_SHARED_CACHE_H_

// A cache of immutable values that are expensive to make. If several threads request a missing
// value, the first makes it and the others wait for it. If a limit is reached, the least recently
// used value is dropped. Callers keep the values that they received. All functions may be called
// from any thread.

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

// The fields of annulus::LayoutCacheCounters, where their meaning is documented.
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

  // make() returns a Pointer that is not null. bytes_of(*pointer) returns the bytes that count
  // against the limit. Both run without the lock. make() must not request the same key, because it
  // would wait for itself. If make() throws, every thread that waited for it gets the exception,
  // and the next call tries again. Exception: if make() was ended by its own caller's limit of work
  // or cancellation, a thread that waited makes the value itself.
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
    // Waits for the thread that makes the value. If that thread's make() threw, throws the same
    // exception.
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
      // Allocates all memory for keep(), because nothing may fail while the lock is held: map_ and
      // order_ always contain the same entries.
      MadeList made{{nullptr, value, bytes_of(*value)}};
      MadeList dropped;
      {
        std::lock_guard lock(mutex_);
        keep(map_.find(key), &made, &dropped);
      }
      // The value is in the map before the waiting threads receive it, so that later calls are
      // hits.
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

  // Drops the values that only the cache holds.
  void drop_unused() {
    MadeList dropped;
    std::lock_guard lock(mutex_);
    // A value with a single owner cannot get another owner meanwhile, because only get() returns
    // values.
    for (auto at = order_.begin(); at != order_.end();) {
      const auto made = at++;
      if (made->value.use_count() > 1) continue;
      drop(made, &dropped);
      ++counters_.evictions;
    }
  }

  // Drops all finished values. The counters do not change.
  void clear() {
    MadeList dropped;
    std::lock_guard lock(mutex_);
    while (!order_.empty()) drop(std::prev(order_.end()), &dropped);
  }

 private:
  struct Made {
    const Key* key = nullptr;  // the key in map_
    Pointer value;
    std::int64_t bytes = 0;
  };
  // A node moves between lists without an allocation. Dropped values go to a list of the caller, to
  // be destroyed after the lock is released, because that may take long.
  using MadeList = std::list<Made>;
  struct Entry {
    bool made = false;
    std::shared_future<Pointer> making;  // valid while the value is being made
    typename MadeList::iterator place;   // the place in order_; valid after the value was made
  };
  using Map = std::unordered_map<Key, Entry, Hash>;

  // Takes the only node of `made`. The caller holds mutex_.
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

  // The caller holds mutex_, and `made` is in order_.
  void drop(typename MadeList::iterator made, MadeList* dropped) noexcept {
    counters_.bytes -= made->bytes;
    --counters_.entries;
    map_.erase(map_.find(*made->key));
    made->key = nullptr;
    dropped->splice(dropped->begin(), order_, made);
  }

  const CacheLimits limits_;
  mutable std::mutex mutex_;  // guards all members below
  Map map_;
  MadeList order_;  // the finished values, the most recently used first
  CacheCounters counters_;
};

}  // namespace annulus::base

#endif  // ANNULUS_BASE_SHARED_CACHE_H_
