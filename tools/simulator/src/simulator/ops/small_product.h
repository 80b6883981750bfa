#ifndef ANNULUS_SIMULATOR_OPS_SMALL_PRODUCT_H_
#define ANNULUS_SIMULATOR_OPS_SMALL_PRODUCT_H_

// Products of small matrices that are stored row by row. They serve forms of mma and wmma that
// matter little for the speed of kernels.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace annulus::simulator {

inline float multiply_add(float a, float b, float c) { return std::fma(a, b, c); }
inline double multiply_add(double a, double b, double c) { return std::fma(a, b, c); }
inline std::int32_t multiply_add(std::int32_t a, std::int32_t b, std::int32_t c) {
  return a * b + c;
}

// sum += a b, in ascending order of k.
template <int kN, typename T>
void add_product(const T* a, const T* b, T* sum, int m, int k) {
  for (int row = 0; row < m; ++row) {
    T* to = sum + row * kN;
    for (int i = 0; i < k; ++i) {
      const T factor = a[row * k + i];
      for (int column = 0; column < kN; ++column) {
        to[column] = multiply_add(factor, b[i * kN + column], to[column]);
      }
    }
  }
}

// to[i] += products[i]. The sum wraps or, if saturated, stops at the limits of the type.
inline void accumulate(const std::int32_t* products, std::int32_t* to, std::size_t count,
                       bool saturated) {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int32_t>::min();
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t exact = std::int64_t{to[i]} + products[i];
    to[i] = static_cast<std::int32_t>(saturated ? std::clamp(exact, kLeast, kMost) : exact);
  }
}

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_OPS_SMALL_PRODUCT_H_
