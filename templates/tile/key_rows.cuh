#ifndef ANNULUS_TILE_KEY_ROWS_CUH_
#define ANNULUS_TILE_KEY_ROWS_CUH_

// Copies keys of a request, wherever their rows lie, by a warp of its own: kKeys neighbouring keys
// at a time, in swizzled shared memory. The page of each key is looked up by the lane of its number
// some steps before the copy, because the address of a copy depends on it.
//
// A key is copied only if it is there: if some query of the tile sees it and its page is one. Rows
// of others are zeros in shared memory, and neither they nor their pages are read.

#include "params/batch_params.h"
#include "ptx/async_copy.cuh"
#include "ptx/memory.cuh"
#include "tile/swizzle.cuh"

namespace annulus::tile {

using kernels::Pages;

// What the lane of a key knows of it: lane i of key `first` + i mod kKeys.
struct KeyPlace {
  int first;  // the same in all lanes
  int k_page;
  int v_page;
  int row;  // in its page, or of the request
  bool there;
};

// Rows of K or of V. kKeys rows of kDim elements are one buffer.
template <int kDim, int kKeys, Pages kPages>
class KeyRows {
  using Layout = Swizzle<kDim>;
  enum : int {
    kRowsPerPass = 32 / Layout::kPhases,
    kPasses = kKeys / kRowsPerPass,
    kGroups = Layout::kChunks / Layout::kPhases,
  };

 public:
  // `data` is where row 0 of page 0, or of the request, begins for the head at hand. Strides count
  // elements; that of rows is below 2^30.
  __device__ __forceinline__ KeyRows(const void* data, long long page, long long row, unsigned lane)
      : data_(static_cast<const char*>(data) + lane % Layout::kPhases * 16),
        page_bytes_(page * kElementBytes),
        row_bytes_(static_cast<int>(row) * kElementBytes),
        lane_row_(lane / Layout::kPhases),
        slot_(Layout::offset(lane / Layout::kPhases, lane % Layout::kPhases)) {}

  // Starts the copy of the keys whose bits `there` has. `page` and `row` are those of the lane's
  // key; `shared` is the buffer. Requires: there != 0.
  __device__ __forceinline__ void start(unsigned shared, int page, int row, unsigned there) const {
    // The first key that is there. Copies of keys that are not there read nothing, and name its
    // address, which is one.
    const int known = __ffs(static_cast<int>(there)) - 1;
    const auto address_of = [&](int key) {
      const char* at = data_;
      if constexpr (kPages != Pages::kNone) {
        at += __shfl_sync(0xffffffffu, page, key) * page_bytes_;
      }
      return ptx::advanced(at, __shfl_sync(0xffffffffu, row, key), row_bytes_);
    };
    // The rows of so many keys follow one another in memory, from that of one of them on.
    constexpr int kTogether = kPages == Pages::kNone ? kKeys : 16;
    int origins[kKeys / kTogether];
    const char* sources[kKeys / kTogether];
    if constexpr (kPages != Pages::kAny) {
#pragma unroll
      for (int i = 0; i < kKeys / kTogether; ++i) {
        const unsigned mine = kTogether == 32 ? there : there >> (16 * i) & 0xffffu;
        origins[i] = mine != 0 ? 16 * i + __ffs(static_cast<int>(mine)) - 1 : known;
        sources[i] = address_of(origins[i]);
      }
    }
    const auto copy_pass = [&](int pass, bool exists) {
      const int key = pass * kRowsPerPass + lane_row_;
      const char* from;
      if constexpr (kPages == Pages::kAny) {
        from = address_of(exists ? key : known);
      } else {
        // The passes of a loop that is not unrolled choose by selection, as registers have no
        // index.
        int origin = origins[0];
        from = sources[0];
#pragma unroll
        for (int i = 1; i < kKeys / kTogether; ++i) {
          const bool behind = pass * kRowsPerPass >= i * kTogether;
          origin = behind ? origins[i] : origin;
          from = behind ? sources[i] : from;
        }
        from = ptx::advanced(from, exists ? key - origin : 0, row_bytes_);
      }
      // The lane's row is below kRowsPerPass, a power of two, so that the pass changes other bits
      // of the row, and its phase can be added by an exclusive or.
      const unsigned to = (shared + slot_ + pass * kRowsPerPass * Layout::kPitch) ^
                          (Layout::phase(pass * kRowsPerPass) << 4);
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        constexpr int kGroupBytes = Layout::kPhases * 16;
        ptx::copy_async_16(to + group * kGroupBytes, from + group * kGroupBytes, exists ? 16 : 0);
      }
    };
    // Nearly always all are there.
    constexpr unsigned kAll = kKeys == 32 ? 0xffffffffu : (1u << kKeys) - 1;
    if (there == kAll) {
#pragma unroll
      for (int pass = 0; pass < kPasses; ++pass) copy_pass(pass, true);
    } else {
#pragma unroll 1
      for (int pass = 0; pass < kPasses; ++pass) {
        copy_pass(pass, there >> (pass * kRowsPerPass + lane_row_) & 1u);
      }
    }
  }

 private:
  const char* data_;
  long long page_bytes_;
  int row_bytes_;
  int lane_row_;
  unsigned slot_;
};

// Looks up where the keys of a request are.
template <int kKeys, int kRuns, Pages kPages>
class KeyFinder {
 public:
  __device__ __forceinline__ KeyFinder(const kernels::BatchParams& params,
                                       const kernels::KeyPlaces& places,
                                       const kernels::BatchRow& row, unsigned lane)
      : params_(params),
        runs_(row.runs),
        lane_key_(static_cast<int>(lane) % kKeys),
        problem_(kernels::status_of(row.request, kernels::kNoSuchPage)) {
    if constexpr (kPages != Pages::kNone) {
      const auto pages = [&](const kernels::PageTableParams& table) {
        return table.ids +
               (table.begin != nullptr ? table.begin[row.request] : row.request * table.width);
      };
      k_pages_ = pages(places.k_pages);
      v_pages_ = pages(places.v_pages);
    }
  }

  // The place of the lane's key, of kKeys keys from `first` on.
  __device__ __forceinline__ KeyPlace find(int first) const {
    const int key = first + lane_key_;
    KeyPlace place = {first, 0, 0, key, runs_.template sees<kRuns>(key)};
    if constexpr (kPages != Pages::kNone) {
      const int entry = kernels::page_of(params_, key);
      place.row = key - entry * params_.page_rows;
      if (place.there) {
        place.k_page = k_pages_[entry];
        place.v_page = v_pages_ == k_pages_ ? place.k_page : v_pages_[entry];
      }
    }
    return place;
  }

  // Bit i: whether key i is there.
  __device__ __forceinline__ unsigned there(const KeyPlace& place) const {
    bool found = place.there;
    if constexpr (kPages != Pages::kNone) {
      const auto is_page = [](int page, int count) {
        return static_cast<unsigned>(page) < static_cast<unsigned>(count);
      };
      const bool pages = is_page(place.k_page, params_.k_page_count) &&
                         is_page(place.v_page, params_.v_page_count);
      if (found && !pages) ptx::reduce_min(&params_.tables.header->status.first, problem_);
      found = found && pages;
    }
    const unsigned all = __ballot_sync(0xffffffffu, found);
    return kKeys == 32 ? all : all & ((1u << kKeys) - 1);
  }

 private:
  const kernels::BatchParams& params_;
  const kernels::KeyRuns& runs_;
  int lane_key_;
  unsigned problem_;  // the status of a request whose page is none
  const int* k_pages_ = nullptr;
  const int* v_pages_ = nullptr;
};

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_KEY_ROWS_CUH_
