#ifndef ANNULUS_BASE_HUGE_PAGES_H_
#define ANNULUS_BASE_HUGE_PAGES_H_

// For large arrays that will be written once. If the system allocates pages of 4 KB at the first
// write to each, that often takes longer than the loop that writes them.

#include <sys/mman.h>

#include <cstdint>
#include <vector>

namespace annulus::base {

// Reserves memory for `count` elements. If they are large and the system provides huge pages on
// request (Linux: transparent_hugepage/enabled is madvise or always), huge pages are used. It never
// fails: without huge pages writing only takes longer.
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
