#ifndef ANNULUS_BASE_WORK_H_
#define ANNULUS_BASE_WORK_H_

// Counts the work of a call against its WorkLimit.
//
//   const base::Work work(options.work, "planning");   // at the border, in a public function
//   ...
//   base::charge(1 + keys.size());                     // below, in the loop that works
//
// The limit belongs to the thread and to the pools that it uses, and is no parameter: a function
// that passed it on and a leaf that forgot it would leave a hole, and every function of the rooms
// of patterns and tiles would have one parameter more. It changes no result, it only ends the call.
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
  // Limits this thread for the length of a scope; `doing` begins the messages, as in "planning".
  // Inside the scope of another Work it does nothing, since the call is then part of a call that
  // has a limit already. Throws Error{kInvalidArgument} for a negative number of steps.
  Work(const WorkLimit& limit, std::string_view doing);
  ~Work();
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  // Steps so far, those of an outer Work included. Exact while no other thread works for the call.
  std::int64_t steps() const;

  // A thread that works for the call of another thread, for the length of a scope.
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
  std::set<std::string, std::less<>> once_;  // keys of charge_once(); guarded by mutex_
  bool is_inner_ = false;
};

// The Work of this thread; null without a limit.
Work* current_work();

// Steps of this thread's Work so far, as Work::steps(); 0 without a limit.
std::int64_t steps_done();

// Counts steps. Now and then it compares them with the limit and asks whether the call is
// cancelled. Throws Error{kLimit, kCancelled}.
void charge(std::int64_t steps);

// Compares what this thread has counted with the limit now. Throws as charge().
void settle();

// Throws Error{kLimit} where so many steps are more than what is left; counts nothing. `what` says
// what is estimated, as in "the list of tiles".
void expect(std::int64_t steps, std::string_view what);

// expect() and charge() for what a call does once for each key, such as compiling a text, however
// often the call asks for it.
void charge_once(std::string_view key, std::int64_t steps, std::string_view what);

}  // namespace annulus::base

#endif  // ANNULUS_BASE_WORK_H_
