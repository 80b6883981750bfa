#ifndef ANNULUS_PTX_PERMUTE_CUH_
#define ANNULUS_PTX_PERMUTE_CUH_

namespace annulus::ptx {

// prmt.b32: PTX 2.0, sm_20. Byte i of the result is the byte whose number is hexadecimal digit i of
// `selector`, the lowest digit first; bytes 0 to 3 are the bytes of a, and 4 to 7 the bytes of b.
__device__ __forceinline__ unsigned permute_bytes(unsigned a, unsigned b, unsigned selector) {
  unsigned result;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(selector));
  return result;
}

}  // namespace annulus::ptx

#endif  // ANNULUS_PTX_PERMUTE_CUH_
