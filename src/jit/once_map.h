#ifndef ANNULUS_JIT_ONCE_MAP_H_
#define ANNULUS_JIT_ONCE_MAP_H_

// A map whose values are expensive to make: of the threads that ask for a missing one, the first
// makes it and the others wait for it. Where making it throws, all of them get the exception and
// the next call tries again. Values stay until the map goes. All functions may be called from any
// thread; a hit takes a shared lock and no other.

#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>

namespace annulus::jit {

template <typename Key, typename Value, typename Hash>
class OnceMap {
 public:
  using Pointer = std::shared_ptr<const Value>;

  Pointer find(const Key& key) const {
    std::shared_lock lock(mutex_);
    const auto found = made_.find(key);
    return found == made_.end() ? nullptr : found->second;
  }

  // make() returns a Pointer that is not null. It runs outside of all locks and must not ask the
  // same map for the same key.
  template <typename Make>
  Pointer get(const Key& key, const Make& make) {
    if (Pointer value = find(key)) return value;
    std::promise<Pointer> promise;
    std::shared_future<Pointer> others;
    {
      std::unique_lock lock(mutex_);
      if (const auto found = made_.find(key); found != made_.end()) return found->second;
      const auto [place, first] = making_.try_emplace(key);
      if (first) {
        place->second = promise.get_future().share();
      } else {
        others = place->second;
      }
    }
    if (others.valid()) return others.get();
    try {
      Pointer value = make();
      {
        std::unique_lock lock(mutex_);
        made_.emplace(key, value);
        making_.erase(key);
      }
      promise.set_value(value);
      return value;
    } catch (...) {
      {
        std::unique_lock lock(mutex_);
        making_.erase(key);
      }
      promise.set_exception(std::current_exception());
      throw;
    }
  }

  std::size_t size() const {
    std::shared_lock lock(mutex_);
    return made_.size();
  }

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<Key, Pointer, Hash> made_;
  std::unordered_map<Key, std::shared_future<Pointer>, Hash> making_;
};

}  // namespace annulus::jit

#endif  // ANNULUS_JIT_ONCE_MAP_H_
