#include "base/process.h"

#include <pthread.h>

#include <atomic>

#include "base/fail.h"

namespace annulus::base {
namespace {

// One number for the whole process, because fork() copies the whole process. Reading the process id
// instead would cost a system call in each call of a run.
std::atomic<unsigned> generation{0};

void watch_forks() {
  [[maybe_unused]] static const int watched = ::pthread_atfork(
      nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); });
}

}  // namespace

ProcessMark::ProcessMark() {
  watch_forks();
  generation_ = generation.load(std::memory_order_relaxed);
}

bool ProcessMark::is_here() const {
  return generation_ == generation.load(std::memory_order_relaxed);
}

void ProcessMark::fail(const char* what) {
  base::fail(
      ErrorCode::kDevice,
      "the {} was made before this process was forked, and belongs to the parent; fork before "
      "the first device is opened, or exec",
      what);
}

}  // namespace annulus::base
