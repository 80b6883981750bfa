#ifndef ANNULUS_TILE_ELEMENT_CUH_
#define ANNULUS_TILE_ELEMENT_CUH_

// The element types as traits: how fp32 values are packed into a register of them, and which
// tensor-core instruction multiplies them. The two 16-bit types do not differ otherwise, and all
// kernels support them; only wgmma_forward supports e4m3.

#include "ptx/convert.cuh"
#include "ptx/mma.cuh"

namespace annulus::tile {

enum : int {
  kElementBytes = 2,   // bytes of an element of 16 bits
  kChunkElements = 8,  // 16 bytes: the size of a copy, an ldmatrix row or a store
};

struct Float16 {
  enum : int { kBytes = 2 };
  static __device__ __forceinline__ unsigned pack(float low, float high) {
    return ptx::pack_f16(low, high);
  }
  static __device__ __forceinline__ void mma(float (&d)[4], const unsigned (&a)[4], unsigned b0,
                                             unsigned b1) {
    ptx::mma_f16(d, a, b0, b1);
  }
};

struct Bfloat16 {
  enum : int { kBytes = 2 };
  static __device__ __forceinline__ unsigned pack(float low, float high) {
    return ptx::pack_bf16(low, high);
  }
  static __device__ __forceinline__ void mma(float (&d)[4], const unsigned (&a)[4], unsigned b0,
                                             unsigned b1) {
    ptx::mma_bf16(d, a, b0, b1);
  }
};

struct Float8E4M3 {
  enum : int { kBytes = 1 };
  static __device__ __forceinline__ unsigned pack(float a, float b, float c, float d) {
    return ptx::pack_e4m3(a, b, c, d);
  }
};

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_ELEMENT_CUH_
