#ifndef ANNULUS_BASE_PROCESS_H_
#define ANNULUS_BASE_PROCESS_H_

// Which process made an object. A child of fork has the memory of its parent but one thread of it:
// a lock that another thread held stays held, and the driver refuses every call. So what holds
// locks or a device asks first whether it is still in the process that made it.

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

  unsigned generation_;  // the forks between the first mark's process and this one
};

// Shares an object that has a thread, for which a child of fork would wait: there it is left alone.
template <typename T>
std::shared_ptr<T> share_in_process(std::unique_ptr<T> object) {
  return std::shared_ptr<T>(object.release(), [mark = ProcessMark()](T* own) {
    if (mark.is_here()) delete own;
  });
}

}  // namespace annulus::base

#endif  // ANNULUS_BASE_PROCESS_H_
