#ifndef ANNULUS_SUPPORT_COUNTED_MALLOC_H_
#define ANNULUS_SUPPORT_COUNTED_MALLOC_H_

// Replaces malloc in a program that includes this file in one of its files, and counts the
// allocations of each thread. Allocations by operator new and by the C library are included. It
// cannot be used with a sanitizer, because a sanitizer replaces malloc too.

#include <cstddef>
#include <cstdlib>

namespace annulus::test {
inline thread_local int allocations = 0;
}

extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

void* malloc(std::size_t bytes) noexcept {
  ++annulus::test::allocations;
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) noexcept {
  ++annulus::test::allocations;
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, std::size_t bytes) noexcept {
  ++annulus::test::allocations;
  return __libc_realloc(memory, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  ++annulus::test::allocations;
  return __libc_memalign(alignment, bytes);
}
}

#endif  // ANNULUS_SUPPORT_COUNTED_MALLOC_H_
