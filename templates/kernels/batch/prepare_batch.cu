// Makes the lists of a step: it computes the works of the later kernels from the lengths of
// requests, which are in device memory. It is launched once for each step, with a CTA for each
// class of requests. The number and size of CTAs do not depend on lengths.
//
//   prepare_batch<Shape><<<classes, kPrepareThreads>>>(PrepareParams)
//
// Lengths in memory are not checked yet, so each length is clamped here. Whatever the memory holds,
// no list is longer than planned, and no list has a row or key out of bounds. A request that breaks
// a rule gets no rows or no keys, and BatchHeader::status names it.
//
// Shape states whether keys are interleaved between ranks; README.md lists what it must define.

#include "params/batch_params.h"
#include "tile/scan.cuh"

namespace annulus::kernels {
namespace {

enum : int { kPrepareWarps = kPrepareThreads / 32 };

__device__ __forceinline__ tile::Scanned sum_of(long long x, long long* of_warps) {
  return tile::scan<tile::Add, kPrepareWarps>(x, of_warps);
}

// The clamped numbers of a request, before the keys of all requests together are limited.
struct Checked {
  BatchRequest request;
  unsigned status;
};

template <typename Shape>
__device__ __forceinline__ Checked check(const PrepareParams& params, int r) {
  Checked checked = {{0, 0, 0, 0}, kNothingWrong};
  const auto break_rule = [&](Rule rule) {
    const unsigned status = status_of(r, rule);
    checked.status = status < checked.status ? status : checked.status;
  };
  BatchRequest& request = checked.request;
  const int begin = params.q_begin[r];
  const int end = params.q_begin[r + 1];
  if (begin < 0 || end < begin || end > params.rows) {
    break_rule(kWrongRows);
  } else if (end - begin > params.rows_of_one) {
    break_rule(kTooManyRowsOfOne);
  } else {
    request.q_begin = begin;
    request.queries = end - begin;
  }
  const int keys = params.k_length[r];
  const int position = params.k_position != nullptr ? params.k_position[r] : 0;
  constexpr int kMost = 1 << 30;
  if (keys < 0 || keys > params.keys_of_one) {
    break_rule(kWrongKeys);
  } else if (position < -kMost + params.rows_of_one || position > kMost - keys) {
    break_rule(kWrongPosition);
  } else {
    request.keys = keys;
    request.k_position = position;
  }
  int held = request.keys;
  if constexpr (Shape::kInterleaved) held = params.interleave.held(request.keys);
  // Checks whether its pages have this number of entries, or the tensors this number of rows.
  const auto fit = [&](const PageTableParams& pages, const int* row_begin) {
    if (params.page_rows == 0) return row_begin == nullptr || row_begin[r] >= 0;
    if (pages.begin == nullptr) return held <= pages.width * params.page_rows;
    const long long begin = pages.begin[r];
    const long long end = pages.begin[r + 1];
    return begin >= 0 && end <= pages.entries && held <= (end - begin) * params.page_rows;
  };
  if (!fit(params.places.k_pages, params.places.k_begin) ||
      !fit(params.places.v_pages, params.places.v_begin)) {
    break_rule(kTooFewPages);
    request.keys = 0;
  }
  if (params.listed.lists != nullptr) {
    // Wrong entries of a list were left out of it.
    for (int head = 0; head < params.kv_heads; ++head) {
      if (params.listed.lists[r * params.kv_heads + head].wrong != 0) break_rule(kWrongBlocks);
    }
  }
  return checked;
}

// Removes the keys that single rows may not see from the keys that their tile sees. Returns whether
// some row has a number of keys that its request does not have.
__device__ __forceinline__ bool limit_rows(const RowLimits& limits, BatchRow* row) {
  bool is_wrong = false;
  int some_end = row->keys, all_end = row->keys;
  if (limits.row_end != nullptr) {
    some_end = 0;
    for (int i = 0; i < row->queries; ++i) {
      const int end = limits.row_end[row->q_row + i];
      is_wrong = is_wrong || end < 0 || end > row->keys;
      some_end = max(some_end, min(end, row->keys));
      all_end = min(all_end, max(end, 0));
    }
  }
  if (limits.tree_bits != nullptr) all_end = min(all_end, row->keys - kTreeKeys);
  row->runs.limit(some_end, all_end);
  return is_wrong;
}

// The number of BatchRows of a request with this number of queries.
__device__ __forceinline__ int rows_of(const BatchClass& of, int queries) {
  return (queries + of.tile_queries - 1) / of.tile_queries * of.rows_of_tile;
}

// The request of a BatchRow: the last request that begins at or before it.
__device__ __forceinline__ int request_of(const int* row_begin, int requests, int row) {
  int low = 0, high = requests;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (row_begin[middle] <= row) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

// The bin of a part with this number of tiles. The bins of the longest parts come first.
__device__ __forceinline__ int bin_of(const BatchClass& of, int tiles) {
  const long long share = static_cast<long long>(tiles) * (kPartBins - 1);
  return kPartBins - 1 - static_cast<int>(share / of.part_tiles);
}

}  // namespace

template <typename Shape>
__global__ void __launch_bounds__(kPrepareThreads)
    prepare_batch(const __grid_constant__ PrepareParams params) {
  __shared__ long long sums[kPrepareWarps];
  __shared__ unsigned status;
  __shared__ int bins[kPartBins];
  const BatchClass& of = params.classes[blockIdx.x];
  const BatchTables& tables = of.tables;
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0) status = kNothingWrong;
  if (thread < kPartBins) bins[thread] = 0;
  __syncthreads();

  int requests = params.requests != nullptr ? *params.requests : tables.max_requests;
  if (requests < 0 || requests > tables.max_requests) {
    if (thread == 0) atomicMin(&status, status_of(0, kTooManyRequests));
    requests = requests < 0 ? 0 : tables.max_requests;
  }

  // Requests: stores their numbers, and counts the tiles of rows before each request.
  long long ends = 0;  // the end of the rows of earlier requests
  long long keys = 0, rows = 0;
  for (int first = 0; first < requests; first += kPrepareThreads) {
    const int r = first + thread;
    Checked checked = {{0, 0, 0, 0}, kNothingWrong};
    if (r < requests) checked = check<Shape>(params, r);
    // Rows that belong to an earlier request cannot belong to this one too.
    const int own_end =
        checked.request.queries > 0 ? checked.request.q_begin + checked.request.queries : 0;
    const tile::Scanned end = tile::scan<tile::Largest, kPrepareWarps>(own_end, sums);
    if (checked.request.queries > 0 && checked.request.q_begin < max(ends, end.before)) {
      checked.request.queries = 0;
      checked.status = min(checked.status, status_of(r, kWrongRows));
    }
    ends = max(ends, end.all);
    const tile::Scanned of_keys = sum_of(checked.request.keys, sums);
    if (keys + of_keys.before + checked.request.keys > params.keys) {
      checked.request.keys = 0;
      checked.status = min(checked.status, status_of(r, kTooManyKeys));
    }
    // Requests of another class have no queries here.
    const int queries = checked.request.queries;
    if (queries < of.least_queries || queries > of.max_queries) checked.request.queries = 0;
    const int count = rows_of(of, checked.request.queries);
    const tile::Scanned of_rows = sum_of(count, sums);
    const long long rows_before = rows + of_rows.before;
    // Requests share no rows, so the sum is not above the planned number.
    if (rows_before + count > tables.max_rows) {
      checked.request.queries = 0;
      checked.status = min(checked.status, status_of(r, kWrongRows));
    }
    if (r < requests) {
      tables.requests[r] = checked.request;
      const long long most = tables.max_rows;
      tables.row_begin[r] = static_cast<int>(rows_before < most ? rows_before : most);
      if (checked.status != kNothingWrong) atomicMin(&status, checked.status);
    }
    keys += of_keys.all;
    rows += of_rows.all;
  }
  if (rows > tables.max_rows) rows = tables.max_rows;
  const int row_count = static_cast<int>(rows);
  if (thread == 0) tables.row_begin[requests] = row_count;
  __syncthreads();

  // Rows: computes what they see, their parts, and the slots of the parts' states.
  long long works = 0, slots = 0, joined = 0;
  for (int first = 0; first < row_count; first += kPrepareThreads) {
    const int at = first + thread;
    BatchRow row = {};
    if (at < row_count) {
      row.request = request_of(tables.row_begin, requests, at);
      const BatchRequest request = tables.requests[row.request];
      const int of_request = at - tables.row_begin[row.request];
      const int first_query = of_request / of.rows_of_tile * of.tile_queries;
      const int left = request.queries - first_query;
      row.q_row = request.q_begin + first_query;
      row.queries = left < of.tile_queries ? left : of.tile_queries;
      row.position = request.k_position + request.keys - request.queries + first_query;
      row.k_position = request.k_position;
      row.column = of_request % of.rows_of_tile;
      row.keys = request.keys;
      if (row.queries > 0) {
        const ColumnForms& forms = of.forms[row.column];
        row.runs = runs_of({params.forms + forms.some, forms.some_count},
                           {params.forms + forms.all, forms.all_count}, row.position, row.queries,
                           row.k_position, request.keys);
        if (limit_rows(params.limits, &row)) {
          atomicMin(&status, status_of(row.request, kWrongRowEnd));
        }
        if constexpr (Shape::kInterleaved) row.runs.count_held(params.interleave);
      }
      if (params.listed.lists == nullptr) {
        row.tiles = row.runs.tiles(of.tile_columns);
      } else {
        // A request without keys, because it broke a rule, still has its lists.
        const int head = row.column / of.head_tiles;
        const int count = params.listed.lists[row.request * params.kv_heads + head].count;
        row.listed = request.keys == 0 ? 0 : count * params.listed.block_keys;
        row.tiles = (row.listed + of.tile_columns - 1) / of.tile_columns;
      }
      row.parts = row.tiles == 0 ? 1 : (row.tiles + of.part_tiles - 1) / of.part_tiles;
      if (row.queries <= 0) row.parts = 0;
    }
    const bool is_joined = row.parts > 1;
    const tile::Scanned of_works = sum_of(row.parts, sums);
    const tile::Scanned of_slots = sum_of(is_joined ? row.parts : 0, sums);
    const tile::Scanned of_joined = sum_of(is_joined ? 1 : 0, sums);
    const long long works_before = works + of_works.before;
    const long long slots_before = slots + of_slots.before;
    const long long joined_before = joined + of_joined.before;
    // The bounds of lengths also bound these numbers (src/batch/batch_plan.cc), so nothing is cut
    // off.
    const bool fits = works_before + row.parts <= tables.max_works &&
                      (!is_joined || slots_before + row.parts <= tables.max_slots);
    if (at < row_count) {
      if (!fits) row.parts = 0;
      row.slot = is_joined ? static_cast<int>(slots_before) : -1;
      tables.rows[at] = row;
      if (is_joined) tables.joined[joined_before] = at;
      if (row.parts > 1) atomicAdd(&bins[bin_of(of, of.part_tiles)], row.parts - 1);
      if (row.parts > 0) {
        const int last = row.tiles - (row.parts - 1) * of.part_tiles;
        atomicAdd(&bins[bin_of(of, last)], 1);
      }
    }
    works += of_works.all;
    slots += of_slots.all;
    joined += of_joined.all;
  }
  __syncthreads();

  // Works, the longest first: computes the begin of each bin, and then writes each part to the next
  // free entry of its bin.
  if (thread == 0) {
    int before = 0;
    for (int i = 0; i < kPartBins; ++i) {
      const int count = bins[i];
      bins[i] = before;
      before += count;
    }
    BatchHeader header = {};
    header.rows = row_count;
    header.works = before;
    header.joined = static_cast<int>(joined);
    header.status.first = status;
    header.places = params.places;
    header.limits = params.limits;
    *tables.header = header;
  }
  __syncthreads();
  for (int at = thread; at < row_count; at += kPrepareThreads) {
    const int parts = tables.rows[at].parts;
    if (parts == 0) continue;
    if (parts > 1) {
      const int begin = atomicAdd(&bins[bin_of(of, of.part_tiles)], parts - 1);
      for (int part = 0; part < parts - 1; ++part) tables.works[begin + part] = {at, part};
    }
    const int last = tables.rows[at].tiles - (parts - 1) * of.part_tiles;
    tables.works[atomicAdd(&bins[bin_of(of, last)], 1)] = {at, parts - 1};
  }
}

}  // namespace annulus::kernels
