#ifndef ANNULUS_BASE_JSON_H_
#define ANNULUS_BASE_JSON_H_

// All JSON from outside is parsed here. Size and depth are limited, because a deep document would
// overflow the stack of the JSON library. The number of keys is limited, because its objects search
// their keys one by one. Duplicate keys are refused.
//
// The destructor of that library's values allocates: it moves the children of a value to a vector,
// so that a deep document does not overflow the stack. If that allocation failed, the process would
// end, because a destructor must not throw. So these vectors have a memory reserve.

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace annulus::base {

// The allocator of arrays and objects. They can throw, so they need no reserve.
template <typename T>
struct JsonAllocator {
  using value_type = T;
  JsonAllocator() = default;
  template <typename U>
  JsonAllocator(const JsonAllocator<U>&) {}
  T* allocate(std::size_t count) { return std::allocator<T>().allocate(count); }
  void deallocate(T* memory, std::size_t count) { std::allocator<T>().deallocate(memory, count); }
  template <typename U>
  bool operator==(const JsonAllocator<U>&) const {
    return true;
  }
};

using Json = nlohmann::basic_json<nlohmann::ordered_map, std::vector, std::string, bool,
                                  std::int64_t, std::uint64_t, double, JsonAllocator>;

// Allocates host memory, or takes it from a reserve of 1 MiB if the host has no more memory. The
// reserve suffices to destroy a document that has up to JsonLimits::keys values in any object or
// array. Throws std::bad_alloc if the reserve is used up.
void* allocate_with_reserve(std::size_t bytes);
void release_with_reserve(void* memory);

}  // namespace annulus::base

// The allocator of std::vector<Json>. The C++ standard allows specialisations for types that the
// program defines ([namespace.std]).
template <>
class std::allocator<annulus::base::Json> {
 public:
  using value_type = annulus::base::Json;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using propagate_on_container_move_assignment = std::true_type;
  using is_always_equal = std::true_type;

  allocator() = default;
  template <typename U>
  allocator(const allocator<U>&) {}
  value_type* allocate(std::size_t count);
  void deallocate(value_type* memory, std::size_t) { annulus::base::release_with_reserve(memory); }
  friend bool operator==(const allocator&, const allocator&) { return true; }
};

inline annulus::base::Json* std::allocator<annulus::base::Json>::allocate(std::size_t count) {
  return static_cast<value_type*>(
      annulus::base::allocate_with_reserve(count * sizeof(annulus::base::Json)));
}

namespace annulus::base {

struct JsonLimits {
  std::size_t bytes = 16u << 20;
  int depth = 16;
  std::size_t keys = 20'000;  // the most keys of one object
};

// Throws Error{kInvalidFile}. `what` names the text in the message.
Json parse_json(std::string_view text, std::string_view what, const JsonLimits& limits = {});

}  // namespace annulus::base

#endif  // ANNULUS_BASE_JSON_H_
