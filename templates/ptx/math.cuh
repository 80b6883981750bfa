#ifndef ANNULUS_PTX_MATH_CUH_
#define ANNULUS_PTX_MATH_CUH_

// Instructions of the special-function unit. Relative errors are about 2^-22; subnormals are
// flushed to zero.

namespace annulus::ptx {

// ex2.approx.ftz: PTX 1.4, any architecture. 2^x; 0 for -inf, +inf for +inf.
__device__ __forceinline__ float exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// lg2.approx.ftz: PTX 1.4, any architecture. The absolute error near 1 is below 2^-22.
__device__ __forceinline__ float log2(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// rcp.approx.ftz: PTX 1.4, any architecture. The result is 0 for +inf.
__device__ __forceinline__ float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// sqrt.approx.ftz: PTX 1.4, any architecture. The result is NaN for negative numbers.
__device__ __forceinline__ float square_root(float x) {
  float y;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace annulus::ptx

#endif  // ANNULUS_PTX_MATH_CUH_
