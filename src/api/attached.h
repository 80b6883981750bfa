#ifndef ANNULUS_API_ATTACHED_H_
#define ANNULUS_API_ATTACHED_H_

// Work that goes on beside the callers of a device and uses its parts, though it is no part of it:
// the device's end stops all of it first.

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/process.h"

namespace annulus::api {

class AttachedWork {
 public:
  virtual ~AttachedWork() = default;
  // Returns when nothing of the device is used any more. May be called again, from any thread.
  virtual void stop() = 0;
  // Whether the calling thread is the one that does the work, in a callback of the host's.
  virtual bool runs_here() const = 0;
};

class Attached {
 public:
  Attached() = default;
  Attached(const Attached&) = delete;
  Attached& operator=(const Attached&) = delete;
  ~Attached() {
    if (!process_.is_here()) return;  // a child of fork has no other threads
    for (const std::weak_ptr<AttachedWork>& each : all_) {
      if (const auto work = each.lock()) work->stop();
    }
  }

  // Whether the calling thread does such work, so that the device cannot wait for its end here.
  bool runs_here() const {
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(all_, [](const std::weak_ptr<AttachedWork>& each) {
      const auto work = each.lock();
      return work && work->runs_here();
    });
  }

  void add(const std::shared_ptr<AttachedWork>& work) {
    const std::lock_guard lock(mutex_);
    std::erase_if(all_, [](const auto& each) { return each.expired(); });
    all_.push_back(work);
  }

 private:
  const base::ProcessMark process_;
  mutable std::mutex mutex_;  // guards all_
  std::vector<std::weak_ptr<AttachedWork>> all_;
};

}  // namespace annulus::api

#endif  // ANNULUS_API_ATTACHED_H_
