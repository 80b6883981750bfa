#ifndef ANNULUS_PARAMS_BATCH_PARAMS_H_
#define ANNULUS_PARAMS_BATCH_PARAMS_H_

// The arguments of the kernels that serve batches of requests: the contract between the host
// (src/batch) and the templates. Plain C++ for NVRTC and the host compiler, like
// attention_params.h.
//
// A step of a model has `requests` requests. Rows of Q and O of all requests follow one another in
// memory; each request has keys of its own, anywhere in memory. Values that change from step to
// step (lengths, pages, the number of requests) are in device memory, and no launch depends on
// them:
//
//   prepare_batch   once a step: clamps the lengths, cuts each request into tiles of query rows,
//                   finds which keys those see, cuts the keys into parts, lists the works
//   decode_forward  once a layer: persistent CTAs take the works of requests with few queries
//   combine_parts   once a layer: joins the parts of rows that have several, in their order
//   chunk_forward   once a layer: the same for requests with many queries
//
// A tile of query rows is up to M rows of (query, head of the group): row r is query r / tile_heads
// of the tile and head r mod tile_heads of the tile's heads, which share one head of K and V. M is
// kPackedRows in decode_forward and larger in chunk_forward. The tiles of a group's heads for all
// heads of K and V are columns. If all columns see the same keys, they share a BatchRow. If they do
// not, because the pattern differs between heads or because each head of K and V has a list of
// blocks, each column has BatchRows of its own. The parts of the keys follow only from the lengths
// and lists of the request itself, so its results do not depend on the other requests.
//
// With lists of blocks there is one more launch before prepare_batch:
//
//   list_blocks     once a step: sorts the blocks that each head of K and V of a request reads

#include "params/attention_params.h"

#ifdef __CUDACC_RTC__
#define ANNULUS_ON_BOTH __device__ __forceinline__
#define ANNULUS_UNROLL _Pragma("unroll")
#else
#define ANNULUS_ON_BOTH constexpr
#define ANNULUS_UNROLL
#endif

namespace annulus::kernels {

enum : int {
  kPackedRows = 16,       // rows of a tile of decode_forward: one m16n8k16
  kRowThreads = 8,        // threads that write a row
  kCombineThreads = 128,  // threads of a CTA of combine_parts
  kCombineParts = 8,      // parts of a row whose acc combine_parts loads at a time
  kMaxRuns = 3,           // runs of keys that a tile of rows may have
  kMaxForms = 16,         // forms that a pattern may have
  kPrepareThreads = 512,
  kPartBins = 64,  // bins of parts by length; parts are listed longest first
};

// The threads of combine_parts that share a row with `dim_v` columns: each has 4 columns at a time,
// and at most a warp shares a row.
constexpr int combine_row_threads(int dim_v) {
  return dim_v % 128 == 0 ? 32 : dim_v % 64 == 0 ? 16 : 8;
}

// How the rows of K and V are found; a constant of the kernel. The value n means that n
// neighbouring keys, counted from a multiple of n, are one after another in one page.
enum class Pages : int {
  kNone = 0,  // there are no pages: the rows of a request follow one another
  kAny = 1,   // pages of any number of rows
  k16 = 16,   // pages with a multiple of 16 rows
  k64 = 64,   // pages with a multiple of 64 rows
};

// key / n, computed with the factor and the shift of n.
ANNULUS_ON_BOTH int quotient_of(int key, unsigned factor, int shift) {
  return static_cast<int>(static_cast<unsigned long long>(key) * factor >> shift);
}

// Which of a request's keys are on this rank, if ranks hold the blocks of `block` keys in turn: in
// each period of block x ranks keys, the block that comes after the first `before` keys. The keys
// of this rank are numbered without gaps. Only kernels whose Shape has kInterleaved read it; for
// other kernels all keys are here.
struct Interleave {
  int block;
  int period;
  int before;
  // Factors and shifts with which quotient_of() divides by the block and by the period.
  unsigned block_factor;
  int block_shift;
  unsigned period_factor;
  int period_shift;

  // The number of the request's first `keys` keys that are here.
  ANNULUS_ON_BOTH int held(int keys) const {
    const int whole = quotient_of(keys, period_factor, period_shift);
    const int rest = keys - whole * period - before;
    return whole * block + (rest < 0 ? 0 : rest < block ? rest : block);
  }
  // Whether the request's key is here. If it is, its number is held(key).
  ANNULUS_ON_BOTH bool has(int key) const {
    const int rest = key - quotient_of(key, period_factor, period_shift) * period - before;
    return rest >= 0 && rest < block;
  }
  // The number in the request of the key that has `number` among the keys that are here.
  ANNULUS_ON_BOTH int key(int number) const {
    return number + quotient_of(number, block_factor, block_shift) * (period - block) + before;
  }
};

// Query positions from `from` on, up to the next form, see these runs of keys. The runs ascend and
// do not touch, and each is from `first` to before `end`. With `moves` 0, an end is a position;
// with `moves` 1 it moves with the query and is the query's position plus the value.
struct RunEnd {
  int value;
  int moves;

  ANNULUS_ON_BOTH long long at(long long q) const { return value + (moves != 0 ? q : 0); }
};
struct RowForm {
  int from;
  int runs;
  RunEnd first[kMaxRuns];
  RunEnd end[kMaxRuns];
};

// The keys that a tile of query rows sees. Keys are numbered from 0 in the request; in a BatchRow
// only the keys that are here are numbered.
struct KeyRuns {
  // Runs of keys that some query sees. They ascend and do not touch. Empty runs come last and are
  // [0, 0), because sees_some() could find any other empty run within a range.
  int begin[kMaxRuns];
  int end[kMaxRuns];
  int full_begin[kMaxRuns];  // keys that all queries see; some of these may be missing
  int full_end[kMaxRuns];

  template <int kRuns = kMaxRuns>
  ANNULUS_ON_BOTH bool sees(int key) const {
    bool seen = false;
    ANNULUS_UNROLL
    for (int i = 0; i < kRuns; ++i) seen = seen || (key >= begin[i] && key < end[i]);
    return seen;
  }
  // Whether some query sees some key in [from, to).
  template <int kRuns = kMaxRuns>
  ANNULUS_ON_BOTH bool sees_some(int from, int to) const {
    bool seen = false;
    ANNULUS_UNROLL
    for (int i = 0; i < kRuns; ++i) seen = seen || (to > begin[i] && from < end[i]);
    return seen;
  }
  // Whether each key in [from, to) is seen by some query.
  template <int kRuns = kMaxRuns>
  ANNULUS_ON_BOTH bool covers(int from, int to) const {
    bool all = false;
    ANNULUS_UNROLL
    for (int i = 0; i < kRuns; ++i) all = all || (from >= begin[i] && to <= end[i]);
    return all;
  }
  // Whether all queries see all keys in [from, to).
  template <int kRuns = kMaxRuns>
  ANNULUS_ON_BOTH bool all_see(int from, int to) const {
    bool all = false;
    ANNULUS_UNROLL
    for (int i = 0; i < kRuns; ++i) all = all || (from >= full_begin[i] && to <= full_end[i]);
    return all;
  }
  // Limits the runs: some queries see only keys before `some_end`, and all queries see only keys
  // before `all_end`.
  ANNULUS_ON_BOTH void limit(int some_end, int all_end) {
    const auto cut = [](int& at, int most) { at = at < most ? at : most; };
    ANNULUS_UNROLL
    for (int i = 0; i < kMaxRuns; ++i) {
      cut(end[i], some_end);
      cut(full_end[i], all_end);
      if (begin[i] >= end[i]) begin[i] = end[i] = 0;
    }
  }
  // Renumbers the runs to count only the keys that are here. A run without such keys is removed,
  // and later runs move up.
  ANNULUS_ON_BOTH void count_held(const Interleave& of) {
    ANNULUS_UNROLL
    for (int i = 0; i < kMaxRuns; ++i) {
      begin[i] = of.held(begin[i]);
      end[i] = of.held(end[i]);
      full_begin[i] = of.held(full_begin[i]);
      // limit() may have made it negative.
      full_end[i] = of.held(full_end[i] > 0 ? full_end[i] : 0);
    }
    ANNULUS_UNROLL
    for (int last = kMaxRuns - 1; last >= 0; --last) {
      ANNULUS_UNROLL
      for (int i = 0; i < kMaxRuns; ++i) {
        if (i > last || begin[i] < end[i]) continue;
        begin[i] = i < last ? begin[i + 1] : 0;
        end[i] = i < last ? end[i + 1] : 0;
        if (i < last) begin[i + 1] = end[i + 1] = 0;
      }
    }
  }
  // The first tile of run i, with `columns` keys in a tile, that is not the last tile of the run
  // before.
  ANNULUS_ON_BOTH int first_tile(int i, int columns) const {
    const int first = begin[i] / columns;
    const int before = i == 0 ? 0 : (end[i - 1] + columns - 1) / columns;
    return first > before ? first : before;
  }
  ANNULUS_ON_BOTH int end_tile(int i, int columns) const {
    return (end[i] + columns - 1) / columns;
  }
  // The number of tiles with a key that is seen.
  template <int kRuns = kMaxRuns>
  ANNULUS_ON_BOTH int tiles(int columns) const {
    int count = 0;
    ANNULUS_UNROLL
    for (int i = 0; i < kRuns; ++i) {
      const int of_run = end[i] > begin[i] ? end_tile(i, columns) - first_tile(i, columns) : 0;
      count += of_run > 0 ? of_run : 0;
    }
    return count;
  }
};

// The forms of a pattern in ascending order. The first one begins at or before every query.
struct RowForms {
  const RowForm* forms;
  int count;

  // The last form that begins at or before q. The search begins at form `from`.
  ANNULUS_ON_BOTH int at(long long q, int from = 0) const {
    while (from + 1 < count && forms[from + 1].from <= q) ++from;
    return from;
  }
};

// The keys that queries at positions [q, q + queries) see, of `keys` keys whose first is at
// `k_position`. If there are more than kMaxRuns runs, the last one spans the rest. The forms in
// `some` have the keys that some of these heads see, and the forms in `all` the keys that all of
// them see. Requires: queries >= 1.
ANNULUS_ON_BOTH KeyRuns runs_of(const RowForms& some, const RowForms& all, int q, int queries,
                                int k_position, int keys) {
  const long long first_q = q;
  const long long last_q = first_q + queries - 1;
  const auto key_at = [&](long long position) {
    const long long key = position - k_position;
    return static_cast<int>(key < 0 ? 0 : key > keys ? keys : key);
  };
  KeyRuns runs = {};
  const int all_form = all.at(first_q);
  if (all.at(last_q, all_form) == all_form) {
    // Ends never descend, so all queries see the keys from the last query's first key to the first
    // query's last key.
    const RowForm& form = all.forms[all_form];
    ANNULUS_UNROLL
    for (int i = 0; i < kMaxRuns; ++i) {
      if (i >= form.runs) continue;
      runs.full_begin[i] = key_at(form.first[i].at(last_q));
      runs.full_end[i] = key_at(form.end[i].at(first_q));
    }
  }
  // Calls take(begin, end) for each run of each form, with the keys that the queries of the form
  // see together.
  const int first_form = some.at(first_q);
  const int last_form = some.at(last_q, first_form);
  const auto each_run = [&](const auto& take) {
    for (int f = first_form; f <= last_form; ++f) {
      const RowForm& form = some.forms[f];
      const long long from = form.from > first_q ? form.from : first_q;
      const long long to = f < last_form ? some.forms[f + 1].from - 1LL : last_q;
      for (int i = 0; i < form.runs; ++i) {
        take(key_at(form.first[i].at(from)), key_at(form.end[i].at(to)));
      }
    }
  };
  int seen_up_to = 0;
  ANNULUS_UNROLL
  for (int count = 0; count < kMaxRuns; ++count) {
    // The next key that is seen, and the end of the keys after it that are seen too.
    int begin = keys;
    each_run([&](int run_begin, int run_end) {
      const int next = run_begin > seen_up_to ? run_begin : seen_up_to;
      if (next < run_end && next < begin) begin = next;
    });
    if (begin == keys) break;
    int end = begin;
    for (int before = -1; before != end;) {
      before = end;
      each_run([&](int run_begin, int run_end) {
        const bool goes_on = run_begin <= end || count == kMaxRuns - 1;
        if (goes_on && run_begin < run_end && run_end > end) end = run_end;
      });
    }
    runs.begin[count] = begin;
    runs.end[count] = end;
    seen_up_to = end;
  }
  return runs;
}

// A tile of query rows of one request, as prepare_batch writes it for the kernels.
struct alignas(16) BatchRow {
  int request;
  int q_row;       // the row of Q of the first query
  int queries;     // at least 1
  int position;    // position of the first query
  int k_position;  // position of the request's key 0
  int tiles;       // tiles of keys that some query sees
  int parts;       // parts of these tiles, at least 1
  int slot;        // the slot of the first part, if there are several
  int column;      // the first column of this row (BatchParams::row_columns)
  int listed;      // keys of its list of blocks; its tiles have no more keys
  int keys;        // all keys of the request, on all ranks
  KeyRuns runs;
};

// Part `part` of a row's tiles.
struct alignas(8) BatchWork {
  int row;
  int part;
};

// The numbers of the pages of K or V. The page of key j of request r is ids[r * width + entry] with
// entry = j / rows of a page, or ids[begin[r] + entry] if `begin` is not null.
struct PageTableParams {
  const int* ids;
  const int* begin;  // [requests + 1]
  long long width;
  long long entries;  // entries of `ids`, if `begin` is given
};

// The places of the keys of a step, as the caller passed them to prepare_batch.
struct KeyPlaces {
  PageTableParams k_pages;
  PageTableParams v_pages;
  const int* k_begin;  // [requests]: without pages, the row of K with key 0 of a request; null:
                       // slabs
  const int* v_begin;
};

// The error of a step: the first request that breaks a rule, and the first rule that it breaks. The
// rules are the rules of annulus::BatchRule.
struct BatchStatus {
  unsigned first;  // status_of() of both; or kNothingWrong
};
enum : unsigned { kNothingWrong = 0xffffffffu };
enum Rule : unsigned {
  kTooManyRequests = 1,
  kWrongRows = 2,  // q_begin descends, is negative, ends beyond the bound, or has rows of another
                   // request
  kTooManyRowsOfOne = 3,
  kWrongKeys = 4,    // a length that is negative or beyond the bound of one request
  kTooFewPages = 5,  // a length beyond the request's entries, or beyond the rows of K or V
  kTooManyKeys = 6,  // keys of all requests up to this one
  kWrongPosition = 7,
  kNoSuchPage = 8,   // found by run(), in the entry of a key that is seen
  kWrongBlocks = 9,  // a block outside of the request's keys, or one that occurs twice
  kWrongRowEnd = 10,
};
ANNULUS_ON_BOTH unsigned status_of(int request, Rule rule) {
  return static_cast<unsigned>(request) * 16u + rule;
}

// Limits on the keys that single rows of Q see, in addition to the pattern. Either may be null.
struct RowLimits {
  const int* row_end;  // a row sees only keys before this one
  // A row sees only those of its request's newest 64 keys whose bits are set; bit i is for the i-th
  // newest key.
  const unsigned long long* tree_bits;
};
enum : int { kTreeKeys = 64 };

// The first part of a workspace.
struct alignas(16) BatchHeader {
  int rows;
  int works;
  int joined;  // rows with several parts
  BatchStatus status;
  KeyPlaces places;
  RowLimits limits;
};

// The numbers of a request after clamping. `keys` counts all of its keys, on all ranks.
struct alignas(16) BatchRequest {
  int q_begin;
  int queries;
  int keys;
  int k_position;
};

// The blocks of C keys that a head of K and V of a request reads, as list_blocks writes them: in
// ascending order, each once. Blocks outside of the request's keys are not listed.
struct BlockList {
  int count;
  int wrong;  // whether the caller's list broke the rule kWrongBlocks
};
struct BlockTables {
  BlockList* lists;  // [most requests, Hkv]; null: there are no lists
  int* blocks;       // [most requests, Hkv, most]
  int most;
  int block_keys;  // C, a multiple of kBlockGrain
  // Key j of a list is in block j / C, which is computed as j * block_factor >> block_shift.
  unsigned block_factor;
  int block_shift;
};
enum : int { kBlockGrain = 16 };

// The parts of a workspace.
struct BatchTables {
  BatchHeader* header;
  BatchRequest* requests;  // [most requests]
  int* row_begin;          // [most requests + 1]: the first tile of rows of each request
  BatchRow* rows;          // [max_rows]: the rows of one tile of rows follow one another
  BatchWork* works;        // [max_works]
  int* joined;             // [max_rows]: rows with several parts
  // The states of parts: [slots][column of the row][slot_rows], and acc with Dv numbers for each.
  float* acc;
  float* m;
  float* l;
  int max_requests;
  int max_rows;
  int max_works;
  int max_slots;
};

// The forms of the keys that the heads of one BatchRow see: indices into PrepareParams::forms.
struct ColumnForms {
  int some, some_count;  // forms of the keys that some head sees
  int all, all_count;    // forms of the keys that all heads see
};

// A class of requests, which have a similar number of queries. A class has a size of tiles of rows
// and lists of its own. The number of its queries determines the class of a request.
struct BatchClass {
  BatchTables tables;
  int least_queries;
  int max_queries;
  int tile_queries;  // queries in a tile of rows
  int tile_columns;  // keys in a tile of keys
  int part_tiles;    // tiles of keys in a part
  int rows_of_tile;  // BatchRows for a tile of rows: one, or one for each column
  int head_tiles;    // BatchParams::head_tiles
  int padding;
  const ColumnForms* forms;  // [rows_of_tile]
};
enum : int { kMaxClasses = 2 };

struct PrepareParams {
  const int* q_begin;     // [requests + 1]
  const int* k_length;    // [requests]
  const int* requests;    // null: max_requests
  const int* k_position;  // [requests], or null: 0
  KeyPlaces places;
  RowLimits limits;
  BatchClass classes[kMaxClasses];  // one for each CTA
  const RowForm* forms;
  BlockTables listed;
  // Bounds: rows of Q of all requests and of one request; keys of one request and of all.
  int rows;
  int rows_of_one;
  int keys_of_one;
  long long keys;
  int page_rows;  // 0: there are no pages
  int kv_heads;
  Interleave interleave;
};

// The argument of list_blocks, which has a CTA for each head of K and V of each request.
struct ListBlocksParams {
  const int* blocks;    // [most requests, Hkv, most]; -1: no block
  const int* k_length;  // [requests]
  const int* requests;  // null: max_requests
  BlockTables listed;
  int max_requests;
  int kv_heads;
  int keys_of_one;
  int padding;
};
enum : int { kListThreads = 128 };

// The argument of decode_forward and combine_parts. Strides count elements.
struct BatchParams {
  const void* q;  // [rows, H, Dqk]
  const void* k;
  const void* v;
  void* o;              // [rows, H, Dv]
  float* lse;           // may be null
  const float* acc_in;  // [rows, H, Dv] contiguous
  const float* m_in;    // [rows, H]
  const float* l_in;
  float* acc_out;
  float* m_out;
  float* l_out;
  long long q_row, q_head;
  long long k_page, k_row, k_head;  // without pages, k_page is from slab to slab
  long long v_page, v_row, v_head;
  long long o_row, o_head;
  long long lse_row, lse_head;

  BatchTables tables;
  BlockTables listed;
  MaskParams mask;
  ScoreParams score;

  // Key j is in row j mod page_rows of page j / page_rows, which is computed as j * page_factor >>
  // page_shift.
  unsigned page_factor;
  int page_shift;
  int page_rows;
  int k_page_count;  // pages of K, or rows if there are no pages; a larger number is invalid
  int v_page_count;

  int heads;        // H
  int group;        // H / Hkv
  int tile_heads;   // heads in a tile of rows
  int head_tiles;   // tiles for a group's heads
  int columns;      // Hkv * head_tiles
  int row_columns;  // columns of a BatchRow: all columns, or one
  int part_tiles;
  int slot_rows;  // rows of a part's state: the most rows of a tile
  float scale;    // see Score
  float softcap;
  float lse_factor;
  Interleave interleave;
};

// The page of a key.
ANNULUS_ON_BOTH int page_of(const BatchParams& params, int key) {
  return quotient_of(key, params.page_factor, params.page_shift);
}

}  // namespace annulus::kernels

#undef ANNULUS_UNROLL
#undef ANNULUS_ON_BOTH

#endif  // ANNULUS_PARAMS_BATCH_PARAMS_H_
