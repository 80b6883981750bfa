#ifndef ANNULUS_TILE_PART_TILES_CUH_
#define ANNULUS_TILE_PART_TILES_CUH_

// The tiles of keys of a part of a row of a batch, and which keys of a tile are there.

#include "params/batch_params.h"

namespace annulus::tile {

// The tiles of keys of a part, by number.
template <int kRuns, int kColumns>
class PartTiles {
 public:
  PartTiles() = default;
  __device__ __forceinline__ PartTiles(const kernels::KeyRuns& runs, int first) {
    int before = -first;  // tiles of earlier runs, less those in front of the part
#pragma unroll
    for (int i = 0; i < kRuns; ++i) {
      const int begin = runs.first_tile(i, kColumns);
      const int count = runs.end[i] > runs.begin[i] ? runs.end_tile(i, kColumns) - begin : 0;
      shift_[i] = begin - before;
      before += count > 0 ? count : 0;
      end_[i] = before;
    }
  }
  // The first key of tile i of the part; beyond the last tile of the row, of any.
  __device__ __forceinline__ int first_key(int i) const {
    int tile = i + shift_[0];
#pragma unroll
    for (int run = 1; run < kRuns; ++run) {
      if (i >= end_[run - 1]) tile = i + shift_[run];
    }
    return tile * kColumns;
  }

 private:
  int shift_[kRuns];
  int end_[kRuns];
};

// Which keys of a tile are there: one bit for each, 32 to a word.
template <int kColumns>
struct KeysThere {
  enum : int { kWords = (kColumns + 31) / 32 };
  enum : unsigned { kLast = kColumns % 32 == 0 ? 0xffffffffu : (1u << kColumns % 32) - 1 };
  unsigned words[kWords];

  static __device__ __forceinline__ KeysThere none() {
    KeysThere there;
#pragma unroll
    for (int i = 0; i < kWords; ++i) there.words[i] = 0;
    return there;
  }
  static __device__ __forceinline__ KeysThere every() {
    KeysThere there;
#pragma unroll
    for (int i = 0; i < kWords; ++i) there.words[i] = i < kWords - 1 ? 0xffffffffu : kLast;
    return there;
  }
  __device__ __forceinline__ bool any() const {
    unsigned some = 0;
#pragma unroll
    for (int i = 0; i < kWords; ++i) some |= words[i];
    return some != 0;
  }
  __device__ __forceinline__ bool all() const {
    bool every = words[kWords - 1] == kLast;
#pragma unroll
    for (int i = 0; i < kWords - 1; ++i) every = every && words[i] == 0xffffffffu;
    return every;
  }
  // The bits of a lane's columns: 8 i + 2 (lane mod 4) and the next, for each piece i of 8 columns.
  __device__ __forceinline__ unsigned of_lane(unsigned lane) const {
    unsigned bits = 0;
#pragma unroll
    for (int c = 0; c < kColumns / 8; ++c) {
      bits |= (words[c / 4] >> (c % 4 * 8 + lane % 4 * 2) & 3u) << (2 * c);
    }
    return bits;
  }
};

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_PART_TILES_CUH_
