#ifndef ANNULUS_TILE_MASK_CUH_
#define ANNULUS_TILE_MASK_CUH_

// What a mask expression may call. The host writes the expression as text over (m, q, k), for
// example  m.causal(q, k) & (m.window(0, 1, q, k) | m.global_first(2, q, k)),  with m a
// MaskContext and q, k positions; src/pattern/mask_code.h is its other end. The literals are slots
// of numbers, so the text says only what the expression looks like and no value compiles anew.
//
// Leaves are evaluated for each element of partial tiles: integer arithmetic, no branch that
// differs between lanes. Positions and numbers stay within +-2^30, so no difference overflows.

#include "kernels/attention_params.h"

namespace annulus::tile {

// A tile's state in TileListParams::tile_masks where it has no words of its own.
constexpr int kTileAllVisible = -1;
constexpr int kTileNoneVisible = -2;

// The numbers and lists of the expression, and what blocks() says about the tile at hand.
// kTileColumns is N. The last six members are read by blocks() alone; without it they may be zero.
template <int kTileColumns>
struct MaskContext {
  const kernels::MaskParams& params;
  const unsigned* mask_words;  // TileListParams::mask_words
  int tile_mask;               // of this tile: index of its first word, or a state above
  int tile_q;                  // position of the tile's first row
  int tile_k;                  // position of the tile's first column
  int granule_row_shift;
  int granule_column_shift;

  // Slots beyond the parameter block continue at the front of the lists. The slot is a literal, so
  // one of the two loads remains.
  __device__ __forceinline__ int number(int slot) const {
    return slot < kernels::kMaskNumbers ? params.numbers[slot]
                                        : params.lists[slot - kernels::kMaskNumbers];
  }

  __device__ __forceinline__ bool causal(int q, int k) const { return k <= q; }

  __device__ __forceinline__ bool window(int left_slot, int right_slot, int q, int k) const {
    return (k - q >= -number(left_slot)) & (k - q <= number(right_slot));
  }
  __device__ __forceinline__ bool window_left(int slot, int q, int k) const {
    return k - q >= -number(slot);  // unbounded to the right
  }
  __device__ __forceinline__ bool window_right(int slot, int q, int k) const {
    return k - q <= number(slot);  // unbounded to the left
  }

  __device__ __forceinline__ bool sink(int slot, int, int k) const { return k < number(slot); }

  __device__ __forceinline__ bool global_first(int slot, int q, int k) const {
    return (q < number(slot)) | (k < number(slot));
  }

  // How many entries of an ascending list are <= x. The trip count depends on the length alone.
  __device__ __forceinline__ int count_up_to(const int* list, int length, int x) const {
    int count = 0;
    for (int rest = length; rest > 0;) {
      const int half = (rest + 1) >> 1;
      if (list[count + half - 1] <= x) count += half;
      rest -= half;
    }
    return count;
  }

  __device__ __forceinline__ bool listed(const int* list, int length, int x) const {
    const int count = count_up_to(list, length, x);
    return count > 0 && list[count - 1] == x;
  }

  __device__ __forceinline__ bool global_listed(int offset_slot, int length_slot, int q,
                                                int k) const {
    const int* list = params.lists + number(offset_slot);
    const int length = number(length_slot);
    return listed(list, length, q) | listed(list, length, k);
  }

  // The same document: no start lies above the smaller position and not above the larger one.
  __device__ __forceinline__ bool documents(int offset_slot, int length_slot, int q, int k) const {
    const int* starts = params.lists + number(offset_slot);
    const int length = number(length_slot);
    const int low = q < k ? q : k;
    const int high = q < k ? k : q;
    const int next = count_up_to(starts, length, low);
    return next == length || starts[next] > high;
  }

  __device__ __forceinline__ bool blocks(int q, int k) const {
    if (tile_mask < 0) return tile_mask == kTileAllVisible;
    const int row = (q - tile_q) >> granule_row_shift;
    const int column = (k - tile_k) >> granule_column_shift;
    const int bit = row * (kTileColumns >> granule_column_shift) + column;
    return (mask_words[tile_mask + (bit >> 5)] >> (bit & 31)) & 1u;
  }
};

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_MASK_CUH_
