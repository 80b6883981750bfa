#ifndef ANNULUS_TYPES_H_
#define ANNULUS_TYPES_H_

// Small types that every other header uses. Shape letters: B batch, H query heads, Hkv key/value
// heads, Sq and Sk lengths, D head dim (Dqk of Q and K, Dv of V and O).

#include "annulus/language.h"

#include <cstddef>
#include <cstdint>

#include "annulus/version.h"

namespace annulus::inline v0 {

// kFloat8E4M3 is the "E4M3" of the OCP 8-bit floating point specification, version 1.0: up to 448,
// with NaN and without infinities.
enum class Dtype : int { kFloat16 = 1, kBfloat16 = 2, kFloat32 = 3, kFloat8E4M3 = 4 };

constexpr std::size_t size_in_bytes(Dtype dtype) {
  return dtype == Dtype::kFloat8E4M3 ? 1 : dtype == Dtype::kFloat32 ? 4 : 2;
}
ANNULUS_EXPORT const char* to_string(Dtype dtype);  // "fp16", "bf16", "fp32", "e4m3"

// The base of the logarithm in LSE = log(sum of exp(score)). Named in every signature that
// carries an LSE, because a mismatch is a silent error of 44 %.
enum class LseBase : int { kNatural = 1, kTwo = 2 };
ANNULUS_EXPORT const char* to_string(LseBase base);  // "natural", "two"

// Distances in elements between neighbours of a [B, S, H, D] tensor, in any memory order. The
// stride of D is 1. Others are multiples of 8 elements (of 16 with e4m3) where the dimension is
// larger than 1.
struct Strides {
  std::int64_t batch = 0;
  std::int64_t head = 0;
  std::int64_t row = 0;

  static constexpr Strides bshd(std::int64_t rows, std::int64_t heads, std::int64_t dim) {
    return {rows * heads * dim, dim, heads * dim};
  }
  static constexpr Strides bhsd(std::int64_t rows, std::int64_t heads, std::int64_t dim) {
    return {heads * rows * dim, rows * dim, dim};
  }
  friend bool operator==(const Strides&, const Strides&) = default;
};

// Rows [start, start + length) of a sequence. A shard of a sequence is a list of them.
struct Segment {
  std::int64_t start = 0;
  std::int64_t length = 0;
  friend bool operator==(const Segment&, const Segment&) = default;
};

// The share of (query, key) pairs that are visible, in [0, 1]. Sparsity is its complement; the
// two are different types so that neither can be passed for the other.
struct Density {
  double value = 0;
};
struct Sparsity {
  double value = 0;
};
constexpr Sparsity sparsity(Density density) { return {1.0 - density.value}; }
constexpr Density density(Sparsity sparsity) { return {1.0 - sparsity.value}; }

}  // namespace annulus::inline v0

#endif  // ANNULUS_TYPES_H_
