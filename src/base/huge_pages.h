#ifndef ANNULUS_BASE_HUGE_PAGES_H_
#define ANNULUS_BASE_HUGE_PAGES_H_

// Large arrays that are about to be written once. Where the system gives them pages of 4 KB one by
// one, at the first write to each, that takes longer than many a loop that writes them.

#include <sys/mman.h>

#include <cstdint>
#include <vector>

namespace annulus::base {

// Reserves room for `count` elements, in huge pages where there is much of it and the system has
// them for those who ask (Linux: transparent_hugepage/enabled is madvise or always). Asking never
// fails: without huge pages it only takes longer.
template <typename T>
void reserve_huge(std::vector<T>* list, std::size_t count) {
  constexpr std::uintptr_t kPage = std::uintptr_t{2} << 20;
  list->reserve(count);
  const auto begin = reinterpret_cast<std::uintptr_t>(list->data() + list->size());
  const auto end = reinterpret_cast<std::uintptr_t>(list->data() + list->capacity());
  const std::uintptr_t first = (begin + kPage - 1) / kPage * kPage;
  const std::uintptr_t last = end / kPage * kPage;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
}

}  // namespace annulus::base

#endif  // ANNULUS_BASE_HUGE_PAGES_H_
