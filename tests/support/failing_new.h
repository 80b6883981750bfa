#ifndef ANNULUS_SUPPORT_FAILING_NEW_H_
#define ANNULUS_SUPPORT_FAILING_NEW_H_

// Makes allocations of an operation fail on the calling thread. One file of the program must
// include replaced_new.h. This loop makes each allocation fail in turn:
//
//   for (int n = 0; test::with_failing_new(n, [&] { operation(); }); ++n) ...

namespace annulus::test {

// The number of allocations of this thread before the one that fails. Negative: none fails.
inline thread_local int allocations_until_failure = -1;
// Whether every allocation of this thread fails.
inline thread_local bool no_memory = false;

// Calls body() and makes its n-th allocation fail, counted from 0. Returns false if body() made no
// more than n allocations, so that none failed. body() must catch its own exceptions.
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
