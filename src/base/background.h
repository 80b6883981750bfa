#ifndef ANNULUS_BASE_BACKGROUND_H_
#define ANNULUS_BASE_BACKGROUND_H_

// Runs work on other threads: threads of the host, or a few threads of the library.
//
//   Background background;                      // uses the library's threads
//   background.start([shared] { shared->compile(); }, [shared] { shared->give_up(); });

#include <functional>

namespace annulus::base {

class Background {
 public:
  using Task = std::function<void()>;
  // Receives a task that must be called once, from any thread, at once or later.
  using Executor = std::function<void(Task)>;

  // Without an executor, tasks run on threads that the whole process shares: at most half the
  // number of processors, and at most four. They are started when they are needed. When the process
  // ends, it waits for the running tasks and drops the others.
  explicit Background(Executor executor = {}) : executor_(std::move(executor)) {}

  // Runs `task` on another thread. If the executor destroys the task without calling it, calls
  // `dropped`. At most one of the two is called, once, on any thread, possibly the caller's.
  // Neither is called if the process ends before. Neither may throw. Throws what the executor
  // throws, and Error{kOutOfMemory} if the system refuses the first thread; then neither is called.
  void start(Task task, Task dropped) const;

  // Whether the process has begun to end. Then tasks must not call any function of the program.
  static bool process_ends();

 private:
  Executor executor_;
};

}  // namespace annulus::base

#endif  // ANNULUS_BASE_BACKGROUND_H_
