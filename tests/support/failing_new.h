#ifndef ANNULUS_SUPPORT_FAILING_NEW_H_
#define ANNULUS_SUPPORT_FAILING_NEW_H_

// Lets allocations of an operation fail, on the thread that calls it. One file of the program
// includes replaced_new.h. This makes every allocation fail in turn:
//
//   for (int n = 0; test::with_failing_new(n, [&] { operation(); }); ++n) ...

namespace annulus::test {

// The allocation of this thread that fails, counted down to 0; negative: none.
inline thread_local int allocations_until_failure = -1;
// Whether every allocation of this thread fails.
inline thread_local bool no_memory = false;

// Calls body() with its n-th allocation failing, counted from 0. False where it made no more than
// n, and so met no failure. What body() throws is the caller's to catch within it.
template <typename Body>
bool with_failing_new(int n, const Body& body) {
  allocations_until_failure = n;
  body();
  const bool failed = allocations_until_failure < 0;
  allocations_until_failure = -1;
  return failed;
}

}  // namespace annulus::test

#endif  // ANNULUS_SUPPORT_FAILING_NEW_H_
