#ifndef ANNULUS_TILE_BLOCK_SCORE_CUH_
#define ANNULUS_TILE_BLOCK_SCORE_CUH_

// Scores of blocks as numbers that can be compared and searched.

namespace annulus::tile {

// A block whose score is no number comes last of all that are visible.
__device__ __forceinline__ float finite_score(float score) {
  constexpr float kLargest = 3.402823466e+38f;
  if (!(score >= -kLargest)) return -kLargest;
  return score > kLargest ? kLargest : score;
}

enum : unsigned { kInvisibleKey = 0, kForcedKey = 0xffffffffu };

// In the order of the scores, between the two above.
__device__ __forceinline__ unsigned key_of(float score) {
  const unsigned bits = static_cast<unsigned>(__float_as_int(score));
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_BLOCK_SCORE_CUH_
