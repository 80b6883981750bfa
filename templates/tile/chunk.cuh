#ifndef ANNULUS_TILE_CHUNK_CUH_
#define ANNULUS_TILE_CHUNK_CUH_

// 16-bit elements as the fp32 values that they represent.

#include "ptx/convert.cuh"
#include "ptx/memory.cuh"
#include "tile/element.cuh"

namespace annulus::tile {

// The values of the two elements in a register.
__device__ __forceinline__ void unpack(Float16, float& low, float& high, unsigned packed) {
  ptx::unpack_f16(low, high, packed);
}
__device__ __forceinline__ void unpack(Bfloat16, float& low, float& high, unsigned packed) {
  low = __uint_as_float(packed << 16);
  high = __uint_as_float(packed & 0xffff0000u);
}

// Eight elements: 16 bytes.
template <typename Element>
struct Chunk {
  float values[kChunkElements];

  __device__ __forceinline__ explicit Chunk(const ptx::Words4& words) {
    unpack(Element{}, values[0], values[1], words.x);
    unpack(Element{}, values[2], values[3], words.y);
    unpack(Element{}, values[4], values[5], words.z);
    unpack(Element{}, values[6], values[7], words.w);
  }
  __device__ __forceinline__ ptx::Words4 packed() const {
    return {Element::pack(values[0], values[1]), Element::pack(values[2], values[3]),
            Element::pack(values[4], values[5]), Element::pack(values[6], values[7])};
  }
};

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_CHUNK_CUH_
