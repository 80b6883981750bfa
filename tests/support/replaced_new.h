#ifndef ANNULUS_SUPPORT_REPLACED_NEW_H_
#define ANNULUS_SUPPORT_REPLACED_NEW_H_

// Replaces operator new in a program that includes this file in one of its files. The replacement
// fails as described in failing_new.h.

#include <cstddef>
#include <cstdlib>
#include <new>

#include "support/failing_new.h"

void* operator new(std::size_t bytes) {
  using annulus::test::allocations_until_failure;
  if (annulus::test::no_memory) throw std::bad_alloc();
  if (allocations_until_failure >= 0 && allocations_until_failure-- == 0) throw std::bad_alloc();
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
// The standard library's version calls the operator above. A sanitizer's version does not, and its
// memory must not be passed to free().
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

#endif  // ANNULUS_SUPPORT_REPLACED_NEW_H_
