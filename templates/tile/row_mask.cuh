#ifndef ANNULUS_TILE_ROW_MASK_CUH_
#define ANNULUS_TILE_ROW_MASK_CUH_

// A mask expression for all columns of a row that a lane owns, one bit for each. The text for
// single elements (tile/mask.cuh) is evaluated with RowMask as m and Column as k.
//
// A leaf that compares positions computes all bits of a row by arithmetic. A leaf that searches,
// divides or looks bits up has its own loop over the columns, so registers hold the operands of one
// leaf at a time: one loop around the whole expression would hold the divisors and lists of all
// leaves at once, and spill.

#include "ptx/opaque.cuh"
#include "tile/key_positions.cuh"
#include "tile/mask.cuh"
#include "tile/mask_program.cuh"

namespace annulus::tile {

// Bit i is set if the row's query sees the i-th of the lane's columns.
struct RowBits {
  unsigned word;
  RowBits() = default;
  __device__ __forceinline__ RowBits(unsigned bits) : word(bits) {}
  __device__ __forceinline__ RowBits(bool all) : word(all ? 0xffffffffu : 0u) {}
  __device__ __forceinline__ RowBits operator!() const { return ~word; }
  __device__ __forceinline__ RowBits operator&(RowBits other) const { return word & other.word; }
  __device__ __forceinline__ RowBits operator|(RowBits other) const { return word | other.word; }
};

// The position of the key that the loop of a leaf has reached. Leaves take it as an int.
struct Column {
  int position = 0;
  __device__ __forceinline__ operator int() const { return position; }
};

// The lane's columns are 8 i and 8 i + 1 for i = 0, 1, ...: returns the bits of the columns up to
// `last`, or no bits if it is negative. There are two columns for each whole piece of 8 columns up
// to `last`, and then one or two.
__device__ __forceinline__ RowBits columns_up_to(int last) {
  const int neighbour = (last & 7) > 0;
  const int count = (last >> 3) * 2 + 1 + neighbour;
  return last < 0 ? 0u : count >= 32 ? 0xffffffffu : (1u << count) - 1;
}

// RowMask for expressions in which every leaf compares positions (Mask::kInLoop is false): the
// columns from a position on, or up to a position, become bits without a loop. The lane's columns
// are 8 i and its right neighbour, for i = 0, 1, ...; `Positions` has their positions
// (tile/key_positions.cuh).
template <int kTileColumns, typename Positions = FollowingKeys>
class ComparedRow {
 public:
  __device__ __forceinline__ ComparedRow(const MaskContext<kTileColumns>& context,
                                         const Positions& positions)
      : context_(context), positions_(positions) {}

  template <typename K>
  __device__ __forceinline__ RowBits causal(int q, K) const {
    return up_to(q);
  }
  template <typename K>
  __device__ __forceinline__ RowBits window(int left_slot, int right_slot, int q, K k) const {
    return window_left(left_slot, q, k) & window_right(right_slot, q, k);
  }
  template <typename K>
  __device__ __forceinline__ RowBits window_left(int slot, int q, K) const {
    return !up_to(q - context_.number(slot) - 1);
  }
  template <typename K>
  __device__ __forceinline__ RowBits window_right(int slot, int q, K) const {
    return up_to(q + context_.number(slot));
  }
  template <typename K>
  __device__ __forceinline__ RowBits sink(int slot, int, K) const {
    return up_to(context_.number(slot) - 1);
  }
  template <typename K>
  __device__ __forceinline__ RowBits global_first(int slot, int q, K) const {
    return RowBits(q < context_.number(slot)) | up_to(context_.number(slot) - 1);
  }
  template <typename K>
  __device__ __forceinline__ RowBits queries(int begin_slot, int end_slot, int q, K) const {
    return RowBits(q >= context_.number(begin_slot)) & RowBits(q < context_.number(end_slot));
  }
  template <typename K>
  __device__ __forceinline__ RowBits keys(int begin_slot, int end_slot, int, K) const {
    return up_to(context_.number(end_slot) - 1) & !up_to(context_.number(begin_slot) - 1);
  }
  // A query sees the keys from the start of its document up to the start of the next one.
  template <typename K>
  __device__ __forceinline__ RowBits documents(int offset_slot, int length_slot, int q, K) const {
    const int* starts = context_.params.lists + context_.number(offset_slot);
    const int length = context_.number(length_slot);
    const int count = context_.count_up_to(starts, length, q);
    RowBits seen(true);
    if (count < length) seen = up_to(starts[count] - 1);
    if (count > 0) seen = seen & !up_to(starts[count - 1] - 1);
    return seen;
  }

  // The columns at listed positions, and at listed distances before the query.
  template <typename K>
  __device__ __forceinline__ RowBits global_listed(int offset_slot, int length_slot, int q,
                                                   K) const {
    const int* list = context_.params.lists + context_.number(offset_slot);
    const int length = context_.number(length_slot);
    return RowBits(context_.listed(list, length, q)) | at_listed<1>(list, length, 0);
  }
  template <typename K>
  __device__ __forceinline__ RowBits vertical_slash(int columns_slot, int column_count_slot,
                                                    int slashes_slot, int slash_count_slot, int q,
                                                    K) const {
    const int* lists = context_.params.lists;
    return at_listed<1>(lists + context_.number(columns_slot), context_.number(column_count_slot),
                        0) |
           at_listed<-1>(lists + context_.number(slashes_slot), context_.number(slash_count_slot),
                         q);
  }

  __device__ __forceinline__ int turn(int count) const { return context_.turn(count); }
  __device__ __forceinline__ int group(int heads_slot, int count) const {
    return context_.group(heads_slot, count);
  }
  __device__ __forceinline__ int batch_turn(int count) const { return context_.batch_turn(count); }

  template <typename Text>
  __device__ __forceinline__ RowBits one_of(int table_slot, int width, int row,
                                            const Text& text) const {
    const MaskContext<kTileColumns> there = context_.at_row(table_slot, width, row);
    return text(ComparedRow(there, positions_));
  }
  template <typename Text>
  __device__ __forceinline__ RowBits all_of(int table_slot, int width, int count_slot,
                                            const Text& text) const {
    return all_rows<RowBits>(*this, table_slot, width, context_.number(count_slot), text);
  }
  template <typename Text>
  __device__ __forceinline__ RowBits any_of(int table_slot, int width, int count_slot,
                                            const Text& text) const {
    return any_row<RowBits>(*this, table_slot, width, context_.number(count_slot), text);
  }

 private:
  // The columns at positions <= last.
  __device__ __forceinline__ RowBits up_to(int last) const {
    return columns_up_to(positions_.last_up_to(last));
  }

  // The columns at the positions `from` + kSign x, for each entry x of an ascending list. One
  // search finds the first entry among the row's positions, and the others follow it.
  template <int kSign>
  __device__ __forceinline__ RowBits at_listed(const int* list, int length, int from) const {
    constexpr int kColumns = kTileColumns < 128 ? kTileColumns : 128;  // columns of a word
    const int left = kSign * (positions_.at(0) - from);
    const int right = kSign * (positions_.at(kColumns - 1) - from);
    const int least = kSign > 0 ? left : right, most = kSign > 0 ? right : left;
    unsigned word = 0;
#pragma unroll 1
    for (int i = context_.count_up_to(list, length, least - 1); i < length; ++i) {
      if (list[i] > most) break;
      const int position = from + kSign * list[i];
      const int column = positions_.last_up_to(position);
      const bool is_owned = ((column & 6) == 0) & (positions_.at(column) == position);
      word |= is_owned ? 1u << (column >> 3) * 2 + (column & 1) : 0u;
    }
    return word;
  }

  const MaskContext<kTileColumns>& context_;
  const Positions positions_;
};

// The columns of a row at positions that can be compared (tile/key_positions.cuh).
template <typename Positions>
struct PositionedColumns {
  Positions positions;

  template <typename Context>
  __device__ __forceinline__ int operator()(int bit, Context&) const {
    return positions.at(bit / 2 * 8 + bit % 2);
  }
};

// How leaves that compare positions are evaluated: by ComparedRow if a place has positions, else
// column by column.
template <typename Place, typename = void>
struct Comparing {
  enum : bool { kCan = false };
};
template <typename Place>
struct Comparing<Place, Void<decltype(Place::positions)>> {
  enum : bool { kCan = true };
};

// `Place` maps bits to columns: place(bit, context) returns the position of the bit's column, and
// sets the fields of the context for that column (tile_k, if positions are read from memory).
template <int kTileColumns, int kBits, typename Place>
class RowMask {
 public:
  __device__ __forceinline__ RowMask(MaskContext<kTileColumns>& context, const Place& place,
                                     Column& column)
      : context_(context), place_(place), column_(column) {}

#define ANNULUS_ROW_LEAF(leaf)                                                   \
  template <typename... Arguments>                                               \
  __device__ __forceinline__ RowBits leaf(const Arguments&... arguments) const { \
    return each([&] { return context_.leaf(arguments...); });                    \
  }
#define ANNULUS_COMPARED_LEAF(leaf, numbers)                                     \
  template <typename... Arguments>                                               \
  __device__ __forceinline__ RowBits leaf(const Arguments&... arguments) const { \
    if constexpr (Comparing<Place>::kCan) {                                      \
      return ComparedRow(context_, place_.positions).leaf(arguments...);         \
    } else {                                                                     \
      return each([&] { return context_.leaf(arguments...); });                  \
    }                                                                            \
  }
#define ANNULUS_SEARCHED_LEAF(leaf, numbers) ANNULUS_ROW_LEAF(leaf)
#include "params/mask_leaves_params.h"
#undef ANNULUS_COMPARED_LEAF
#undef ANNULUS_SEARCHED_LEAF
#undef ANNULUS_ROW_LEAF

  __device__ __forceinline__ int turn(int count) const { return context_.turn(count); }
  __device__ __forceinline__ int group(int heads_slot, int count) const {
    return context_.group(heads_slot, count);
  }
  __device__ __forceinline__ int batch_turn(int count) const { return context_.batch_turn(count); }

  template <typename Text>
  __device__ __forceinline__ RowBits one_of(int table_slot, int width, int row,
                                            const Text& text) const {
    MaskContext<kTileColumns> there = context_.at_row(table_slot, width, row);
    return text(RowMask(there, place_, column_));
  }
  template <typename Text>
  __device__ __forceinline__ RowBits all_of(int table_slot, int width, int count_slot,
                                            const Text& text) const {
    return all_rows<RowBits>(*this, table_slot, width, context_.number(count_slot), text);
  }
  template <typename Text>
  __device__ __forceinline__ RowBits any_of(int table_slot, int width, int count_slot,
                                            const Text& text) const {
    return any_row<RowBits>(*this, table_slot, width, context_.number(count_slot), text);
  }

  // The result of a leaf that searches, whose number in programs is `op`. All such leaves share one
  // loop, so a kernel has its code once.
  __device__ __forceinline__ RowBits searched(MaskOp op, int q) const {
    return each([&] {
      const int k = column_.position;
      switch (op) {
#define ANNULUS_COMPARED_LEAF(name, numbers)
#define ANNULUS_SEARCHED_LEAF(name, numbers) \
  case MaskOp::name:                         \
    return context_.name(ANNULUS_SLOTS_##numbers q, k);
#include "params/mask_leaves_params.h"
#undef ANNULUS_COMPARED_LEAF
#undef ANNULUS_SEARCHED_LEAF
        default:
          return false;
      }
    });
  }

 private:
  // The loop of one leaf. It sets column_, which the leaf got as its k.
  template <typename Leaf>
  __device__ __forceinline__ RowBits each(const Leaf& leaf) const {
    unsigned word = 0;
#pragma unroll 1
    for (int bit = 0; bit < kBits; ++bit) {
      column_.position = place_(bit, context_);
      word |= (leaf() ? 1u : 0u) << bit;
    }
    return word;
  }

  MaskContext<kTileColumns>& context_;
  const Place& place_;
  Column& column_;
};

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_ROW_MASK_CUH_
