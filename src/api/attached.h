#ifndef ANNULUS_API_ATTACHED_H_
#define ANNULUS_API_ATTACHED_H_

// Work that runs on other threads than the callers of a device and uses parts of the device without
// being a part of it. The end of the device stops all such work first.

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
  // Returns when nothing of the device is used any more. It may be called again, from any thread.
  virtual void stop() = 0;
  // Whether the calling thread is the thread that does the work, inside a callback of the host.
  virtual bool runs_here() const = 0;
};

class Attached {
 public:
  Attached() = default;
  Attached(const Attached&) = delete;
  Attached& operator=(const Attached&) = delete;
  ~Attached() {
    if (!process_.is_here()) return;  // a child process after fork has no other threads
    for (const std::weak_ptr<AttachedWork>& each : all_) {
      if (const auto work = each.lock()) work->stop();
    }
  }

  // Whether the calling thread does such work. If it does, the device cannot wait here for the end
  // of the work.
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
  mutable std::mutex mutex_;  // protects all_
  std::vector<std::weak_ptr<AttachedWork>> all_;
};

}  // namespace annulus::api

#endif  // ANNULUS_API_ATTACHED_H_
