#ifndef ANNULUS_SIMULATOR_DRIVER_OBJECTS_HANDLES_H_
#define ANNULUS_SIMULATOR_DRIVER_OBJECTS_HANDLES_H_

// The objects that a program holds by an opaque handle. A handle is the address of its object. It
// is looked up in a map and never dereferenced, so a stale or invented handle gives an error code.
// A lookup returns a shared pointer, so another thread may destroy the object while it is in use.

#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace annulus::simulator::driver {

template <typename T, typename Handle>
class Handles {
 public:
  Handle add(std::shared_ptr<T> object) {
    const auto handle = reinterpret_cast<Handle>(object.get());
    std::lock_guard lock(mutex_);
    objects_.emplace(handle, std::move(object));
    return handle;
  }

  // Returns null if there is no such object.
  std::shared_ptr<T> find(Handle handle) const {
    std::lock_guard lock(mutex_);
    const auto found = objects_.find(handle);
    return found == objects_.end() ? nullptr : found->second;
  }

  // Removes the handle and returns its object, or null if there is no such object.
  std::shared_ptr<T> remove(Handle handle) {
    std::lock_guard lock(mutex_);
    const auto found = objects_.find(handle);
    if (found == objects_.end()) return nullptr;
    std::shared_ptr<T> object = std::move(found->second);
    objects_.erase(found);
    return object;
  }

  std::vector<std::shared_ptr<T>> all() const {
    std::vector<std::shared_ptr<T>> objects;
    std::lock_guard lock(mutex_);
    for (const auto& [handle, object] : objects_) objects.push_back(object);
    return objects;
  }

  // Removes all objects for which `wanted` holds, and destroys them after the lock is released. It
  // allocates nothing, because functions that release memory call it.
  template <typename Wanted>
  void remove_if(Wanted wanted) {
    std::map<Handle, std::shared_ptr<T>> removed;
    std::lock_guard lock(mutex_);
    for (auto at = objects_.begin(); at != objects_.end();) {
      const auto here = at++;
      if (wanted(*here->second)) removed.insert(objects_.extract(here));
    }
  }

 private:
  mutable std::mutex mutex_;
  std::map<Handle, std::shared_ptr<T>> objects_;
};

}  // namespace annulus::simulator::driver

#endif  // ANNULUS_SIMULATOR_DRIVER_OBJECTS_HANDLES_H_
