#ifndef ANNULUS_TILE_KEY_WINDOW_CUH_
#define ANNULUS_TILE_KEY_WINDOW_CUH_

// Finds the addresses of the keys of a request in its pages. The lanes of a warp look up the pages
// of several steps at a time, one step before the first of these steps is copied, because the
// address of a copy depends on them. Shuffles pass the results of a lane to the other lanes.
//
// A key "is there" if some query of the tile sees it and its page is valid. Neither the rows nor
// the page numbers of other keys are read.

#include "params/batch_params.h"
#include "ptx/memory.cuh"
#include "tile/element.cuh"
#include "tile/key_rows.cuh"
#include "tile/part_tiles.cuh"

namespace annulus::tile {

using kernels::Pages;

// The start of K and V for a request and a column's head of keys: row 0 of page 0, or of the
// request.
struct HeadRows {
  const char* k;
  const char* v;
};
template <Pages kPages>
__device__ __forceinline__ HeadRows head_rows(const kernels::BatchParams& params,
                                              const kernels::KeyPlaces& places, int request,
                                              int column) {
  const long long head = column / params.head_tiles;
  const auto first = [&](const void* data, const int* begin, long long slab, long long row,
                         long long of_head) {
    long long elements = head * of_head;
    if constexpr (kPages == Pages::kNone) {
      elements += begin != nullptr ? begin[request] * row : request * slab;
    }
    return static_cast<const char*>(data) + elements * kElementBytes;
  };
  return {first(params.k, places.k_begin, params.k_page, params.k_row, params.k_head),
          first(params.v, places.v_begin, params.v_page, params.v_row, params.v_head)};
}

// Keys of a unit: in a step of kKeys keys, the number of keys that are known to follow one another
// in memory.
template <int kKeys, Pages kPages, bool kListed>
struct KeyUnits {
  enum : int {
    kMost = kListed ? static_cast<int>(kernels::kBlockGrain) : kKeys,
    kUnit = kPages == Pages::kNone || static_cast<int>(kPages) > kMost ? kMost
                                                                       : static_cast<int>(kPages),
    kUnits = kKeys / kUnit,
    kLooks = (kUnits + 31) / 32,  // units of a step that a lane looks up
  };
};

// Computes the places of the keys, step after step. A step has kKeys keys: the keys of a warp, or
// of all warps of a CTA. key_of(step, i) returns the key at place i of a step, for the first key of
// a unit; it is negative if there is no key.
template <int kKeys, int kRuns, Pages kPages, bool kListed, typename KeyOf>
class KeyWindow {
  using Units = KeyUnits<kKeys, kPages, kListed>;
  enum : int {
    kUnit = Units::kUnit,
    kUnits = Units::kUnits,
    kLooks = Units::kLooks,
  };
  enum : unsigned { kStepUnits = kUnits >= 32 ? 0xffffffffu : (1u << kUnits % 32) - 1 };
  static_assert(kKeys % kUnit == 0 && (kUnits < 32 ? 32 % kUnits : kUnits % 32) == 0,
                "lanes share the units of a step evenly");

 public:
  // For steps 0 to `steps` - 1. All lanes of a warp call this and the functions below.
  __device__ __forceinline__ KeyWindow(const kernels::BatchParams& params,
                                       const kernels::KeyPlaces& places,
                                       const kernels::BatchRow& row, const KeyOf& key_of, int steps,
                                       unsigned lane)
      : params_(params), row_(row), key_of_(key_of), steps_(steps), lane_(static_cast<int>(lane)) {
    if constexpr (kPages != Pages::kNone) {
      const auto pages = [&](const kernels::PageTableParams& table) {
        return table.ids +
               (table.begin != nullptr ? table.begin[row.request] : row.request * table.width);
      };
      k_pages_ = pages(places.k_pages);
      v_pages_ = pages(places.v_pages);
    }
    look_up();
  }

  // Prepares the step whose copies are started next.
  __device__ __forceinline__ void begin_step() {
    if (unit_ == 0) settle();
  }
  // Moves to the next step. At the end of the window it starts looking up further steps, whose
  // results are needed at begin_step().
  __device__ __forceinline__ void end_step() {
    ++step_;
    unit_ = (unit_ + kUnits) % 32u;
    if (unit_ == 0) look_up();
  }

  // Whether any key of the step is there.
  __device__ __forceinline__ bool any() const {
    unsigned some = 0;
#pragma unroll
    for (int i = 0; i < kLooks; ++i) some |= some_[i] >> unit_ & kStepUnits;
    return some != 0;
  }
  // The keys of the step. Requires: any().
  __device__ __forceinline__ StepKeys<kKeys> keys() const {
    return {there(), kListed ? group_keys() : key_of_(step_, 0)};
  }

  // Bytes from the start of the request, or of the pages, to the rows of unit 32 * look + unit of
  // the step. The number has no meaning if none of the unit's keys is there.
  __device__ __forceinline__ long long k_offset(int look, int unit) const {
    if constexpr (kPages == Pages::kNone && !kListed) {
      return static_cast<long long>(key_of_(step_, 0)) * k_row_bytes();
    } else {
      return __shfl_sync(0xffffffffu, k_[look], static_cast<int>(unit_) + unit);
    }
  }
  __device__ __forceinline__ long long v_offset(int look, int unit) const {
    if constexpr (kPages == Pages::kNone && !kListed) {
      return static_cast<long long>(key_of_(step_, 0)) * v_row_bytes();
    } else {
      return __shfl_sync(0xffffffffu, v_[look], static_cast<int>(unit_) + unit);
    }
  }

 private:
  __device__ __forceinline__ KeysThere<kKeys> there() const {
    bool all = true;
#pragma unroll
    for (int i = 0; i < kLooks; ++i) all = all && (~whole_[i] >> unit_ & kStepUnits) == 0;
    KeysThere<kKeys> there = KeysThere<kKeys>::every();
    if (all) return there;
#pragma unroll
    for (int i = 0; i < KeysThere<kKeys>::kWords; ++i) {
      const int place = 32 * i + lane_;
      const int look = kLooks == 1 ? 0 : i;
      const unsigned at = (unit_ + static_cast<unsigned>(place / kUnit)) % 32;
      int key = place;
      if constexpr (kListed) {
        key = __shfl_sync(0xffffffffu, key_[look], static_cast<int>(at)) + place % kUnit;
      } else {
        key += key_of_(step_, 0);
      }
      const bool found =
          place < kKeys && (some_[look] >> at & 1u) != 0 && row_.runs.template sees<kRuns>(key);
      there.words[i] = __ballot_sync(0xffffffffu, found);
    }
    return there;
  }

  __device__ __forceinline__ int group_keys() const {
    constexpr int kGroups = kKeys / 16, kGroupUnits = 16 / kUnit;
    int key = 0;
#pragma unroll
    for (int i = 0; i < kLooks; ++i) {
      const int unit = lane_ % kGroups * kGroupUnits;
      const int found = __shfl_sync(0xffffffffu, key_[i], static_cast<int>(unit_) + unit % 32);
      if (unit / 32 == i) key = found;
    }
    return key;
  }

  __device__ __forceinline__ long long k_row_bytes() const { return params_.k_row * kElementBytes; }
  __device__ __forceinline__ long long v_row_bytes() const { return params_.v_row * kElementBytes; }

  // The first key of the lane's unit in a look-up, and whether the unit belongs to a step.
  struct Unit {
    int key;
    bool exists;
  };
  __device__ __forceinline__ Unit unit_of(int look) const {
    const int unit = 32 * look + lane_;
    const int step = step_ + unit / kUnits;
    const int key = key_of_(step, unit % kUnits * kUnit);
    return {key, step < steps_ && key >= 0};
  }
  // Starts reading the page numbers of the steps from step_ on.
  __device__ __forceinline__ void look_up() {
#pragma unroll
    for (int i = 0; i < (kPages == Pages::kNone ? 0 : kLooks); ++i) {
      const Unit unit = unit_of(i);
      k_page_[i] = v_page_[i] = 0;
      if (!unit.exists || !row_.runs.template sees_some<kRuns>(unit.key, unit.key + kUnit)) {
        continue;
      }
      const int entry = kernels::page_of(params_, unit.key);
      k_page_[i] = k_pages_[entry];
      v_page_[i] = v_pages_ == k_pages_ ? k_page_[i] : v_pages_[entry];
    }
  }
  // Stores the results that look_up() has read.
  __device__ __forceinline__ void settle() {
#pragma unroll
    for (int i = 0; i < kLooks; ++i) {
      const Unit unit = unit_of(i);
      const int end = unit.key + kUnit;
      if constexpr (kListed) key_[i] = unit.key;
      bool some = unit.exists && row_.runs.template sees_some<kRuns>(unit.key, end);
      if constexpr (kPages != Pages::kNone) {
        const auto is_page = [](int page, int count) {
          return static_cast<unsigned>(page) < static_cast<unsigned>(count);
        };
        const bool are_pages =
            is_page(k_page_[i], params_.k_page_count) && is_page(v_page_[i], params_.v_page_count);
        if (some && !are_pages) {
          ptx::reduce_min(&params_.tables.header->status.first,
                          kernels::status_of(row_.request, kernels::kNoSuchPage));
        }
        some = some && are_pages;
        const int row = unit.key - kernels::page_of(params_, unit.key) * params_.page_rows;
        k_[i] = v_[i] = 0;
        if (some) {
          k_[i] = k_page_[i] * (params_.k_page * kElementBytes) + row * k_row_bytes();
          v_[i] = v_page_[i] * (params_.v_page * kElementBytes) + row * v_row_bytes();
        }
      } else if constexpr (kListed) {
        k_[i] = some ? unit.key * k_row_bytes() : 0;
        v_[i] = some ? unit.key * v_row_bytes() : 0;
      }
      some_[i] = __ballot_sync(0xffffffffu, some);
      whole_[i] =
          __ballot_sync(0xffffffffu, some && row_.runs.template covers<kRuns>(unit.key, end));
    }
  }

  const kernels::BatchParams& params_;
  const kernels::BatchRow& row_;
  const KeyOf key_of_;
  const int* k_pages_ = nullptr;
  const int* v_pages_ = nullptr;
  int steps_;
  int lane_;
  int step_ = 0;
  unsigned unit_ = 0;  // the lane with the step's first unit
  int k_page_[kLooks];
  int v_page_[kLooks];
  long long k_[kLooks];
  long long v_[kLooks];
  int key_[kLooks];  // the first key of the lane's unit, with lists
  // One bit for the unit of each lane: whether some of its keys are there, and whether all are.
  unsigned some_[kLooks];
  unsigned whole_[kLooks];
};

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_KEY_WINDOW_CUH_
