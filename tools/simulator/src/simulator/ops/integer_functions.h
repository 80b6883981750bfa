#ifndef ANNULUS_SIMULATOR_OPS_INTEGER_FUNCTIONS_H_
#define ANNULUS_SIMULATOR_OPS_INTEGER_FUNCTIONS_H_

// Integer arithmetic of one lane (PTX ISA 9.0, section 9.7.1).

#include <cstdint>
#include <type_traits>

namespace annulus::simulator {

template <typename T>
using Unsigned = std::make_unsigned_t<std::conditional_t<std::is_integral_v<T>, T, int>>;

// --- Integers of PTX wrap around. In C++ only unsigned integers do. ---
struct AddInteger {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b));
  }
};
struct SubInteger {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b));
  }
};
struct AddSaturated {
  std::int32_t operator()(std::int32_t a, std::int32_t b) const {
    const std::int64_t sum = std::int64_t{a} + b;
    return static_cast<std::int32_t>(sum > INT32_MAX   ? INT32_MAX
                                     : sum < INT32_MIN ? INT32_MIN
                                                       : sum);
  }
};
struct SubSaturated {
  std::int32_t operator()(std::int32_t a, std::int32_t b) const {
    const std::int64_t sum = std::int64_t{a} - b;
    return static_cast<std::int32_t>(sum > INT32_MAX   ? INT32_MAX
                                     : sum < INT32_MIN ? INT32_MIN
                                                       : sum);
  }
};
struct MulLow {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  }
};
struct MulHigh {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (sizeof(T) == 8) {
      __extension__ using Signed = __int128;
      __extension__ using Plain = unsigned __int128;
      using Wide = std::conditional_t<std::is_signed_v<T>, Signed, Plain>;
      return static_cast<T>((static_cast<Wide>(a) * static_cast<Wide>(b)) >> 64);
    } else {
      using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
      return static_cast<T>((static_cast<Wide>(a) * static_cast<Wide>(b)) >> (8 * sizeof(T)));
    }
  }
};
struct MadLow {
  template <typename T>
  T operator()(T a, T b, T c) const {
    return AddInteger{}(MulLow{}(a, b), c);
  }
};
struct MadHigh {
  template <typename T>
  T operator()(T a, T b, T c) const {
    return AddInteger{}(MulHigh{}(a, b), c);
  }
};
struct MadHighSaturated {
  std::int32_t operator()(std::int32_t a, std::int32_t b, std::int32_t c) const {
    return AddSaturated{}(MulHigh{}(a, b), c);
  }
};
struct Mul24Low {
  template <typename T>
  static std::int64_t cut(T value) {
    const std::uint32_t low = static_cast<std::uint32_t>(value) & 0xffffffu;
    return std::is_signed_v<T> ? static_cast<std::int32_t>(low << 8) >> 8
                               : static_cast<std::int64_t>(low);
  }
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(cut(a) * cut(b));
  }
};
struct Mul24High {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>((Mul24Low::cut(a) * Mul24Low::cut(b)) >> 16);
  }
};
struct Mad24Low {
  template <typename T>
  T operator()(T a, T b, T c) const {
    return AddInteger{}(Mul24Low{}(a, b), c);
  }
};
// Division by zero and INT_MIN / -1 are "unspecified, machine-dependent" in PTX. On GPUs the first
// gives all ones and the second wraps.
struct DivInteger {
  template <typename T>
  T operator()(T a, T b) const {
    if (b == 0) return static_cast<T>(-1);
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return SubInteger{}(T{0}, a);
    }
    return static_cast<T>(a / b);
  }
};
struct RemInteger {
  template <typename T>
  T operator()(T a, T b) const {
    if (b == 0) return a;
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return 0;
    }
    return static_cast<T>(a % b);
  }
};
struct MinInteger {
  template <typename T>
  T operator()(T a, T b) const {
    return a < b ? a : b;
  }
};
struct MaxInteger {
  template <typename T>
  T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};
struct AbsInteger {
  template <typename T>
  T operator()(T a) const {
    return a < 0 ? SubInteger{}(T{0}, a) : a;
  }
};
struct NegInteger {
  template <typename T>
  T operator()(T a) const {
    return SubInteger{}(T{0}, a);
  }
};
struct SadInteger {
  template <typename T>
  T operator()(T a, T b, T c) const {
    return AddInteger{}(c, a < b ? SubInteger{}(b, a) : SubInteger{}(a, b));
  }
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_OPS_INTEGER_FUNCTIONS_H_
