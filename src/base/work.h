#ifndef ANNULUS_BASE_WORK_H_
#define ANNULUS_BASE_WORK_H_

// Counts the work of a call and compares it with the call's WorkLimit.
//
//   const base::Work work(options.work, "planning");   // once, in a public function
//   ...
//   base::charge(1 + keys.size());                     // repeatedly, in the inner loop
//
// The limit belongs to the thread and to the thread pools that it uses. It is not a parameter: a
// function that forgot to pass it on would leave work uncounted, and every function for patterns
// and tiles would have one more parameter. The limit never changes a result; it only ends the call.
// Without a limit charge() does nothing.

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "annulus/types.h"

namespace annulus::base {

class Work {
 public:
  // Limits this thread for the length of a scope. `doing` begins the messages, such as "planning".
  // Inside the scope of another Work it does nothing, because the call is then part of a call that
  // already has a limit. Throws Error{kInvalidArgument} if the number of steps is negative.
  Work(const WorkLimit& limit, std::string_view doing);
  ~Work();
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  // The steps so far, including the steps of an outer Work. Exact only while no other thread works
  // for the call.
  std::int64_t steps() const;

  // Makes this thread work for the call of another thread, for the length of a scope.
  class Helper {
   public:
    explicit Helper(Work* work);
    ~Helper();
    Helper(const Helper&) = delete;
    Helper& operator=(const Helper&) = delete;
  };

 private:
  friend Work* current_work();
  friend void charge(std::int64_t steps);
  friend void settle();
  friend void expect(std::int64_t steps, std::string_view what);
  friend void charge_once(std::string_view key, std::int64_t steps, std::string_view what);

  void settle(std::int64_t steps);

  const WorkLimit limit_;
  const std::string doing_;
  std::atomic<std::int64_t> steps_{0};
  std::mutex mutex_;
  std::set<std::string, std::less<>> once_;  // the keys of charge_once(); guarded by mutex_
  bool is_inner_ = false;
};

// The Work of this thread. Null if there is no limit.
Work* current_work();

// The steps of this thread's Work so far, as Work::steps(). 0 if there is no limit.
std::int64_t steps_done();

// Counts steps. From time to time it compares them with the limit and checks whether the call is
// cancelled. Throws Error{kLimit, kCancelled}.
void charge(std::int64_t steps);

// Compares the steps that this thread has counted with the limit at once. Throws as charge() does.
void settle();

// Throws Error{kLimit} if `steps` is more than what is left. Counts nothing. `what` names the
// estimated work, such as "the list of tiles".
void expect(std::int64_t steps, std::string_view what);

// Does expect() and charge() for work that a call does only once for each key, such as compiling a
// text, even if the call requests it several times.
void charge_once(std::string_view key, std::int64_t steps, std::string_view what);

}  // namespace annulus::base

#endif  // ANNULUS_BASE_WORK_H_
