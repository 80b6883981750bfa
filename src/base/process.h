#ifndef ANNULUS_BASE_PROCESS_H_
#define ANNULUS_BASE_PROCESS_H_

// Records which process made an object. A child of fork() has its parent's memory but only one of
// its threads: a lock that another thread held stays locked, and the driver refuses every call. So
// objects that have locks or a device first check whether they are in the process that made them.

#include <memory>

namespace annulus::base {

class ProcessMark {
 public:
  ProcessMark();

  // Throws Error{kDevice} in a child of the process that made this object: "the {what} was ...".
  void check(const char* what) const {
    if (!is_here()) fail(what);
  }
  bool is_here() const;

 private:
  [[noreturn]] static void fail(const char* what);

  // the number of forks between the process of the first mark and this process
  unsigned generation_;
};

// Shares an object that has a thread. In a child of fork() it is not destroyed, because that would
// wait for the thread.
template <typename T>
std::shared_ptr<T> share_in_process(std::unique_ptr<T> object) {
  return std::shared_ptr<T>(object.release(), [mark = ProcessMark()](T* own) {
    if (mark.is_here()) delete own;
  });
}

}  // namespace annulus::base

#endif  // ANNULUS_BASE_PROCESS_H_
