#ifndef ANNULUS_SUPPORT_FAILING_NEW_H_
#define ANNULUS_SUPPORT_FAILING_NEW_H_

// Replaces operator new in a program that includes it in one file, so that a test can make every
// allocation of an operation fail in turn, on the thread that asks for it:
//
//   for (int n = 0; test::with_failing_new(n, [&] { operation(); }); ++n) ...

#include <cstddef>
#include <cstdlib>
#include <new>

namespace annulus::test {

// The allocation of this thread that fails, counted down to 0; negative: none.
inline thread_local int allocations_until_failure = -1;

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

void* operator new(std::size_t bytes) {
  using annulus::test::allocations_until_failure;
  if (allocations_until_failure >= 0 && allocations_until_failure-- == 0) throw std::bad_alloc();
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
// The standard library's own calls the one above, but a sanitizer's does not, and its memory is not
// for free().
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

#endif  // ANNULUS_SUPPORT_FAILING_NEW_H_
