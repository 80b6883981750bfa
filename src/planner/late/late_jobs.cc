#include "planner/late/late_jobs.h"

#include <algorithm>

namespace annulus::planner {

bool LateJobs::UnderWay::begin() {
  std::lock_guard lock(mutex_);
  if (closed_) return false;
  threads_.push_back(std::this_thread::get_id());
  return true;
}

void LateJobs::UnderWay::end() {
  {
    std::lock_guard lock(mutex_);
    threads_.erase(std::ranges::find(threads_, std::this_thread::get_id()));
  }
  ended_.notify_all();
}

LateJobs::~LateJobs() {
  if (!process_.is_here()) return;  // a child of fork() has no other threads
  std::unique_lock lock(under_way_->mutex_);
  under_way_->closed_ = true;
  under_way_->ended_.wait(lock, [&] {
    return std::ranges::all_of(under_way_->threads_, [](std::thread::id each) {
      return each == std::this_thread::get_id();
    });
  });
}

}  // namespace annulus::planner
