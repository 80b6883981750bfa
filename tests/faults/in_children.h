#ifndef ANNULUS_TESTS_FAULTS_IN_CHILDREN_H_
#define ANNULUS_TESTS_FAULTS_IN_CHILDREN_H_

// Passes that may end their process run in a child. If a pass ends its child, the next child
// continues after that pass.

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <functional>
#include <new>
#include <string>

namespace annulus::test {

// A T that a process shares with its children.
template <typename T>
class SharedWithChildren {
 public:
  SharedWithChildren() {
    void* memory =
        mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    value_ = new (memory) T;
  }
  ~SharedWithChildren() { munmap(value_, sizeof(T)); }
  SharedWithChildren(const SharedWithChildren&) = delete;
  SharedWithChildren& operator=(const SharedWithChildren&) = delete;
  T* operator->() const { return value_; }
  T& operator*() const { return *value_; }

 private:
  T* value_;
};

// Calls `body` in a child, which is ended after `seconds`. Returns "" if `body` returned, or else
// how the child ended.
inline std::string run_in_child(unsigned seconds, const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(seconds);
    body();
    _exit(0);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return "no process could be made";
  if (WIFSIGNALED(status)) {
    return "the process was ended by signal " + std::to_string(WTERMSIG(status));
  }
  return WEXITSTATUS(status) == 0 ? "" : "the process ended";
}

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_FAULTS_IN_CHILDREN_H_
