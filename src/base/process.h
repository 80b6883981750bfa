#ifndef ANNULUS_BASE_PROCESS_H_
#define ANNULUS_BASE_PROCESS_H_

// Which process made an object. A child of fork has the memory of its parent but one thread of it:
// a lock that another thread held stays held, and the driver refuses every call. So what holds
// locks or a device asks first whether it is still in the process that made it.

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

}  // namespace annulus::base

#endif  // ANNULUS_BASE_PROCESS_H_
