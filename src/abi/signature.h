#ifndef ANNULUS_ABI_SIGNATURE_H_
#define ANNULUS_ABI_SIGNATURE_H_

// Compares this library's declaration of a C function with the vendor's. The two use different
// types for the same things (enums or int, different opaque structs), so both are first reduced to
// what matters for the calling convention. Only the *_check.cc files use this.

#include <cstddef>
#include <type_traits>

namespace annulus::abi {

template <std::size_t kBytes>
struct StructOf {};  // a struct that is passed by value, identified by its size

template <typename T>
struct Reduced {
  static auto pick() {
    if constexpr (std::is_enum_v<T>) {
      static_assert(sizeof(T) == sizeof(int));
      return int{};
    } else if constexpr (std::is_class_v<T> || std::is_union_v<T>) {
      return StructOf<sizeof(T)>{};
    } else {
      return T{};
    }
  }
  using type = decltype(pick());
};
template <>
struct Reduced<void> {
  using type = void;
};
// cuda.h uses uint64_t in some places and unsigned long long in others.
template <>
struct Reduced<unsigned long long> {
  static_assert(sizeof(unsigned long long) == sizeof(unsigned long));
  using type = unsigned long;
};

// A pointer to any struct is treated as a pointer to void, because opaque handles are never
// complete.
template <typename T>
struct Reduced<T*> {
  using Bare = std::remove_const_t<T>;
  template <typename U>
  static auto pick() {
    if constexpr (std::is_class_v<U> || std::is_union_v<U> || std::is_void_v<U>) {
      return std::type_identity<void>{};
    } else {
      return std::type_identity<typename Reduced<U>::type>{};
    }
  }
  using Target = typename decltype(pick<Bare>())::type;
  using type = std::conditional_t<std::is_const_v<T>, const Target, Target>*;
};

template <typename Result, typename... Parameters>
struct Reduced<Result(Parameters...)> {
  using type = typename Reduced<Result>::type(typename Reduced<Parameters>::type...);
};
template <typename Result, typename... Parameters>
struct Reduced<Result(Parameters...) noexcept> : Reduced<Result(Parameters...)> {};

template <typename Ours, typename Theirs>
constexpr bool same_signature_v =
    std::is_same_v<typename Reduced<Ours>::type, typename Reduced<Theirs>::type>;

// Whether this library's number equals the vendor's, even if they belong to different enums.
template <auto kOurs, auto kTheirs>
constexpr bool same_number_v = static_cast<long long>(kOurs) == static_cast<long long>(kTheirs);

}  // namespace annulus::abi

#endif  // ANNULUS_ABI_SIGNATURE_H_
