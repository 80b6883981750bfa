#ifndef ANNULUS_PTX_PERMUTE_CUH_
#define ANNULUS_PTX_PERMUTE_CUH_

namespace annulus::ptx {

// prmt.b32: PTX 2.0, sm_20. Byte i of the result is the one of a (0 to 3) and b (4 to 7) that digit
// i of `selector` names, the lowest digit first.
__device__ __forceinline__ unsigned permute_bytes(unsigned a, unsigned b, unsigned selector) {
  unsigned result;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(selector));
  return result;
}

}  // namespace annulus::ptx

#endif  // ANNULUS_PTX_PERMUTE_CUH_
