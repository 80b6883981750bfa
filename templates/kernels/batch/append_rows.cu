// Writes new rows of K and V to the pages of a cache, and rotates Q and K at the same time
// (tile/rotary.cuh). It is launched once for each layer, before the kernels that read the pages.
// There is a CTA for each row that a step may have, even if the step has fewer rows.
//
//   append_rows<Shape><<<most rows, kAppendThreads>>>(AppendParams)
//
// Slots, lengths, pages and positions come from memory that is not checked yet. If the place or
// position of a row is invalid, its K and V are not written, and AppendParams::status names the
// row.
//
// Shape has the constants; README.md lists which it must define.

#include "params/append_params.h"
#include "ptx/memory.cuh"
#include "tile/rotary.cuh"

namespace annulus::kernels {
namespace {

__device__ __forceinline__ void report(const AppendParams& params, int at, AppendRule rule) {
  if (params.status == nullptr || threadIdx.x != 0) return;
  ptx::reduce_min(params.status, static_cast<unsigned>(at) * 16u + rule);
}

// The index in the pages at which a row's elements begin, for head 0.
struct RowPlace {
  bool exists;
  long long k;
  long long v;
};
// A row of a step: its place in K and V, and its position.
struct NewRow {
  bool exists;
  long long position;
  RowPlace place;
};

// The number of items, read from memory that may be wrong and clamped to at most `most`.
__device__ __forceinline__ int counted(const AppendParams& params, const int* count, int most,
                                       AppendRule rule) {
  if (count == nullptr) return most;
  const int given = *count;
  if (given >= 0 && given <= most) return given;
  if (blockIdx.x == 0) report(params, 0, rule);
  return given < 0 ? 0 : most;
}

__device__ __forceinline__ long long position_of(const AppendParams& params, int row,
                                                 long long position) {
  if (params.positions != nullptr) return params.positions[row];
  return params.positions_32 != nullptr ? params.positions_32[row] : position;
}

// Slot s is row s mod P of page s / P, or row s if there are no pages.
__device__ __forceinline__ RowPlace place_of_slot(const AppendParams& params, int row) {
  const long long slot = params.slots != nullptr ? params.slots[row] : params.slots_32[row];
  if (slot == -1) return {};
  const int rows = params.page_rows > 0 ? params.page_rows : 1;
  const int count = params.k.count < params.v.count ? params.k.count : params.v.count;
  if (slot < 0 || slot >= static_cast<long long>(count) * rows) {
    report(params, row, kNoSuchSlot);
    return {};
  }
  if (params.page_rows == 0) return {true, slot * params.k.row, slot * params.v.row};
  // Nearly all pools have fewer than 2^32 rows, and a division of 64 bits takes many times as long.
  const long long page =
      slot >> 32 == 0 ? static_cast<unsigned>(slot) / static_cast<unsigned>(rows) : slot / rows;
  const long long in_page = slot - page * rows;
  return {true, page * params.k.page + in_page * params.k.row,
          page * params.v.page + in_page * params.v.row};
}

__device__ __forceinline__ NewRow row_of_slot(const AppendParams& params, int row) {
  NewRow made = {};
  made.exists = row < counted(params, params.rows, params.max_rows, kWrongRowCount);
  if (!made.exists) return made;
  made.position = position_of(params, row, 0);
  made.place = place_of_slot(params, row);
  return made;
}

// The last request whose rows begin at or before this one. The lanes of a warp read 32 begins at a
// time, which divide the remaining requests into 32 ranges.
__device__ __forceinline__ int request_of(const int* q_begin, int requests, int row) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  int first = 0, end = requests;
  while (true) {
    const int step = (end - first + 31) / 32;
    const int at = first + lane * step;
    const unsigned before = __ballot_sync(0xffffffffu, at < end && q_begin[at] <= row);
    if (before == 0) return -1;
    first += (31 - __clz(static_cast<int>(before))) * step;
    if (step == 1) return first;
    end = first + step < end ? first + step : end;
  }
}

// The place of a request's key in K or V, as a number of elements after the start of the tensor.
// Returns whether there is such a place.
__device__ __forceinline__ bool find_place(const AppendParams& params, const PlacesParams& to,
                                           const PageTableParams& pages, const int* begins,
                                           int request, int key, int row, long long* at) {
  if (params.page_rows == 0) {
    if (begins == nullptr) {
      *at = request * to.page + key * to.row;
      return true;
    }
    const long long begin = begins[request];
    if (begin < 0 || begin + key >= to.count) {
      report(params, row, kNoSuchEntry);
      return false;
    }
    *at = (begin + key) * to.row;
    return true;
  }
  const int entry = static_cast<int>(static_cast<unsigned>(key) / params.page_rows);
  long long begin = request * pages.width;
  long long entries = pages.width;
  if (pages.begin != nullptr) {
    begin = pages.begin[request];
    entries = pages.begin[request + 1] - begin;
  }
  const bool is_beyond = pages.begin != nullptr && begin + entry >= pages.entries;
  if (begin < 0 || entry >= entries || is_beyond) {
    report(params, row, kNoSuchEntry);
    return false;
  }
  const int page = pages.ids[begin + entry];
  if (page < 0 || page >= to.count) {
    report(params, row, kNoSuchKeyPage);
    return false;
  }
  *at = page * to.page + (key - entry * params.page_rows) * to.row;
  return true;
}

template <typename Shape>
__device__ __forceinline__ NewRow row_of_request(const AppendParams& params, int row) {
  NewRow made = {};
  const int requests = counted(params, params.requests, params.max_requests, kWrongRequests);
  // Only one CTA reports wrong begins, because no other CTA reads all of them.
  if (blockIdx.x == 0 && params.status != nullptr) {
    for (int r = static_cast<int>(threadIdx.x); r < requests; r += 32) {
      const int begin = params.q_begin[r];
      const int end = params.q_begin[r + 1];
      if (begin >= 0 && end >= begin && end <= params.max_rows) continue;
      ptx::reduce_min(params.status, static_cast<unsigned>(r) * 16u + kWrongRequests);
    }
  }
  const int request = request_of(params.q_begin, requests, row);
  if (request < 0) return made;
  const int begin = params.q_begin[request];
  const int end = params.q_begin[request + 1];
  // If begins descend, the search may have found a request that does not have the row.
  if (begin < 0 || row < begin || row >= end || end > params.max_rows) return made;
  const int keys = params.k_length[request];
  if (keys < 0 || keys > params.keys_of_one) {
    report(params, row, kNoSuchKey);
    return made;
  }
  made.exists = true;
  int key = keys - (end - row);
  const int k_position = params.k_position != nullptr ? params.k_position[request] : 0;
  made.position = position_of(params, row, static_cast<long long>(k_position) + key);
  if (key < 0) {
    report(params, row, kNoSuchKey);
    return made;
  }
  if constexpr (Shape::kInterleaved) {
    // K and V of a key that belongs to another rank are left out.
    if (!params.interleave.has(key)) return made;
    key = params.interleave.held(key);
  }
  made.place.exists = find_place(params, params.k, params.places.k_pages, params.places.k_begin,
                                 request, key, row, &made.place.k) &&
                      find_place(params, params.v, params.places.v_pages, params.places.v_begin,
                                 request, key, row, &made.place.v);
  return made;
}

__device__ __forceinline__ const char* element(const void* data, long long at) {
  return static_cast<const char*>(data) + at * tile::kElementBytes;
}
__device__ __forceinline__ char* element(void* data, long long at) {
  return static_cast<char*>(data) + at * tile::kElementBytes;
}

// Divides pieces among threads, from one tensor to the next. If a short tensor has no piece for a
// thread, the thread starts with the next tensor.
class Pieces {
 public:
  // Returns the thread's first piece of the next `count` pieces. Its other pieces follow at
  // distances of kAppendThreads.
  __device__ __forceinline__ int take(int count) {
    const int first = (static_cast<int>(threadIdx.x) - taken_) & (kAppendThreads - 1);
    taken_ += count;
    return first;
  }

 private:
  static_assert((kAppendThreads & (kAppendThreads - 1)) == 0, "threads are numbered by bits");
  int taken_ = 0;
};

// Copies the heads of a row. Each thread copies pieces of 16 bytes.
__device__ __forceinline__ void copy_heads(Pieces& pieces, char* to, long long to_head,
                                           const char* from, long long from_head, int heads,
                                           int chunks) {
  for (int i = pieces.take(heads * chunks); i < heads * chunks; i += kAppendThreads) {
    const int head = i / chunks;
    const int chunk = (i - head * chunks) * 16;
    ptx::store_global_16(element(to, head * to_head) + chunk,
                         ptx::load_global_16(element(from, head * from_head) + chunk));
  }
}

// Copies the heads of a row and rotates them. A thread has one or two pieces that hold whole pairs.
// Pieces that are not rotated are not copied if they are in their place already.
template <typename Shape>
__device__ __forceinline__ void rotate_heads(Pieces& pieces, const AppendParams& params,
                                             const tile::SharedRotations& rotations, char* to,
                                             long long to_head, const char* from,
                                             long long from_head, int heads) {
  using Chunk = tile::Chunk<typename Shape::Element>;
  constexpr bool kHalves = static_cast<Rotary>(Shape::kRotary) == Rotary::kHalves;
  const int rotated = params.pairs / (kHalves ? 8 : 4);
  const int apart = kHalves ? rotated : 0;  // pieces between the two elements of a pair
  const int units = to == from ? rotated : params.chunks_qk - apart;
  for (int i = pieces.take(heads * units); i < heads * units; i += kAppendThreads) {
    const int head = i / units;
    const int unit = i - head * units;
    const char* source = element(from, head * from_head) + unit * 16;
    char* target = element(to, head * to_head) + unit * 16;
    if (unit >= rotated) {
      ptx::store_global_16(target + apart * 16, ptx::load_global_16(source + apart * 16));
    } else if constexpr (kHalves) {
      Chunk x(ptx::load_global_16(source));
      Chunk y(ptx::load_global_16(source + apart * 16));
      tile::Rotation by[8];
      rotations.load(by, unit * 8);
#pragma unroll
      for (int j = 0; j < 8; ++j) tile::rotate(x.values[j], y.values[j], by[j]);
      ptx::store_global_16(target, x.packed());
      ptx::store_global_16(target + apart * 16, y.packed());
    } else {
      Chunk x(ptx::load_global_16(source));
      tile::Rotation by[4];
      rotations.load(by, unit * 4);
#pragma unroll
      for (int j = 0; j < 4; ++j) tile::rotate(x.values[2 * j], x.values[2 * j + 1], by[j]);
      ptx::store_global_16(target, x.packed());
    }
  }
}

}  // namespace

template <typename Shape>
__global__ void __launch_bounds__(kAppendThreads, kAppendResident)
    append_rows(const __grid_constant__ AppendParams params) {
  constexpr bool kRotates = static_cast<Rotary>(Shape::kRotary) != Rotary::kNone;
  const int row = static_cast<int>(blockIdx.x);
  // One warp finds the place of the row for all threads.
  __shared__ NewRow found;
  if (threadIdx.x < 32) {
    NewRow here;
    if constexpr (Shape::kBySlots) {
      here = row_of_slot(params, row);
    } else {
      here = row_of_request<Shape>(params, row);
    }
    if (threadIdx.x == 0) found = here;
  }
  __syncthreads();
  const NewRow here = found;
  if (!here.exists) return;

  Pieces pieces;
  const auto from = [&](const RowsParams& rows) { return element(rows.data, row * rows.row); };
  if constexpr (kRotates) {
    const bool is_position = params.turns != nullptr
                                 ? here.position >= -(1LL << 30) && here.position <= 1LL << 30
                                 : here.position >= 0 && here.position < params.table_rows;
    if (!is_position) {
      report(params, row, kNoSuchPosition);
      return;
    }
    __shared__ __align__(16) float cosines[kMaxRotaryPairs];
    __shared__ __align__(16) float sines[kMaxRotaryPairs];
    for (int i = static_cast<int>(threadIdx.x); i < params.pairs; i += kAppendThreads) {
      const tile::Rotation rotation =
          Shape::Rotations::get(params, static_cast<int>(here.position), i);
      cosines[i] = rotation.cosine;
      sines[i] = rotation.sine;
    }
    __syncthreads();
    const tile::SharedRotations rotations = {ptx::shared_address(cosines),
                                             ptx::shared_address(sines)};
    if (params.q.data != nullptr) {
      rotate_heads<Shape>(pieces, params, rotations,
                          element(params.rotated_q.data, row * params.rotated_q.row),
                          params.rotated_q.head, from(params.q), params.q.head, params.heads);
    }
    if (!here.place.exists) return;
    rotate_heads<Shape>(pieces, params, rotations, element(params.k.data, here.place.k),
                        params.k.head, from(params.new_k), params.new_k.head, params.kv_heads);
  } else {
    if (!here.place.exists) return;
    copy_heads(pieces, element(params.k.data, here.place.k), params.k.head, from(params.new_k),
               params.new_k.head, params.kv_heads, params.chunks_qk);
  }
  copy_heads(pieces, element(params.v.data, here.place.v), params.v.head, from(params.new_v),
             params.new_v.head, params.kv_heads, params.chunks_v);
}

}  // namespace annulus::kernels
