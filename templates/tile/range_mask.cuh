#ifndef ANNULUS_TILE_RANGE_MASK_CUH_
#define ANNULUS_TILE_RANGE_MASK_CUH_

// A mask expression over whole blocks: whether the pairs of a range of queries and a range of keys
// can be visible, and whether they can be hidden. The text for single elements (tile/mask.cuh) is
// evaluated with RangeMask as m. If the result is that both are possible, it is not certain: a leaf
// that cannot decide returns both, and a combination of mixed leaves may also give both. Then
// classify_blocks evaluates pair by pair. If only one is possible, the result is exact.

#include "tile/mask.cuh"

namespace annulus::tile {

// The possible states of the pairs of a block: visible, hidden, or both. & and | combine the
// results of leaves as if the pairs of the leaves were independent, so "both" may be wrong, but a
// single possibility is certain.
struct Possible {
  bool visible;
  bool hidden;
  __device__ __forceinline__ Possible(bool v, bool h) : visible(v), hidden(h) {}
  __device__ __forceinline__ Possible(bool all) : visible(all), hidden(!all) {}
  __device__ __forceinline__ Possible operator!() const { return {hidden, visible}; }
  __device__ __forceinline__ Possible operator&(Possible other) const {
    return {visible && other.visible, hidden || other.hidden};
  }
  __device__ __forceinline__ Possible operator|(Possible other) const {
    return {visible || other.visible, hidden && other.hidden};
  }
};

// The positions [first, last].
struct Range {
  int first, last;
};

// The result for every leaf that RangeMask does not define: nothing is certain.
struct UnknownLeaves {
#define ANNULUS_COMPARED_LEAF(leaf, slots)                              \
  template <typename... Arguments>                                      \
  __device__ __forceinline__ Possible leaf(const Arguments&...) const { \
    return {true, true};                                                \
  }
#define ANNULUS_SEARCHED_LEAF(leaf, slots) ANNULUS_COMPARED_LEAF(leaf, slots)
#include "params/mask_leaves_params.h"
#undef ANNULUS_COMPARED_LEAF
#undef ANNULUS_SEARCHED_LEAF
};

class RangeMask : public UnknownLeaves {
 public:
  __device__ __forceinline__ RangeMask(const MaskContext<32>& context, Range q, Range k)
      : context_(context), q_(q), k_(k) {}

  __device__ __forceinline__ Possible causal(int, int) const {
    return {k_.first <= q_.last, k_.last > q_.first};
  }
  __device__ __forceinline__ Possible window(int left_slot, int right_slot, int, int) const {
    return right_of(-context_.number(left_slot)) & left_of(context_.number(right_slot));
  }
  __device__ __forceinline__ Possible window_left(int slot, int, int) const {
    return right_of(-context_.number(slot));
  }
  __device__ __forceinline__ Possible window_right(int slot, int, int) const {
    return left_of(context_.number(slot));
  }
  __device__ __forceinline__ Possible sink(int slot, int, int) const {
    return below(k_, context_.number(slot));
  }
  __device__ __forceinline__ Possible global_first(int slot, int, int) const {
    return below(q_, context_.number(slot)) | below(k_, context_.number(slot));
  }

  // Leaves that depend only on blocks of positions. They are exact if each range lies in one of
  // their blocks, because then all pairs are like one pair.
  __device__ __forceinline__ Possible band(int stride_slot, int block_slot, int, int) const {
    if (!whole(context_.number(block_slot))) return unknown();
    return context_.band(stride_slot, block_slot, q_.first, k_.first);
  }
  __device__ __forceinline__ Possible level(int stride_slot, int window_slot, int block_slot, int,
                                            int) const {
    if (!whole(context_.number(block_slot))) return unknown();
    return context_.level(stride_slot, window_slot, block_slot, q_.first, k_.first);
  }
  __device__ __forceinline__ Possible strided(int stride_slot, int near_slot, int block_slot, int,
                                              int) const {
    if (!whole(context_.number(block_slot))) return unknown();
    return context_.strided(stride_slot, near_slot, block_slot, q_.first, k_.first);
  }
  __device__ __forceinline__ Possible random(int offset_slot, int count_slot, int block_slot,
                                             int first_slot, int rows_slot, int, int) const {
    if (!whole(context_.number(block_slot))) return unknown();
    return context_.random(offset_slot, count_slot, block_slot, first_slot, rows_slot, q_.first,
                           k_.first);
  }

  // Document numbers ascend with positions, so the documents at the ends of a range bound the
  // documents in between.
  __device__ __forceinline__ Possible documents(int offset_slot, int length_slot, int, int) const {
    const int* starts = context_.params.lists + context_.number(offset_slot);
    const int length = context_.number(length_slot);
    const Range q = {context_.count_up_to(starts, length, q_.first),
                     context_.count_up_to(starts, length, q_.last)};
    const Range k = {context_.count_up_to(starts, length, k_.first),
                     context_.count_up_to(starts, length, k_.last)};
    return {q.first <= k.last && k.first <= q.last,
            !(q.first == q.last && k.first == k.last && q.first == k.first)};
  }

  __device__ __forceinline__ Possible queries(int begin_slot, int end_slot, int, int) const {
    return below(q_, context_.number(end_slot)) & !below(q_, context_.number(begin_slot));
  }
  __device__ __forceinline__ Possible keys(int begin_slot, int end_slot, int, int) const {
    return below(k_, context_.number(end_slot)) & !below(k_, context_.number(begin_slot));
  }
  // `next` is the first key from k_.first on that the leaf shows. Some key is hidden unless every
  // key is shown (stride 1) or the range is a single shown key.
  __device__ __forceinline__ Possible every(int stride_slot, int remainder_slot, int, int) const {
    const int stride = context_.number(stride_slot);
    const int behind = k_.first - context_.number(remainder_slot);
    const int rest = behind - context_.floor_div(behind, stride) * stride;
    const int next = rest == 0 ? k_.first : k_.first + (stride - rest);
    return {next <= k_.last, stride > 1 && !(rest == 0 && k_.first == k_.last)};
  }

  // The blocks of a layout are not ranges: patterns with blocks() are classified on the host.
  __device__ Possible blocks(int, int) const = delete;

  __device__ __forceinline__ int turn(int count) const { return context_.turn(count); }
  __device__ __forceinline__ int group(int heads_slot, int count) const {
    return context_.group(heads_slot, count);
  }
  __device__ __forceinline__ int batch_turn(int count) const { return context_.batch_turn(count); }

  template <typename Text>
  __device__ __forceinline__ Possible one_of(int table_slot, int width, int row,
                                             const Text& text) const {
    const MaskContext<32> there = context_.at_row(table_slot, width, row);
    return text(RangeMask(there, q_, k_));
  }
  template <typename Text>
  __device__ __forceinline__ Possible all_of(int table_slot, int width, int count_slot,
                                             const Text& text) const {
    return all_rows<Possible>(*this, table_slot, width, context_.number(count_slot), text);
  }
  template <typename Text>
  __device__ __forceinline__ Possible any_of(int table_slot, int width, int count_slot,
                                             const Text& text) const {
    return any_row<Possible>(*this, table_slot, width, context_.number(count_slot), text);
  }

 private:
  __device__ __forceinline__ static Possible unknown() { return {true, true}; }
  __device__ __forceinline__ static Possible below(const Range& range, int n) {
    return {range.first < n, range.last >= n};
  }
  // The leaves k - q >= d, and k - q <= d.
  __device__ __forceinline__ Possible right_of(int d) const {
    return {k_.last - q_.first >= d, k_.first - q_.last < d};
  }
  __device__ __forceinline__ Possible left_of(int d) const {
    return {k_.first - q_.last <= d, k_.last - q_.first > d};
  }
  __device__ __forceinline__ bool whole(int block) const {
    return context_.floor_div(q_.first, block) == context_.floor_div(q_.last, block) &&
           context_.floor_div(k_.first, block) == context_.floor_div(k_.last, block);
  }

  const MaskContext<32>& context_;
  Range q_, k_;
};

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_RANGE_MASK_CUH_
