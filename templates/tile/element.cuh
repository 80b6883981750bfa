#ifndef ANNULUS_TILE_ELEMENT_CUH_
#define ANNULUS_TILE_ELEMENT_CUH_

// The 16-bit element types as traits: how two fp32 values become a register of them and which
// tensor-core instruction multiplies them. In memory both are 2 bytes; nothing else differs.

#include "ptx/convert.cuh"
#include "ptx/mma.cuh"

namespace annulus::tile {

enum : int {
  kElementBytes = 2,
  kChunkElements = 8,  // 16 bytes: what one copy, one ldmatrix row or one store moves
};

struct Float16 {
  static __device__ __forceinline__ unsigned pack(float low, float high) {
    return ptx::pack_f16(low, high);
  }
  static __device__ __forceinline__ void mma(float (&d)[4], const unsigned (&a)[4], unsigned b0,
                                             unsigned b1) {
    ptx::mma_f16(d, a, b0, b1);
  }
};

struct Bfloat16 {
  static __device__ __forceinline__ unsigned pack(float low, float high) {
    return ptx::pack_bf16(low, high);
  }
  static __device__ __forceinline__ void mma(float (&d)[4], const unsigned (&a)[4], unsigned b0,
                                             unsigned b1) {
    ptx::mma_bf16(d, a, b0, b1);
  }
};

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_ELEMENT_CUH_
