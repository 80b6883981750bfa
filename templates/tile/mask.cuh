#ifndef ANNULUS_TILE_MASK_CUH_
#define ANNULUS_TILE_MASK_CUH_

// The functions that a mask expression may call. The host writes it as text over (m, q, k), for
// example  m.causal(q, k) & (m.window(0, 1, q, k) | m.global_first(2, q, k)),  where m is a
// MaskContext and q, k are positions; src/pattern/mask_code.h is the host side. The literals are
// slots of numbers, so the text has only the structure of the expression, and a new value needs no
// compilation.
//
// Leaves are evaluated for each element of partial tiles: integer arithmetic, no branch that
// differs between lanes. Positions and numbers stay within +-2^30, so no difference overflows.

#include "params/attention_params.h"

namespace annulus::tile {

// Void<decltype(T::kName)> exists if T has the member.
template <typename>
using Void = void;

// The values in TileListParams::tile_masks for tiles that have no words of their own.
constexpr int kTileAllVisible = -1;
constexpr int kTileNoneVisible = -2;

// The results of all rows of a table, joined by & or by |. The number of rows is not a literal, so
// the loop is not unrolled, whatever the number is.
template <typename Answer, typename Mask, typename Text>
__device__ __forceinline__ Answer all_rows(const Mask& mask, int table_slot, int width, int count,
                                           const Text& text) {
  Answer all(true);
  for (int row = 0; row < count; ++row) all = all & mask.one_of(table_slot, width, row, text);
  return all;
}
template <typename Answer, typename Mask, typename Text>
__device__ __forceinline__ Answer any_row(const Mask& mask, int table_slot, int width, int count,
                                          const Text& text) {
  Answer any(false);
  for (int row = 0; row < count; ++row) any = any | mask.one_of(table_slot, width, row, text);
  return any;
}

// The numbers and lists of the expression, and the data of blocks() for the current tile.
// kTileColumns is N. Only blocks() reads the members from mask_words to granule_column_shift;
// without blocks() they may be zero.
template <int kTileColumns>
struct MaskContext {
  const kernels::MaskParams& params;
  const unsigned* mask_words;  // TileListParams::mask_words
  int tile_mask;               // the current tile's: index of its first word, or a state above
  int tile_q;                  // position of the tile's first row
  int tile_k;                  // position of the tile's first column
  int granule_row_shift;
  int granule_column_shift;
  int head;   // the query head
  int batch;  // the number in the whole problem
  // The row of a table that the slots of a shared text refer to (at_row). Null: they refer to the
  // numbers of the whole expression.
  const int* row_numbers = nullptr;

  // Slots beyond the parameter block are at the front of the lists. The slot is a literal, so only
  // one of the two loads is compiled.
  __device__ __forceinline__ int number(int slot) const {
    if (row_numbers != nullptr) return row_numbers[slot];
    return slot < kernels::kMaskNumbers ? params.numbers[slot]
                                        : params.lists[slot - kernels::kMaskNumbers];
  }

  // Parts of an expression that differ only in their numbers share one text, which is a function of
  // the context. Its numbers are the rows of a table in the lists.
  __device__ __forceinline__ MaskContext at_row(int table_slot, int width, int row) const {
    MaskContext there = *this;
    there.row_numbers = params.lists + number(table_slot) + width * row;
    return there;
  }
  template <typename Text>
  __device__ __forceinline__ bool one_of(int table_slot, int width, int row,
                                         const Text& text) const {
    return text(at_row(table_slot, width, row));
  }
  template <typename Text>
  __device__ __forceinline__ bool all_of(int table_slot, int width, int count_slot,
                                         const Text& text) const {
    return all_rows<bool>(*this, table_slot, width, number(count_slot), text);
  }
  template <typename Text>
  __device__ __forceinline__ bool any_of(int table_slot, int width, int count_slot,
                                         const Text& text) const {
    return any_row<bool>(*this, table_slot, width, number(count_slot), text);
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

  // The number of entries of an ascending list that are <= x. The trip count depends on the length
  // alone.
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

  // Two positions are in the same document if no document starts above the smaller position and not
  // above the larger one.
  __device__ __forceinline__ bool documents(int offset_slot, int length_slot, int q, int k) const {
    const int* starts = params.lists + number(offset_slot);
    const int length = number(length_slot);
    const int low = q < k ? q : k;
    const int high = q < k ? k : q;
    const int next = count_up_to(starts, length, low);
    return next == length || starts[next] > high;
  }

  // Division that rounds down, because positions may be negative.
  __device__ __forceinline__ int floor_div(int x, int by) const {
    const int quotient = x / by;
    return quotient - (quotient * by > x);
  }

  __device__ __forceinline__ bool dilated(int slot, int q, int k) const {
    return (q - k) % number(slot) == 0;
  }

  // The distance i - j of the blocks that hold query q and key k.
  __device__ __forceinline__ int block_distance(int block, int q, int k) const {
    return floor_div(q, block) - floor_div(k, block);
  }
  __device__ __forceinline__ bool within(int distance, int most) const {
    return (distance <= most) & (-distance <= most);
  }

  __device__ __forceinline__ bool band(int stride_slot, int block_slot, int q, int k) const {
    return block_distance(number(block_slot), q, k) % number(stride_slot) == 0;
  }
  __device__ __forceinline__ bool level(int stride_slot, int window_slot, int block_slot, int q,
                                        int k) const {
    const int distance = block_distance(number(block_slot), q, k);
    return (distance % number(stride_slot) == 0) & within(distance, number(window_slot));
  }
  __device__ __forceinline__ bool strided(int stride_slot, int near_slot, int block_slot, int q,
                                          int k) const {
    const int block = number(block_slot);
    return (floor_div(k, block) % number(stride_slot) == 0) |
           within(block_distance(block, q, k), number(near_slot));
  }

  // The list holds `count` ascending block columns for each head and row of blocks. Rows outside it
  // see nothing.
  __device__ __forceinline__ bool random(int offset_slot, int count_slot, int block_slot,
                                         int first_slot, int rows_slot, int q, int k) const {
    const int block = number(block_slot);
    const int count = number(count_slot);
    const int rows = number(rows_slot);
    const int row = floor_div(q, block) - number(first_slot);
    const bool inside = (row >= 0) & (row < rows);
    const int* chosen =
        params.lists + number(offset_slot) + (head * rows + (inside ? row : 0)) * count;
    return inside && listed(chosen, count, floor_div(k, block));
  }

  // LongNet: both positions are in one segment, and their offsets in it are congruent to the head
  // modulo the rate.
  __device__ __forceinline__ bool segment(int width_slot, int rate_slot, int q, int k) const {
    const int width = number(width_slot);
    const int rate = number(rate_slot);
    const int wanted = head % rate;
    const int i = floor_div(q, width);
    const int j = floor_div(k, width);
    return (i == j) & ((q - i * width) % rate == wanted) & ((k - j * width) % rate == wanted);
  }

  // axial and natten number the cells of a grid row by row.
  __device__ __forceinline__ bool in_grid(int position, int height, int width) const {
    return (position >= 0) & (position / width < height);
  }
  __device__ __forceinline__ bool axial(int height_slot, int width_slot, int q, int k) const {
    const int height = number(height_slot);
    const int width = number(width_slot);
    return in_grid(q, height, width) & in_grid(k, height, width) &
           ((q / width == k / width) | (q % width == k % width));
  }
  // Whether `other` is at most `reach` from `at`. Near an end of the axis the centre of the
  // neighbourhood is moved inwards, so there are always 2 reach + 1 cells.
  __device__ __forceinline__ bool near(int at, int other, int length, int reach) const {
    const int last = length - 1 - reach;
    const int centre = at < reach ? reach : at > last ? last : at;
    return within(centre - other, reach);
  }
  __device__ __forceinline__ bool natten(int height_slot, int width_slot, int reach_slot, int q,
                                         int k) const {
    const int height = number(height_slot);
    const int width = number(width_slot);
    const int reach = number(reach_slot);
    return in_grid(q, height, width) & in_grid(k, height, width) &
           near(q / width, k / width, height, reach) & near(q % width, k % width, width, reach);
  }

  __device__ __forceinline__ bool vertical_slash(int columns_slot, int column_count_slot,
                                                 int slashes_slot, int slash_count_slot, int q,
                                                 int k) const {
    return listed(params.lists + number(columns_slot), number(column_count_slot), k) |
           listed(params.lists + number(slashes_slot), number(slash_count_slot), q - k);
  }

  __device__ __forceinline__ bool queries(int begin_slot, int end_slot, int q, int) const {
    return (q >= number(begin_slot)) & (q < number(end_slot));
  }
  __device__ __forceinline__ bool keys(int begin_slot, int end_slot, int, int k) const {
    return (k >= number(begin_slot)) & (k < number(end_slot));
  }
  __device__ __forceinline__ bool every(int stride_slot, int remainder_slot, int, int k) const {
    const int stride = number(stride_slot);
    return k - floor_div(k, stride) * stride == number(remainder_slot);
  }

  // The number of the pattern that the head uses, out of `count` patterns. They take turns, head by
  // head or in groups of heads.
  __device__ __forceinline__ int turn(int count) const { return head % count; }
  __device__ __forceinline__ int group(int heads_slot, int count) const {
    return head / number(heads_slot) % count;
  }
  // The number of the pattern that the batch uses, out of `count` patterns; `batch` is the number
  // in the whole problem.
  __device__ __forceinline__ int batch_turn(int count) const { return batch % count; }

  // The bit of the pair's granule in the tile's mask words (TileListParams::mask_words).
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
