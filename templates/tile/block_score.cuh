#ifndef ANNULUS_TILE_BLOCK_SCORE_CUH_
#define ANNULUS_TILE_BLOCK_SCORE_CUH_

// Scores of blocks as finite numbers, and as unsigned keys with the order of the scores.

namespace annulus::tile {

// The score clamped to finite numbers. NaN becomes the lowest score, so that such a block comes
// last of all visible ones.
__device__ __forceinline__ float finite_score(float score) {
  constexpr float kLargest = 3.402823466e+38f;
  if (!(score >= -kLargest)) return -kLargest;
  return score > kLargest ? kLargest : score;
}

enum : unsigned { kInvisibleKey = 0, kForcedKey = 0xffffffffu };

// The key of a finite score. It is between the two keys above, and keys have the order of the
// scores. For a negative float all bits are flipped; for a positive one the top bit is set.
__device__ __forceinline__ unsigned key_of(float score) {
  const unsigned bits = static_cast<unsigned>(__float_as_int(score));
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_BLOCK_SCORE_CUH_
