#ifndef ANNULUS_API_ATTACHED_H_
#define ANNULUS_API_ATTACHED_H_

// Work that goes on beside the callers of a device and uses its parts, though it is no part of it:
// the device's end stops all of it first.

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

  void add(const std::shared_ptr<AttachedWork>& work) {
    const std::lock_guard lock(mutex_);
    std::erase_if(all_, [](const auto& each) { return each.expired(); });
    all_.push_back(work);
  }

 private:
  const base::ProcessMark process_;
  std::mutex mutex_;  // guards all_
  std::vector<std::weak_ptr<AttachedWork>> all_;
};

}  // namespace annulus::api

#endif  // ANNULUS_API_ATTACHED_H_
