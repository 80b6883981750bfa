#ifndef ANNULUS_BASE_BACKGROUND_H_
#define ANNULUS_BASE_BACKGROUND_H_

// Work beside the caller: on threads of a host, or on a few of the library's own.
//
//   Background background;                      // the library's threads
//   background.start([shared] { shared->compile(); }, [shared] { shared->give_up(); });

#include <functional>

namespace annulus::base {

class Background {
 public:
  using Task = std::function<void()>;
  // Takes a task, to be called once from any thread, at once or later.
  using Executor = std::function<void(Task)>;

  // Without an executor, tasks run on threads that all of the process share, at most half as many
  // as there are processors, and at most four. They are started when they are needed and end with
  // the process, which waits for the tasks under way and forgets the others.
  explicit Background(Executor executor = {}) : executor_(std::move(executor)) {}

  // Runs `task` beside the caller, or calls `dropped` where the executor destroys the task without
  // having called it. At most one of the two is called, once, on any thread, also the caller's;
  // neither if the process ends before. Neither may throw. Throws what the executor throws, and
  // Error{kOutOfMemory} where the system refuses the first thread; then neither is called.
  void start(Task task, Task dropped) const;

  // Whether the process has begun to end, so that nothing of the program's may be called from
  // tasks any more.
  static bool process_ends();

 private:
  Executor executor_;
};

}  // namespace annulus::base

#endif  // ANNULUS_BASE_BACKGROUND_H_
