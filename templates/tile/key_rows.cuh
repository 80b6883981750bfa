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

// Where K and V begin for a request and a column's head of keys: row 0 of page 0, or of the
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

// Copies kGroups pieces of 16 bytes that are kBytes apart.
template <int kBytes, int kGroups>
__device__ __forceinline__ void copy_row(unsigned to, const char* from, bool exists) {
  ptx::copy_async_16_at<(kGroups - 1) * kBytes, (kGroups - 1) * kBytes>(to, from, exists);
  if constexpr (kGroups > 1) copy_row<kBytes, kGroups - 1>(to, from, exists);
}

// What the lane of a key knows of it: lane i of key i mod kKeys of those that were asked for.
struct KeyPlace {
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
    constexpr int kTogether = kPages == Pages::k16 ? 16 : kKeys;
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
      copy_row<Layout::kPhases * 16, kGroups>(to, from, exists);
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

// Which keys of a request are there, and in which pages.
template <int kRuns, Pages kPages>
class PageFinder {
 public:
  __device__ __forceinline__ PageFinder(const kernels::BatchParams& params,
                                        const kernels::KeyPlaces& places,
                                        const kernels::BatchRow& row)
      : params_(params), runs_(row.runs), request_(row.request) {
    if constexpr (kPages != Pages::kNone) {
      const auto pages = [&](const kernels::PageTableParams& table) {
        return table.ids +
               (table.begin != nullptr ? table.begin[row.request] : row.request * table.width);
      };
      k_pages_ = pages(places.k_pages);
      v_pages_ = pages(places.v_pages);
    }
  }
  __device__ __forceinline__ bool sees(int key) const { return runs_.template sees<kRuns>(key); }
  // Whether any of the keys in [from, to) is seen.
  __device__ __forceinline__ bool sees_some(int from, int to) const {
    return runs_.template sees_some<kRuns>(from, to);
  }
  // The entry of a key, and the key's row in the page that it names.
  __device__ __forceinline__ int entry(int key) const { return kernels::page_of(params_, key); }
  __device__ __forceinline__ int row(int key, int entry) const {
    return key - entry * params_.page_rows;
  }
  __device__ __forceinline__ int k_page(int entry) const { return k_pages_[entry]; }
  __device__ __forceinline__ int v_page(int entry, int k_page) const {
    return v_pages_ == k_pages_ ? k_page : v_pages_[entry];
  }
  __device__ __forceinline__ bool are_pages(int k_page, int v_page) const {
    const auto is_page = [](int page, int count) {
      return static_cast<unsigned>(page) < static_cast<unsigned>(count);
    };
    return is_page(k_page, params_.k_page_count) && is_page(v_page, params_.v_page_count);
  }
  // Tells the caller of a page that is none.
  __device__ __forceinline__ void report() const {
    ptx::reduce_min(&params_.tables.header->status.first,
                    kernels::status_of(request_, kernels::kNoSuchPage));
  }

 private:
  const kernels::BatchParams& params_;
  const kernels::KeyRuns& runs_;
  int request_;
  const int* k_pages_ = nullptr;
  const int* v_pages_ = nullptr;
};

// Looks up where the keys of a warp are, a lane for each.
template <int kKeys, int kRuns, Pages kPages>
class KeyFinder {
 public:
  __device__ __forceinline__ KeyFinder(const PageFinder<kRuns, kPages>& pages, unsigned lane)
      : pages_(pages), lane_key_(static_cast<int>(lane) % kKeys) {}

  // The place of the lane's key, of kKeys keys from `first` on.
  __device__ __forceinline__ KeyPlace find(int first) const {
    const int key = first + lane_key_;
    KeyPlace place = {0, 0, key, pages_.sees(key)};
    if constexpr (kPages != Pages::kNone) {
      const int entry = pages_.entry(key);
      place.row = pages_.row(key, entry);
      if (place.there) {
        place.k_page = pages_.k_page(entry);
        place.v_page = pages_.v_page(entry, place.k_page);
      }
    }
    return place;
  }

  // Bit i: whether key i is there.
  __device__ __forceinline__ unsigned there(const KeyPlace& place) const {
    bool found = place.there;
    if constexpr (kPages != Pages::kNone) {
      const bool pages = pages_.are_pages(place.k_page, place.v_page);
      if (found && !pages) pages_.report();
      found = found && pages;
    }
    const unsigned all = __ballot_sync(0xffffffffu, found);
    return kKeys == 32 ? all : all & ((1u << kKeys) - 1);
  }

 private:
  const PageFinder<kRuns, kPages>& pages_;
  int lane_key_;
};

// Which keys of a tile are there: one bit for each, 32 to a word.
template <int kColumns>
struct KeysThere {
  enum : int { kWords = (kColumns + 31) / 32 };
  unsigned words[kWords];

  __device__ __forceinline__ bool all() const {
    constexpr unsigned kLast = kColumns % 32 == 0 ? 0xffffffffu : (1u << kColumns % 32) - 1;
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

// Copies tiles of kColumns keys by all threads of a CTA. Each thread has a 16-byte column of every
// chunk group and a row in every pass, as in TileCopier (tile/copy.cuh). Each warp looks the pages
// of all keys of a tile up, a turn before the copy: a lane those of some units of neighbouring keys
// that share a page. So each warp knows which keys are there.
template <int kDimQk, int kDimV, int kColumns, int kThreads, Pages kPages>
class TileRows {
  template <int kDim>
  struct Rows {
    using Layout = Swizzle<kDim>;
    enum : int {
      kRowsPerPass = kThreads / Layout::kPhases,
      kPasses = kColumns / kRowsPerPass,
      kGroups = Layout::kChunks / Layout::kPhases,
    };
    static_assert(kRowsPerPass % 8 == 0 && kColumns % kRowsPerPass == 0,
                  "the rows of a tile must be a multiple of the rows of one pass of all threads");
    static_assert(kRowsPerPass <= 32, "the keys of a pass are bits of one word");
  };
  static_assert(static_cast<int>(Rows<kDimQk>::kPasses) == static_cast<int>(Rows<kDimV>::kPasses),
                "threads copy the same rows of K and of V");
  enum : int {
    kPasses = Rows<kDimQk>::kPasses,
    kRowsPerPass = Rows<kDimQk>::kRowsPerPass,
    kPhases = Swizzle<kDimQk>::kPhases,
    kWords = KeysThere<kColumns>::kWords,
    // Keys of a unit: they are looked up together. Lane i has units i, 32 + i, ... of the tile.
    kUnit = kPages == Pages::kAny                 ? 1
            : kPages == Pages::kNone              ? kColumns
            : static_cast<int>(kPages) < kColumns ? static_cast<int>(kPages)
                                                  : kColumns,
    kUnits = kColumns / kUnit,
    kLooks = (kUnits + 31) / 32,
  };

 public:
  static_assert(kColumns % kUnit == 0 && (kUnits >= 32 || 32 % kUnits == 0),
                "lanes share the units of a tile evenly");

  // What a lane knows of its units of a tile.
  struct Places {
    int k_page[kLooks];
    int v_page[kLooks];
    int row[kLooks];  // of the unit's first key
    bool seen[kLooks];
  };

  __device__ __forceinline__ TileRows(const kernels::BatchParams& params, const HeadRows& head,
                                      unsigned thread)
      : k_(head.k + thread % kPhases * 16),
        v_(head.v + thread % kPhases * 16),
        params_(params),
        lane_(static_cast<int>(thread % 32)),
        thread_row_(static_cast<int>(thread / kPhases)),
        k_slot_(Swizzle<kDimQk>::offset(thread / kPhases, thread % kPhases)),
        v_slot_(Swizzle<kDimV>::offset(thread / kPhases, thread % kPhases)) {}

  template <typename Finder>
  __device__ __forceinline__ void find(const Finder& finder, int first, Places* places) const {
    if constexpr (kPages == Pages::kNone) return;
#pragma unroll
    for (int i = 0; i < kLooks; ++i) {
      const int unit = kUnits >= 32 ? 32 * i + lane_ : lane_ % kUnits;
      const int key = first + kUnit * unit;
      const int entry = finder.entry(key);
      places->row[i] = finder.row(key, entry);
      places->seen[i] = unit < kUnits && finder.sees_some(key, key + kUnit);
      places->k_page[i] = places->v_page[i] = 0;
      if (!places->seen[i]) continue;
      places->k_page[i] = finder.k_page(entry);
      places->v_page[i] = finder.v_page(entry, places->k_page[i]);
    }
  }

  // Starts the copies of a tile into the buffers at `keys` and `values`. Returns which are there.
  // All threads of a warp call it.
  template <typename Finder>
  __device__ __forceinline__ KeysThere<kColumns> start(const Finder& finder, int first,
                                                       const Places& places, unsigned keys,
                                                       unsigned values) const {
    const KeysThere<kColumns> there = keys_there(finder, first, places);
    const Origin whole = {k_, v_, kPages == Pages::kNone ? first : 0};
    if (there.all()) {
      const Origin tile =
          kUnits == 1 && kPages != Pages::kNone ? origin(places, 0, 0, true) : whole;
#pragma unroll
      for (int pass = 0; pass < kPasses; ++pass) {
        const int key = pass * kRowsPerPass + thread_row_;
        if constexpr (kUnits == 1) {
          copy_pass(pass, tile, key, true, keys, values);
        } else {
          copy_pass(pass, origin(places, pass, key / kUnit, true), key % kUnit, true, keys, values);
        }
      }
    } else {
#pragma unroll
      for (int pass = 0; pass < kPasses; ++pass) {
        const int key = pass * kRowsPerPass + thread_row_;
        const bool exists = there.words[pass * kRowsPerPass / 32] >> (key % 32) & 1u;
        if constexpr (kPages == Pages::kNone) {
          copy_pass(pass, whole, exists ? key : -first, exists, keys, values);
        } else {
          copy_pass(pass, origin(places, pass, key / kUnit, exists), exists ? key % kUnit : 0,
                    exists, keys, values);
        }
      }
    }
    return there;
  }

 private:
  __device__ __forceinline__ long long k_page_bytes() const {
    return params_.k_page * kElementBytes;
  }
  __device__ __forceinline__ long long v_page_bytes() const {
    return params_.v_page * kElementBytes;
  }

  template <typename Finder>
  __device__ __forceinline__ KeysThere<kColumns> keys_there(const Finder& finder, int first,
                                                            const Places& places) const {
    // Which units are in pages that are none, a bit for each lane that knows of one.
    unsigned wrong[kLooks] = {};
    if constexpr (kPages != Pages::kNone) {
#pragma unroll
      for (int i = 0; i < kLooks; ++i) {
        const bool is_wrong =
            places.seen[i] && !finder.are_pages(places.k_page[i], places.v_page[i]);
        if (is_wrong) finder.report();
        wrong[i] = __ballot_sync(0xffffffffu, is_wrong);
      }
    }
    KeysThere<kColumns> there;
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      const int key = 32 * i + lane_;
      bool found = key < kColumns && finder.sees(first + key);
      if constexpr (kPages != Pages::kNone) {
        const unsigned of_unit = kUnit == 1 ? wrong[i < kLooks ? i : 0] >> lane_
                                            : wrong[0] >> (key < kColumns ? key / kUnit : 0);
        found = found && (of_unit & 1u) == 0;
      }
      there.words[i] = __ballot_sync(0xffffffffu, found);
    }
    return there;
  }

  // Where a unit begins: `row` rows behind k and v.
  struct Origin {
    const char* k;
    const char* v;
    int row;
  };
  // Where the unit of the thread's row of a pass begins, or where K and V begin if the row does not
  // exist. Requires: all threads of the warp call it.
  __device__ __forceinline__ Origin origin(const Places& places, int pass, int unit,
                                           bool exists) const {
    // The rows of a pass are in units of one look.
    const int look = pass * kRowsPerPass / kUnit / 32;
    const int k_page = __shfl_sync(0xffffffffu, places.k_page[look], unit % 32);
    const int v_page = __shfl_sync(0xffffffffu, places.v_page[look], unit % 32);
    const int row = __shfl_sync(0xffffffffu, places.row[look], unit % 32);
    if (!exists) return {k_, v_, 0};
    return {k_ + k_page * k_page_bytes(), v_ + v_page * v_page_bytes(), row};
  }

  // Copies the thread's row of a pass, if it exists: `row` rows behind the origin.
  __device__ __forceinline__ void copy_pass(int pass, const Origin& from, int row, bool exists,
                                            unsigned keys, unsigned values) const {
    copy<kDimQk>(
        keys + k_slot_ + pass * kRowsPerPass * Swizzle<kDimQk>::kPitch,
        ptx::advanced(from.k, from.row + row, static_cast<int>(params_.k_row) * kElementBytes),
        exists);
    copy<kDimV>(
        values + v_slot_ + pass * kRowsPerPass * Swizzle<kDimV>::kPitch,
        ptx::advanced(from.v, from.row + row, static_cast<int>(params_.v_row) * kElementBytes),
        exists);
  }
  template <int kDim>
  static __device__ __forceinline__ void copy(unsigned to, const char* from, bool exists) {
    tile::copy_row<kPhases * 16, Rows<kDim>::kGroups>(to, from, exists);
  }

  const char* k_;
  const char* v_;
  const kernels::BatchParams& params_;
  int lane_;
  int thread_row_;
  unsigned k_slot_;
  unsigned v_slot_;
};

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_KEY_ROWS_CUH_
