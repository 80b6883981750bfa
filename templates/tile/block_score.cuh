#ifndef ANNULUS_TILE_BLOCK_SCORE_CUH_
#define ANNULUS_TILE_BLOCK_SCORE_CUH_

// Scores of blocks as finite numbers, and as unsigned keys that order as the scores do.

namespace annulus::tile {

// The score clamped to finite numbers. NaN becomes the lowest score, so that such a block comes
// last of all visible ones.
__device__ __forceinline__ float finite_score(float score) {
  constexpr float kLargest = 3.402823466e+38f;
  if (!(score >= -kLargest)) return -kLargest;
  return score > kLargest ? kLargest : score;
}

enum : unsigned { kInvisibleKey = 0, kForcedKey = 0xffffffffu };

// The key of a finite score: between the two above, and ordered as the scores. The bits of a
// negative float are flipped, those of a positive one get the top bit.
__device__ __forceinline__ unsigned key_of(float score) {
  const unsigned bits = static_cast<unsigned>(__float_as_int(score));
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_BLOCK_SCORE_CUH_
