#ifndef ANNULUS_TILE_BITS_CUH_
#define ANNULUS_TILE_BITS_CUH_

// Sets of blocks as bits, and sums over a warp.

namespace annulus::tile {

__device__ __forceinline__ bool has_bit(const unsigned* words, int index) {
  return (words[index >> 5] >> (index & 31)) & 1u;
}

// The lowest `count` set bits of a word, or all set bits if there are fewer.
__device__ __forceinline__ unsigned lowest_bits(unsigned word, int count) {
  unsigned rest = word;
  for (int i = 0; i < count && rest != 0; ++i) rest &= rest - 1;
  return word & ~rest;
}

// Sums and the maximum over a warp, the same in all lanes.
__device__ __forceinline__ int warp_sum(int x) {
#pragma unroll
  for (int distance = 16; distance > 0; distance >>= 1) {
    x += __shfl_xor_sync(0xffffffffu, x, distance);
  }
  return x;
}
__device__ __forceinline__ unsigned long long warp_sum(unsigned long long x) {
#pragma unroll
  for (int distance = 16; distance > 0; distance >>= 1) {
    x += __shfl_xor_sync(0xffffffffu, x, distance);
  }
  return x;
}
// The order of the additions is fixed: halves of the warp are added, then quarters, and so on.
__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
  for (int distance = 16; distance > 0; distance >>= 1) {
    x = __fadd_rn(x, __shfl_xor_sync(0xffffffffu, x, distance));
  }
  return x;
}
__device__ __forceinline__ float warp_max(float x) {
#pragma unroll
  for (int distance = 16; distance > 0; distance >>= 1) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, distance));
  }
  return x;
}

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_BITS_CUH_
