#ifndef ANNULUS_TILE_PART_TILES_CUH_
#define ANNULUS_TILE_PART_TILES_CUH_

// The tiles of keys of a part of a row of a batch, and the keys of a tile that are there.

#include "params/batch_params.h"

namespace annulus::tile {

// The numbered tiles of keys of a part, and the key at each place of a tile. A row without a list
// of blocks has a tile for every kColumns keys, counted from key 0, if it sees any of them.
template <int kRuns, int kColumns, bool kListed>
class PartTiles {
 public:
  PartTiles() = default;
  __device__ __forceinline__ PartTiles(const kernels::BatchParams&, const kernels::BatchRow& row,
                                       int, int first) {
    const kernels::KeyRuns& runs = row.runs;
    int before = -first;  // tiles of earlier runs minus the tiles before the part
#pragma unroll
    for (int i = 0; i < kRuns; ++i) {
      const int begin = runs.first_tile(i, kColumns);
      const int count = runs.end[i] > runs.begin[i] ? runs.end_tile(i, kColumns) - begin : 0;
      shift_[i] = begin - before;
      before += count > 0 ? count : 0;
      end_[i] = before;
    }
  }
  // The key at a place of tile i of the part; beyond the last tile of the row it has no meaning.
  // The following places have the following keys.
  __device__ __forceinline__ int key(int i, int place) const {
    int tile = i + shift_[0];
#pragma unroll
    for (int run = 1; run < kRuns; ++run) {
      if (i >= end_[run - 1]) tile = i + shift_[run];
    }
    return tile * kColumns + place;
  }

 private:
  int shift_[kRuns];
  int end_[kRuns];
};

// The tiles of a row with a list of blocks have the keys of its blocks, one block after another.
template <int kRuns, int kColumns>
class PartTiles<kRuns, kColumns, true> {
 public:
  PartTiles() = default;
  __device__ __forceinline__ PartTiles(const kernels::BatchParams& params,
                                       const kernels::BatchRow& row, int column, int first)
      : first_(first * kColumns), listed_(row.listed) {
    const int head = column / params.head_tiles;
    const int kv_heads = params.columns / params.head_tiles;
    blocks_ = params.listed.blocks +
              (static_cast<long long>(row.request) * kv_heads + head) * params.listed.most;
    factor_ = params.listed.block_factor;
    shift_ = params.listed.block_shift;
    block_keys_ = params.listed.block_keys;
  }
  // The key at a place of tile i of the part. The following places have the following keys, up to
  // the next multiple of kBlockGrain. Beyond the list, the result is negative.
  __device__ __forceinline__ int key(int i, int place) const {
    const int at = first_ + i * kColumns + place;
    if (at >= listed_) return -(1 << 30);
    const int entry = kernels::quotient_of(at, factor_, shift_);
    return blocks_[entry] * block_keys_ + (at - entry * block_keys_);
  }

 private:
  int first_;
  int listed_;
  const int* blocks_;
  unsigned factor_;
  int shift_;
  int block_keys_;
};

// The keys of a tile that are there: one bit for each key, 32 to a word.
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
  // The bits of the keys of columns 16 i to 16 i + 15.
  __device__ __forceinline__ KeysThere<16> group(int i) const {
    KeysThere<16> there;
    there.words[0] = words[i / 2] >> (i % 2 * 16) & 0xffffu;
    return there;
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

// The keys of a step of a warp: which of them are there, and their numbers in the request.
template <int kKeys>
struct StepKeys {
  KeysThere<kKeys> there;
  // The number of the first key; the others follow it. With a list of blocks, each group of 16 keys
  // has a first key of its own: lane i has the first key of group i mod (kKeys / 16).
  int key;

  static __device__ __forceinline__ StepKeys none() { return {KeysThere<kKeys>::none(), 0}; }
};

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_PART_TILES_CUH_
