#ifndef ANNULUS_TESTS_SUPPORT_PROCESSES_H_
#define ANNULUS_TESTS_SUPPORT_PROCESSES_H_

#include <unistd.h>

namespace annulus::test {

// Runs body() in a child process, which then exits with 0. Returns the child's id, or -1.
template <typename Body>
pid_t start(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(0);
  }
  return child;
}

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_SUPPORT_PROCESSES_H_
