#ifndef ANNULUS_PARAMS_BATCH_PARAMS_H_
#define ANNULUS_PARAMS_BATCH_PARAMS_H_

// The arguments of the kernels that serve batches of requests: the contract between the host
// (src/batch) and the templates. Plain C++, for NVRTC and the host compiler, as attention_params.h.
//
// A step of a model has `requests` requests. Rows of Q and O of all requests lie behind one
// another; each request has keys of its own, anywhere in memory. What differs from step to step
// (lengths, pages, the number of requests) is in device memory, and no launch depends on it:
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
// heads of K and V are columns. Where all columns see the same keys they share a BatchRow; where
// they do not, because the pattern differs between heads or each head of K and V has a list of
// blocks, each has BatchRows of its own. Where keys are parted follows from a request's own lengths
// and lists alone, so its answer does not depend on the requests beside it.
//
// With lists of blocks there is one more launch in front of prepare_batch:
//
//   list_blocks     once a step: sorts the blocks that each head of K and V of a request looks at

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
  kMostRuns = 3,          // runs of keys that a tile of rows may have
  kMostForms = 16,        // forms that a pattern may have
  kPrepareThreads = 512,
  kPartBins = 64,  // bins of parts by length; parts are listed longest first
};

// The threads of combine_parts that share a row with `dim_v` columns: each has 4 columns at a time,
// and at most a warp shares a row.
constexpr int combine_row_threads(int dim_v) {
  return dim_v % 128 == 0 ? 32 : dim_v % 64 == 0 ? 16 : 8;
}

// How the rows of K and V are found; a constant of the kernel. The number is how many neighbouring
// keys, counted from a multiple of it, are known to lie in one page behind one another.
enum class Pages : int {
  kNone = 0,  // there are no pages: the rows of a request follow one another
  kAny = 1,   // pages of any number of rows
  k16 = 16,   // of a multiple of 16
  k64 = 64,   // of a multiple of 64
};

// key / n, for the factor and the shift of n.
ANNULUS_ON_BOTH int quotient_of(int key, unsigned factor, int shift) {
  return static_cast<int>(static_cast<unsigned long long>(key) * factor >> shift);
}

// Which of a request's keys are here, where ranks hold the blocks of `block` keys in turn: those of
// each period of block x ranks keys that have `before` of it in front of them. They are numbered
// without gaps. Only kernels whose Shape says kInterleaved read it; for others all keys are here.
struct Interleave {
  int block;
  int period;
  int before;
  // By these quotient_of() divides by the block and by the period.
  unsigned block_factor;
  int block_shift;
  unsigned period_factor;
  int period_shift;

  // How many of the request's first `keys` keys are here.
  ANNULUS_ON_BOTH int held(int keys) const {
    const int whole = quotient_of(keys, period_factor, period_shift);
    const int rest = keys - whole * period - before;
    return whole * block + (rest < 0 ? 0 : rest < block ? rest : block);
  }
  // Whether the request's key is here; its number is held(key) then.
  ANNULUS_ON_BOTH bool has(int key) const {
    const int rest = key - quotient_of(key, period_factor, period_shift) * period - before;
    return rest >= 0 && rest < block;
  }
  // The number in the request of key `number` of those that are here.
  ANNULUS_ON_BOTH int key(int number) const {
    return number + quotient_of(number, block_factor, block_shift) * (period - block) + before;
  }
};

// Query positions from `from` on, up to those of the next form, see these runs of keys: ascending,
// apart, each from `first` to before `end`. An end is a position, and moves along with the query
// where `moves` is 1: then it is the query's position plus the value.
struct RunEnd {
  int value;
  int moves;

  ANNULUS_ON_BOTH long long at(long long q) const { return value + (moves != 0 ? q : 0); }
};
struct RowForm {
  int from;
  int runs;
  RunEnd first[kMostRuns];
  RunEnd end[kMostRuns];
};

// The keys that a tile of query rows sees. Numbers count a request's keys from 0, in a BatchRow
// those of them that are here.
struct KeyRuns {
  // Keys that some query sees, ascending and apart. Empty ones come last, as [0, 0): sees_some()
  // would find another empty one within a range.
  int begin[kMostRuns];
  int end[kMostRuns];
  int full_begin[kMostRuns];  // keys that all queries see, or some of them
  int full_end[kMostRuns];

  template <int kRuns = kMostRuns>
  ANNULUS_ON_BOTH bool sees(int key) const {
    bool seen = false;
    ANNULUS_UNROLL
    for (int i = 0; i < kRuns; ++i) seen = seen || (key >= begin[i] && key < end[i]);
    return seen;
  }
  // Whether some query sees some key in [from, to).
  template <int kRuns = kMostRuns>
  ANNULUS_ON_BOTH bool sees_some(int from, int to) const {
    bool seen = false;
    ANNULUS_UNROLL
    for (int i = 0; i < kRuns; ++i) seen = seen || (to > begin[i] && from < end[i]);
    return seen;
  }
  // Whether each key in [from, to) is seen by some query.
  template <int kRuns = kMostRuns>
  ANNULUS_ON_BOTH bool covers(int from, int to) const {
    bool all = false;
    ANNULUS_UNROLL
    for (int i = 0; i < kRuns; ++i) all = all || (from >= begin[i] && to <= end[i]);
    return all;
  }
  // Whether all queries see all keys in [from, to).
  template <int kRuns = kMostRuns>
  ANNULUS_ON_BOTH bool all_see(int from, int to) const {
    bool all = false;
    ANNULUS_UNROLL
    for (int i = 0; i < kRuns; ++i) all = all || (from >= full_begin[i] && to <= full_end[i]);
    return all;
  }
  // From now on only keys before `some_end` are seen, and only those before `all_end` by all.
  ANNULUS_ON_BOTH void limit(int some_end, int all_end) {
    const auto cut = [](int& at, int most) { at = at < most ? at : most; };
    ANNULUS_UNROLL
    for (int i = 0; i < kMostRuns; ++i) {
      cut(end[i], some_end);
      cut(full_end[i], all_end);
      if (begin[i] >= end[i]) begin[i] = end[i] = 0;
    }
  }
  // From now on numbers count the keys that are here. A run of which none is gives its place to
  // those behind it.
  ANNULUS_ON_BOTH void count_held(const Interleave& of) {
    ANNULUS_UNROLL
    for (int i = 0; i < kMostRuns; ++i) {
      begin[i] = of.held(begin[i]);
      end[i] = of.held(end[i]);
      full_begin[i] = of.held(full_begin[i]);
      full_end[i] = of.held(full_end[i] > 0 ? full_end[i] : 0);  // limit() may have gone below 0
    }
    ANNULUS_UNROLL
    for (int last = kMostRuns - 1; last >= 0; --last) {
      ANNULUS_UNROLL
      for (int i = 0; i < kMostRuns; ++i) {
        if (i > last || begin[i] < end[i]) continue;
        begin[i] = i < last ? begin[i + 1] : 0;
        end[i] = i < last ? end[i + 1] : 0;
        if (i < last) begin[i + 1] = end[i + 1] = 0;
      }
    }
  }
  // The first tile of run i, of tiles of so many keys, that is not the last one of the run before.
  ANNULUS_ON_BOTH int first_tile(int i, int columns) const {
    const int first = begin[i] / columns;
    const int before = i == 0 ? 0 : (end[i - 1] + columns - 1) / columns;
    return first > before ? first : before;
  }
  ANNULUS_ON_BOTH int end_tile(int i, int columns) const {
    return (end[i] + columns - 1) / columns;
  }
  // How many tiles have a key that is seen.
  template <int kRuns = kMostRuns>
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

// The forms of a pattern: ascending, and the first one begins at or before every query.
struct RowForms {
  const RowForm* forms;
  int count;

  // The last one that begins at or before q, from form `from` on.
  ANNULUS_ON_BOTH int at(long long q, int from = 0) const {
    while (from + 1 < count && forms[from + 1].from <= q) ++from;
    return from;
  }
};

// The keys that queries at positions [q, q + queries) see, of `keys` keys whose first is at
// `k_position`. Of more than kMostRuns runs the last one spans the rest. The forms of `some` are
// what some of the heads at hand see, those of `all` what all of them see. Requires: queries >= 1.
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
    // Ends never descend, so that all queries see what lies between the last one's first key and
    // the first one's last key.
    const RowForm& form = all.forms[all_form];
    ANNULUS_UNROLL
    for (int i = 0; i < kMostRuns; ++i) {
      if (i >= form.runs) continue;
      runs.full_begin[i] = key_at(form.first[i].at(last_q));
      runs.full_end[i] = key_at(form.end[i].at(first_q));
    }
  }
  // Calls take(begin, end) for what the queries of each form see together of each of its runs.
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
  for (int count = 0; count < kMostRuns; ++count) {
    // The next key that is seen, and how far the keys behind it are seen as well.
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
        const bool goes_on = run_begin <= end || count == kMostRuns - 1;
        if (goes_on && run_begin < run_end && run_end > end) end = run_end;
      });
    }
    runs.begin[count] = begin;
    runs.end[count] = end;
    seen_up_to = end;
  }
  return runs;
}

// A tile of query rows of one request, as prepare_batch leaves it for the kernels.
struct alignas(16) BatchRow {
  int request;
  int q_row;       // the row of Q of its first query
  int queries;     // at least 1
  int position;    // of its first query
  int k_position;  // of the request's key 0
  int tiles;       // of keys, that some query sees
  int parts;       // of those tiles, at least 1
  int slot;        // of its first part, where it has several
  int column;      // the first one that it is for: BatchParams::row_columns
  int listed;      // keys of its list of blocks: no more are numbered by its tiles
  int keys;        // of the request, wherever they are
  KeyRuns runs;
};

// Part `part` of a row's tiles.
struct alignas(8) BatchWork {
  int row;
  int part;
};

// Where the pages of K or V are named: entry j / rows-of-a-page of request r is
// ids[r * width + entry], or ids[begin[r] + entry] where `begin` is not null.
struct PageTableParams {
  const int* ids;
  const int* begin;  // [requests + 1]
  long long width;
  long long entries;  // of `ids`, where `begin` is given
};

// Where the keys of a step lie, as the caller has said to prepare_batch.
struct KeyPlaces {
  PageTableParams k_pages;
  PageTableParams v_pages;
  const int* k_begin;  // [requests]: without pages, the row of K of a request's key 0; null: slabs
  const int* v_begin;
};

// What is wrong with a step: the first request that breaks a rule, and the first rule of those that
// it breaks. The rules are those of annulus::BatchRule.
struct BatchStatus {
  unsigned first;  // status_of() of them; kNothingWrong
};
enum : unsigned { kNothingWrong = 0xffffffffu };
enum Rule : unsigned {
  kTooManyRequests = 1,
  kWrongRows = 2,  // q_begin descends, is negative, ends beyond the bound, or is another's row
  kTooManyRowsOfOne = 3,
  kWrongKeys = 4,    // a length that is negative or beyond the bound of one request
  kTooFewPages = 5,  // a length beyond the request's entries, or beyond the rows of K or V
  kTooManyKeys = 6,  // of all requests up to this one
  kWrongPosition = 7,
  kNoSuchPage = 8,   // found by a run, in the entry of a key that is seen
  kWrongBlocks = 9,  // a block outside the request's keys, or named twice
  kWrongRowEnd = 10,
};
ANNULUS_ON_BOTH unsigned status_of(int request, Rule rule) {
  return static_cast<unsigned>(request) * 16u + rule;
}

// What single rows of Q may see besides the pattern, of each row; either may be null.
struct RowLimits {
  const int* row_end;  // only keys before this one
  // A row sees only those of its request's newest 64 keys whose bits are set: bit i is the i-th
  // newest one.
  const unsigned long long* tree_bits;
};
enum : int { kTreeKeys = 64 };

// The head of a workspace.
struct alignas(16) BatchHeader {
  int rows;
  int works;
  int joined;  // rows with several parts
  BatchStatus status;
  KeyPlaces places;
  RowLimits limits;
};

// A request's own numbers after clamping. `keys` are all of its keys, wherever they are.
struct alignas(16) BatchRequest {
  int q_begin;
  int queries;
  int keys;
  int k_position;
};

// The blocks of C keys that a head of K and V of a request looks at, as list_blocks leaves them:
// ascending, each once. Nothing is listed of blocks outside the request's keys.
struct BlockList {
  int count;
  int wrong;  // whether the caller's list broke kWrongBlocks
};
struct BlockTables {
  BlockList* lists;  // [most requests, Hkv]; null: there are no lists
  int* blocks;       // [most requests, Hkv, most]
  int most;
  int block_keys;  // C, a multiple of kBlockGrain
  // Key j of a list is in block j / C, which is j * block_factor >> block_shift.
  unsigned block_factor;
  int block_shift;
};
enum : int { kBlockGrain = 16 };

// The parts of a workspace.
struct BatchTables {
  BatchHeader* header;
  BatchRequest* requests;  // [most requests]
  int* row_begin;          // [most requests + 1]: the first tile of rows of each request
  BatchRow* rows;          // [most_rows]: those of a tile of rows one after the other
  BatchWork* works;        // [most_works]
  int* joined;             // [most_rows]: rows with several parts
  // The states of parts: [slots][column of the row][slot_rows], and acc with Dv numbers for each.
  float* acc;
  float* m;
  float* l;
  int most_requests;
  int most_rows;
  int most_works;
  int most_slots;
};

// What the heads of one BatchRow see: forms among PrepareParams::forms.
struct ColumnForms {
  int some, some_count;  // of what some head sees
  int all, all_count;    // of what all heads see
};

// A way to compute requests: those with so many queries, in tiles of rows of its own size, whose
// lists are its own. Every request has its class by the number of its queries.
struct BatchClass {
  BatchTables tables;
  int least_queries;
  int most_queries;
  int tile_queries;  // queries of a tile of rows
  int tile_columns;  // keys of a tile of keys
  int part_tiles;    // of keys, in a part
  int rows_of_tile;  // BatchRows of a tile of rows: one, or one for each column
  int head_tiles;    // BatchParams::head_tiles
  int padding;
  const ColumnForms* forms;  // [rows_of_tile]
};
enum : int { kMostClasses = 2 };

struct PrepareParams {
  const int* q_begin;     // [requests + 1]
  const int* k_length;    // [requests]
  const int* requests;    // null: most_requests
  const int* k_position;  // [requests], or null: 0
  KeyPlaces places;
  RowLimits limits;
  BatchClass classes[kMostClasses];  // one for each CTA
  const RowForm* forms;
  BlockTables listed;
  // Bounds: rows of Q, of one request, keys of one, of all.
  int rows;
  int rows_of_one;
  int keys_of_one;
  long long keys;
  int page_rows;  // 0: no pages
  int kv_heads;
  Interleave interleave;
};

// list_blocks: a CTA for each head of K and V of each request.
struct ListBlocksParams {
  const int* blocks;    // [most requests, Hkv, most]; -1: none
  const int* k_length;  // [requests]
  const int* requests;  // null: most_requests
  BlockTables listed;
  int most_requests;
  int kv_heads;
  int keys_of_one;
  int padding;
};
enum : int { kListThreads = 128 };

// What decode_forward and combine_parts get. Strides count elements.
struct BatchParams {
  const void* q;  // [rows, H, Dqk]
  const void* k;
  const void* v;
  void* o;              // [rows, H, Dv]
  float* lse;           // or null
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

  // Key j is in row j mod page_rows of page j / page_rows, which is j * page_factor >> page_shift.
  unsigned page_factor;
  int page_shift;
  int page_rows;
  int k_page_count;  // pages of K, or rows where there are no pages; a number outside is none
  int v_page_count;

  int heads;        // H
  int group;        // H / Hkv
  int tile_heads;   // heads of a tile of rows
  int head_tiles;   // tiles of a group's heads
  int columns;      // Hkv * head_tiles
  int row_columns;  // of a BatchRow: all, or one
  int part_tiles;
  int slot_rows;  // rows of a part's state: the most that a tile has
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
