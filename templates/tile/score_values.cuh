#ifndef ANNULUS_TILE_SCORE_VALUES_CUH_
#define ANNULUS_TILE_SCORE_VALUES_CUH_

// The types of a score expression (annulus/score.h). Its text is compiled with these types, so
// operators, names and types have the same meaning in the kernel as for the caller.
// src/attention/score/score_evaluate.cc defines the same in float64.

#include "ptx/math.cuh"
#include "tile/score.cuh"

namespace annulus::tile {

struct Truth {
  bool value;
};

// An integer of 32 bits that wraps around.
struct Integer {
  int value;
};

struct Real {
  float value;
  __device__ __forceinline__ explicit Real(float x) : value(x) {}
  __device__ __forceinline__ Real(Integer x) : value(static_cast<float>(x.value)) {}
};

__device__ __forceinline__ Integer wrapped(unsigned x) { return {static_cast<int>(x)}; }
__device__ __forceinline__ unsigned bits(Integer x) { return static_cast<unsigned>(x.value); }

__device__ __forceinline__ Integer operator-(Integer a) { return wrapped(0u - bits(a)); }
__device__ __forceinline__ Integer operator+(Integer a, Integer b) {
  return wrapped(bits(a) + bits(b));
}
__device__ __forceinline__ Integer operator-(Integer a, Integer b) {
  return wrapped(bits(a) - bits(b));
}
__device__ __forceinline__ Integer operator*(Integer a, Integer b) {
  return wrapped(bits(a) * bits(b));
}
__device__ __forceinline__ Integer min(Integer a, Integer b) {
  return {a.value < b.value ? a.value : b.value};
}
__device__ __forceinline__ Integer max(Integer a, Integer b) {
  return {a.value > b.value ? a.value : b.value};
}
__device__ __forceinline__ Integer abs(Integer a) { return a.value < 0 ? -a : a; }

// The quotient rounded down; 0 if b is 0. It is computed from magnitudes, so the least integer
// divided by -1 wraps around and is not undefined.
__device__ __forceinline__ Integer div(Integer a, Integer b) {
  const unsigned size = bits(abs(b));
  const unsigned divisor = size == 0 ? 1u : size;
  const unsigned quotient = bits(abs(a)) / divisor;
  const bool rest = bits(abs(a)) != quotient * divisor;
  const bool negative = (a.value < 0) != (b.value < 0);
  const Integer result = negative ? wrapped(0u - quotient - (rest ? 1u : 0u)) : wrapped(quotient);
  return {size == 0 ? 0 : result.value};
}
__device__ __forceinline__ Integer mod(Integer a, Integer b) {
  return {b.value == 0 ? 0 : (a - div(a, b) * b).value};
}

__device__ __forceinline__ Real operator-(Real a) { return Real(-a.value); }
__device__ __forceinline__ Real operator+(Real a, Real b) { return Real(a.value + b.value); }
__device__ __forceinline__ Real operator-(Real a, Real b) { return Real(a.value - b.value); }
__device__ __forceinline__ Real operator*(Real a, Real b) { return Real(a.value * b.value); }
__device__ __forceinline__ Real operator/(Real a, Real b) {
  return Real(a.value * ptx::reciprocal(b.value));
}
__device__ __forceinline__ Real min(Real a, Real b) { return Real(fminf(a.value, b.value)); }
__device__ __forceinline__ Real max(Real a, Real b) { return Real(fmaxf(a.value, b.value)); }
__device__ __forceinline__ Real abs(Real a) { return Real(fabsf(a.value)); }
__device__ __forceinline__ Real floor(Real a) { return Real(floorf(a.value)); }
__device__ __forceinline__ Real sqrt(Real a) { return Real(ptx::square_root(a.value)); }
__device__ __forceinline__ Real exp2(Real a) { return Real(ptx::exp2(a.value)); }
__device__ __forceinline__ Real exp(Real a) {
  return Real(ptx::exp2(a.value * 1.4426950408889634f));
}
__device__ __forceinline__ Real log2(Real a) { return Real(ptx::log2(a.value)); }
__device__ __forceinline__ Real log(Real a) {
  return Real(ptx::log2(a.value) * 0.6931471805599453f);
}
__device__ __forceinline__ Real tanh(Real a) { return Real(tanh(a.value)); }
__device__ __forceinline__ Real sigmoid(Real a) {
  return Real(ptx::reciprocal(1.0f + ptx::exp2(a.value * -1.4426950408889634f)));
}

#define ANNULUS_COMPARISON(sign)                                         \
  __device__ __forceinline__ Truth operator sign(Integer a, Integer b) { \
    return {a.value sign b.value};                                       \
  }                                                                      \
  __device__ __forceinline__ Truth operator sign(Real a, Real b) { return {a.value sign b.value}; }
ANNULUS_COMPARISON(<)
ANNULUS_COMPARISON(<=)
ANNULUS_COMPARISON(>)
ANNULUS_COMPARISON(>=)
ANNULUS_COMPARISON(==)
ANNULUS_COMPARISON(!=)
#undef ANNULUS_COMPARISON

__device__ __forceinline__ Truth operator&(Truth a, Truth b) { return {a.value && b.value}; }
__device__ __forceinline__ Truth operator|(Truth a, Truth b) { return {a.value || b.value}; }
__device__ __forceinline__ Truth operator~(Truth a) { return {!a.value}; }

__device__ __forceinline__ Integer where(Truth c, Integer a, Integer b) {
  return {c.value ? a.value : b.value};
}
__device__ __forceinline__ Real where(Truth c, Real a, Real b) {
  return Real(c.value ? a.value : b.value);
}

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_SCORE_VALUES_CUH_
