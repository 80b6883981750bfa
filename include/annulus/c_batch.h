#ifndef ANNULUS_C_BATCH_H_
#define ANNULUS_C_BATCH_H_

// The C interface of batches of requests: annulus/batch.h, which explains what a request, a page
// and a step are; docs/embedding.md has the order of calls. The conventions are those at the top of
// annulus/c.h.
//
//   annulus_batch_plan_create(device, &problem, NULL, &plan);        once: compiles every kernel
//   annulus_batch_plan_workspace_bytes(plan, &bytes);
//   annulus_batch_plan_prepare(plan, stream, &metadata, workspace);  once a step of the model
//   annulus_batch_plan_run(plan, stream, &operands, workspace);      once a layer
//
// R requests have H query heads, Hkv key/value heads and head dims Dqk and Dv. A request with n
// queries and m keys is the problem with Sq = n and Sk = m whose queries are at the end of its
// keys.

#include "annulus/c.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct annulus_batch_plan annulus_batch_plan;

// ---- Problems

// The most that a step may have. Steps with less cost less; the plan's workspace and the size of
// its launches follow from these.
typedef struct annulus_batch_bounds {
  int64_t requests;     // 1 to 65535
  int64_t rows;         // of Q, of all requests together; at least 1
  int64_t rows_of_one;  // of one request; 0: `rows`
  int64_t keys_of_one;  // keys of one request; at least 1
  // Keys of all requests together; 0, or more than that: requests * keys_of_one. Keys that requests
  // share count as often as they are read.
  int64_t keys;
} annulus_batch_bounds;

// annulus::KeyInterleave: which keys of a request are at hand where ranks share them out. Key i of
// the whole request lies on rank i / block mod ranks, behind those that this rank has before it.
typedef struct annulus_key_interleave {
  int64_t block;  // at least 1; block x ranks up to 2^24
  int64_t ranks;  // 1 to 1024; 1: all keys are at hand
  int64_t rank;   // 0 to ranks - 1
} annulus_key_interleave;

#define ANNULUS_KEY_INTERLEAVE_INIT \
  { 1, 1, 0 }

// How many of the first `keys` keys of a request are on the rank, which go to *held.
// ANNULUS_INVALID_ARGUMENT where there is no such rank, or `keys` is negative or beyond 2^30.
ANNULUS_EXPORT annulus_status annulus_interleave_held_keys(const annulus_key_interleave* interleave,
                                                           int64_t keys, int64_t* held);

// annulus::BatchProblem.
typedef struct annulus_batch_problem {
  size_t struct_size;
  int64_t heads;     // H >= 1
  int64_t kv_heads;  // Hkv >= 1, divides H
  int64_t dim_qk;    // Dqk and Dv, as annulus_problem has them
  int64_t dim_v;
  // Which keys a query sees, as text (docs/patterns.md): "causal & window(511,0)". Null: dense. The
  // keys of a query are one run or a few; heads may differ, requests not.
  const char* pattern;
  // The score as text. It must not state a scale or a soft-cap that has_scale or softcap states as
  // well. A score expression gets the request's number as b. Null: nothing more.
  const char* score;
  double scale;               // of the scores, where has_scale; else 1 / sqrt(Dqk)
  double softcap;             // c > 0: score = c tanh(scale q.k / c); 0: none
  annulus_batch_bounds most;  // has no defaults
  // P, the rows of a page of K and of V; 0: no pages. Any number is right; multiples of 16 are
  // fast.
  int64_t page_rows;
  int32_t has_scale;  // 0 or 1
  int32_t dtype;      // ANNULUS_FLOAT16 or ANNULUS_BFLOAT16: of Q, K, V and O
  int32_t want_lse;   // 0 or 1: write LSE
  int32_t lse_base;   // annulus_lse_base of the LSE that is written
  int32_t carry_in;   // 0 or 1: start from a state of other keys
  int32_t carry_out;  // 0 or 1: write the state instead of O and LSE
  // C, the keys of a block; 0: no lists of blocks. With them a query sees the keys that the pattern
  // lets it see of the blocks that its head of K and V has listed (annulus_batch_metadata), and no
  // others. A multiple of 16.
  int64_t block_keys;
  int64_t most_blocks;  // entries of such a list; 1 to 2^18 with block_keys, else 0
  // 0 or 1: rows of Q have limits of their own (annulus_batch_metadata.row_end, tree_bits).
  int32_t row_limits;
  // With several ranks K and V have the keys of this one alone, while lengths, bounds, positions,
  // row_end and tree_bits count those of all ranks. Not with block_keys.
  annulus_key_interleave interleave;
} annulus_batch_problem;

#define ANNULUS_BATCH_PROBLEM_INIT                                                           \
  {                                                                                          \
    sizeof(annulus_batch_problem), 1, 1, 0, 0, NULL, NULL, 0.0, 0.0, {0, 0, 0, 0, 0}, 0, 0,  \
        ANNULUS_BFLOAT16, 0, ANNULUS_LSE_NATURAL, 0, 0, 0, 0, 0, ANNULUS_KEY_INTERLEAVE_INIT \
  }

// Whether the problem is valid, without a device; the error names the wrong value. Whether there is
// a kernel for its pattern, annulus_batch_plan_create says.
ANNULUS_EXPORT annulus_status annulus_batch_problem_validate(const annulus_batch_problem* problem);

typedef struct annulus_batch_options {
  size_t struct_size;
  // Requests whose queries see more keys than this are computed in parts of this many keys, side by
  // side, and joined. A request's answer depends on the number, and on nothing of the requests
  // beside it. A multiple of 128 from 128 to 2^20; 0: chosen from the bounds and the device, once
  // for the plan, and told by annulus_batch_plan_info.
  int64_t part_keys;
  // The most workspace; 0: no limit. A plan that needs more takes longer parts; where that is not
  // enough: ANNULUS_OUT_OF_MEMORY.
  int64_t max_workspace_bytes;
  // How many multiprocessors the plan's kernels may occupy; 0: all. Their number changes no bit.
  int32_t max_multiprocessors;
  // 0 or 1, for debugging: each run waits for its stream, reads the status that prepare has left,
  // and returns ANNULUS_INVALID_ARGUMENT where a request breaks a rule. It cannot be captured then.
  int32_t check_status;
  // The configurations of the kernels, as annulus_batch_plan_info.config tells them: texts that
  // ", " separates, at most one for each class of requests (few queries, many queries). A class for
  // which none is named has the one that it would have anyway; null: all have. Another
  // configuration may give other bits.
  const char* config;
} annulus_batch_options;

#define ANNULUS_BATCH_OPTIONS_INIT \
  { sizeof(annulus_batch_options), 0, 0, 0, 0, NULL }

// ---- Plans

// Decides, compiles and uploads: up to some seconds. Null options are the defaults. The plan is
// immutable and keeps what it needs of the device; any number of threads may use it at a time.
// Errors are those of annulus_batch_problem_validate, ANNULUS_INVALID_ARGUMENT for options out of
// range and a text that is no configuration, ANNULUS_UNSUPPORTED where the keys of a query are no
// few runs, the device has no kernel, or a configuration that was named is not possible,
// ANNULUS_OUT_OF_MEMORY, ANNULUS_COMPILE and ANNULUS_DEVICE. It has the default limit of work; a
// work scope takes its place.
ANNULUS_EXPORT annulus_status annulus_batch_plan_create(annulus_device* device,
                                                        const annulus_batch_problem* problem,
                                                        const annulus_batch_options* options,
                                                        annulus_batch_plan** plan);

// Does not wait and calls no driver: runs that were queued before may still be under way. A
// captured graph does not keep the plan, so it must outlive the graphs that were captured of it.
ANNULUS_EXPORT annulus_status annulus_batch_plan_destroy(annulus_batch_plan* plan);

// Everything that was decided.
typedef struct annulus_batch_plan_info {
  size_t struct_size;
  // The kernel of requests with few queries, then that of others. All numbers below that are of a
  // kernel are of the first.
  const char* config;
  const char* decisions;           // lines
  const char* specialised_source;  // what the compiler was given for it
  annulus_batch_bounds most;       // with those that were left to others
  double plan_ms;                  // time to decide
  double compile_ms;               // time to get the kernels, whatever their source
  int64_t part_keys;               // annulus_batch_options.part_keys, or what was chosen
  int64_t launches;                // of a run
  int64_t ctas;                    // of a run's persistent kernel
  int64_t threads;                 // of a CTA
  int64_t shared_bytes;            // of a CTA
  int64_t registers;               // of a thread; on a simulated device an estimate
  int64_t local_bytes;             // of a thread: spills
  // K and V that a multiprocessor has under way by construction, while a step is computed.
  int64_t bytes_under_way;
  int64_t device_bytes;  // memory that the plan holds
  // Where tuned results are from (annulus/c_tune.h), as annulus_plan_info.tuned, in the order of
  // `config` and with ", " between them; empty: there are none.
  const char* tuned;
} annulus_batch_plan_info;

#define ANNULUS_BATCH_PLAN_INFO_INIT                                                             \
  {                                                                                              \
    sizeof(annulus_batch_plan_info), NULL, NULL, NULL, {0, 0, 0, 0, 0}, 0.0, 0.0, 0, 0, 0, 0, 0, \
        0, 0, 0, 0, NULL                                                                         \
  }

ANNULUS_EXPORT annulus_status annulus_batch_plan_get_info(annulus_batch_plan* plan,
                                                          annulus_batch_plan_info* info);

// Device memory that prepare and the runs behind it share, 16-byte aligned: exact, and enough for
// every step within the bounds. It is never 0, and may hold anything before prepare. Steps that may
// be under way at a time need one each.
ANNULUS_EXPORT annulus_status annulus_batch_plan_workspace_bytes(annulus_batch_plan* plan,
                                                                 size_t* bytes);

// ---- Steps

// Names of pages, int32 in device memory. Page j of request r is ids[r * width + j], or
// ids[begin[r] + j] where `begin` is not null ([R + 1], ascending). Only entries of pages in which
// the pattern lets some query of the request see a key are read, whatever row_end and tree_bits
// say. Where the queries of a tile see more than three runs of keys together, entries between the
// third run and the last are read as well.
typedef struct annulus_page_table {
  const int32_t* ids;
  const int32_t* begin;
  int64_t width;  // entries of a row; ignored where `begin` is given
} annulus_page_table;

// What a step consists of. All arrays are int32 in device memory, 4-byte aligned, and belong to the
// caller. annulus_batch_plan_prepare reads them when the stream comes to it; page tables, k_begin
// and v_begin are read by every run as well, and must stay as they are until the last one has
// ended. The host reads none of them.
typedef struct annulus_batch_metadata {
  size_t struct_size;
  // [R + 1]: the rows of Q of request r are q_begin[r] up to q_begin[r + 1]. Ascending. Rows of no
  // request are neither read nor written.
  const int32_t* q_begin;
  const int32_t* k_length;    // [R]: keys of each request
  const int32_t* requests;    // [1]: how many of annulus_batch_bounds.requests there are; null: all
  const int32_t* k_position;  // [R]: the position of a request's key 0; null: 0
  // With pages. V has K's table where its own has no ids.
  annulus_page_table k_pages;
  annulus_page_table v_pages;
  // Without pages: [R], the row of K (of V) that is a request's key 0. Null: request r's keys begin
  // r * annulus_batch_strides.page elements behind the tensor's begin, and it has room for
  // keys_of_one. V has K's where its own is null.
  const int32_t* k_begin;
  const int32_t* v_begin;
  // With annulus_batch_problem.block_keys: [R, Hkv, most_blocks], the numbers of the blocks that a
  // head of K and V of a request looks at, in any order; -1 where there is none. Read by
  // annulus_batch_plan_prepare alone.
  const int32_t* blocks;
  // With annulus_batch_problem.row_limits, at least one of them; read by every run as well.
  // [rows]: a row of Q sees only the first row_end[row] keys of its request.
  const int32_t* row_end;
  // [rows], 8-byte aligned: of the newest 64 keys of its request a row of Q sees only those whose
  // bits are set; bit i is key k_length - 1 - i. A tree of drafts gives each row its ancestors'
  // bits and its own.
  const uint64_t* tree_bits;
  // The number of entries of `ids` of a page table that has `begin`. Begins beyond it are found,
  // and nothing outside is read. If it is 0, begins are not bounded.
  int64_t k_entries;
  int64_t v_entries;
} annulus_batch_metadata;

#define ANNULUS_BATCH_METADATA_INIT                                                           \
  {                                                                                           \
    sizeof(annulus_batch_metadata), NULL, NULL, NULL, NULL, {NULL, NULL, 0}, {NULL, NULL, 0}, \
        NULL, NULL, NULL, NULL, NULL, 0, 0                                                    \
  }

// Puts one launch on `stream`, two with lists of blocks, that make the lists of works of a step,
// which all runs with this workspace use until the next one. All layers of one shape share it. It
// allocates nothing, takes no lock and does not wait, and it may be captured in a graph. Errors are
// ANNULUS_INVALID_ARGUMENT for pointers that are missing, not aligned or not of such a problem, and
// ANNULUS_DEVICE.
ANNULUS_EXPORT annulus_status annulus_batch_plan_prepare(annulus_batch_plan* plan, void* stream,
                                                         const annulus_batch_metadata* metadata,
                                                         void* workspace);

// Distances in elements. Key j of a request, head h, is at page(j / P) * page + (j mod P) * row +
// h * head elements behind the begin of K or V. Multiples of 8; `row` is below 2^30. On sm_90a,
// where some request may have more than 64 rows of (query, head of a group), strides of Q, K and V
// with more than one entry lie above 0 and below 2^39, as does Q's from one group of heads to the
// next; `page` and `head` may also be 0.
typedef struct annulus_batch_strides {
  int64_t page;  // with pages; else from one request to the next, where k_begin is null
  int64_t row;
  int64_t head;
} annulus_batch_strides;

// Distances in elements between neighbours of a [rows, H, D] tensor; multiples of 8, of 1 for LSE.
typedef struct annulus_row_strides {
  int64_t row;
  int64_t head;
} annulus_row_strides;

// The tensors of one layer, in device memory. The caller owns them; they must stay until the work
// on the stream has ended. Base addresses are multiples of 16 bytes (of 4 for LSE, m and l). O may
// be Q, with the same strides, and state_out may be state_in; otherwise memory that is written
// overlaps nothing.
typedef struct annulus_batch_operands {
  size_t struct_size;
  const void* q;  // [rows, H, Dqk]
  const void* k;
  const void* v;
  void* o;     // [rows, H, Dv]; null with carry_out
  float* lse;  // [rows, H]; null unless want_lse
  annulus_row_strides q_strides;
  annulus_batch_strides k_strides;
  annulus_batch_strides v_strides;
  annulus_row_strides o_strides;
  annulus_row_strides lse_strides;
  // Pages that K and V have. A page number outside is no page: its keys are not seen, and the
  // status names the request. Without pages: rows that K and V have, with k_begin; of a request
  // whose keys go beyond them none is seen, and the status names it (ANNULUS_RULE_PAGES). 0: 2^31
  // - 1, whatever the numbers. Nothing outside is read or written if these are given.
  int64_t k_pages;
  int64_t v_pages;
  // Contiguous, fp32: acc [rows, H, Dv], m and l [rows, H].
  annulus_state state_in;   // with carry_in
  annulus_state state_out;  // with carry_out
} annulus_batch_operands;

#define ANNULUS_BATCH_OPERANDS_INIT                                                             \
  {                                                                                             \
    sizeof(annulus_batch_operands), NULL, NULL, NULL, NULL, NULL, {0, 0}, {0, 0, 0}, {0, 0, 0}, \
        {0, 0}, {0, 0}, 0, 0, {NULL, NULL, NULL}, {                                             \
      NULL, NULL, NULL                                                                          \
    }                                                                                           \
  }

// Puts the attention of one layer on `stream`, for the step that annulus_batch_plan_prepare was
// queued with last on this workspace. It allocates nothing, takes no lock and does not wait, and it
// may be captured in a graph, together with prepare or by itself; check_status is the exception.
// Errors are ANNULUS_INVALID_ARGUMENT for operands that the problem does not go with,
// ANNULUS_UNSUPPORTED for strides that no kernel takes, and ANNULUS_DEVICE.
ANNULUS_EXPORT annulus_status annulus_batch_plan_run(annulus_batch_plan* plan, void* stream,
                                                     const annulus_batch_operands* operands,
                                                     void* workspace);

// ---- What only the device can see

// Rules of a step; annulus::BatchRule. Later versions may add some.
typedef enum annulus_batch_rule {
  ANNULUS_RULE_NONE = 0,
  ANNULUS_RULE_REQUESTS = 1,     // there are more than planned, or a negative number
  ANNULUS_RULE_ROWS = 2,         // q_begin descends, is negative, ends beyond the bound, or names
                                 // rows that an earlier request has
  ANNULUS_RULE_ROWS_OF_ONE = 3,  // more rows than rows_of_one
  ANNULUS_RULE_KEYS = 4,         // a length that is negative or beyond keys_of_one
  ANNULUS_RULE_PAGES = 5,        // keys beyond the entries of its pages, entries beyond k_entries
                                 // or v_entries, or a negative begin; found by a run: without
                                 // pages, keys beyond the rows of K or V
  ANNULUS_RULE_ALL_KEYS = 6,     // with this request the keys of all are beyond the bound
  ANNULUS_RULE_POSITION = 7,     // positions beyond 2^30
  ANNULUS_RULE_PAGE = 8,         // a page number that is no page; found by a run
  ANNULUS_RULE_BLOCKS = 9,       // a block that has no key of the request, or is named twice
  ANNULUS_RULE_ROW_END = 10      // a row_end below 0 or beyond the request's keys
} annulus_batch_rule;

// "positions beyond 2^30", ...; "an unknown rule" for any other number.
ANNULUS_EXPORT const char* annulus_batch_rule_text(int rule);

// What prepare and the runs behind it have found. Where there are more requests than planned, the
// first of them are computed. A request that breaks ANNULUS_RULE_ROWS or _ROWS_OF_ONE has no
// queries, one that breaks another rule no keys (ANNULUS_RULE_PAGE: not those of that page;
// ANNULUS_RULE_BLOCKS: all others that it lists; ANNULUS_RULE_ROW_END: in that row none, or all);
// all other requests are right.
typedef struct annulus_batch_status {
  size_t struct_size;
  int64_t rule;     // annulus_batch_rule: the first that the request breaks
  int64_t request;  // the first that breaks one
} annulus_batch_status;

#define ANNULUS_BATCH_STATUS_INIT \
  { sizeof(annulus_batch_status), 0, 0 }

// Reads what was found up to now from a workspace on which prepare has run. It waits for the
// device's default stream, as annulus_device_copy_to_host; wait for other streams first. Not while
// a stream is being captured. A request that breaks a rule is no error of this call.
ANNULUS_EXPORT annulus_status annulus_batch_plan_get_status(annulus_batch_plan* plan,
                                                            const void* workspace,
                                                            annulus_batch_status* status);

// The C interface of appending new keys and values, and of rotary position embedding:
// annulus/batch.h, which explains what a slot and a rotation are. The conventions are those at the
// top of annulus/c.h.
//
//   annulus_append_plan_create(device, &problem, &plan);   once: compiles the kernel
//   annulus_append_plan_run(plan, stream, &operands);      once a layer, before
//                                                          annulus_batch_plan_run
//
// A step has some rows, each with H heads of Q, and Hkv heads of new K and V. P is the rows of a
// page.

typedef struct annulus_append_plan annulus_append_plan;

// ---- Problems

// How a row knows its place in K and V.
typedef enum annulus_append_place {
  ANNULUS_APPEND_SLOTS = 1,    // slot s is row s mod P of page s / P
  ANNULUS_APPEND_REQUESTS = 2  // row i of a request with n rows is key k_length - n + i
} annulus_append_place;

// Which elements of a head are rotated together, of the first rotary_dims ones.
typedef enum annulus_rotary_order {
  ANNULUS_ROTARY_NONE = 0,         // Q is not touched, and K is copied
  ANNULUS_ROTARY_INTERLEAVED = 1,  // 2 i and 2 i + 1
  ANNULUS_ROTARY_HALVES = 2        // i and i + rotary_dims / 2
} annulus_rotary_order;

// annulus::AppendProblem.
typedef struct annulus_append_problem {
  size_t struct_size;
  int64_t heads;     // H, of the Q that is rotated; 0: no Q
  int64_t kv_heads;  // Hkv >= 1
  int64_t dim_qk;    // Dqk and Dv: multiples of 8 from 8 to 1024
  int64_t dim_v;
  // The most that a step may have: `rows`, up to 2^27, and with ANNULUS_APPEND_REQUESTS `requests`
  // and `keys_of_one`. The others do not matter.
  annulus_batch_bounds most;
  int64_t page_rows;  // P; 0: no pages
  // Elements that are rotated: a multiple of 8, with ANNULUS_ROTARY_HALVES of 16. 0: Dqk.
  int64_t rotary_dims;
  // At least 1. Frequency i is rotary_base^(-2 i / rotary_dims) radians for each position, unless
  // `frequencies` has it.
  double rotary_base;
  // [rotary_dims / 2], in host memory, read by the call: radians for each position, from -4 to 4.
  // Null: from rotary_base.
  const double* frequencies;
  int32_t dtype;         // ANNULUS_FLOAT16 or ANNULUS_BFLOAT16: of Q, new K and V, and the pages
  int32_t place;         // annulus_append_place
  int32_t rotary_order;  // annulus_rotary_order
  // The cosines and sines come from tables of this dtype: ANNULUS_FLOAT32, ANNULUS_FLOAT16 or
  // ANNULUS_BFLOAT16. 0: they are computed.
  int32_t table_dtype;
  // With ANNULUS_APPEND_REQUESTS: K and V of a new key go to the rank that has it, and Q is rotated
  // on all.
  annulus_key_interleave interleave;
  // Entries of `frequencies`, compared with the pairs that are rotated; 0: not compared.
  size_t frequency_count;
} annulus_append_problem;

#define ANNULUS_APPEND_PROBLEM_INIT                                                   \
  {                                                                                   \
    sizeof(annulus_append_problem), 0, 1, 0, 0, {0, 0, 0, 0, 0}, 0, 0, 10000.0, NULL, \
        ANNULUS_BFLOAT16, ANNULUS_APPEND_SLOTS, ANNULUS_ROTARY_NONE, 0,               \
        ANNULUS_KEY_INTERLEAVE_INIT, 0                                                \
  }

// Whether the problem is valid, without a device; the error names the wrong value.
ANNULUS_EXPORT annulus_status
annulus_append_problem_validate(const annulus_append_problem* problem);

// ---- Plans

// Decides, compiles and uploads. The plan is immutable and keeps what it needs of the device; any
// number of threads may use it at a time. Errors are those of annulus_append_problem_validate,
// ANNULUS_OUT_OF_MEMORY, ANNULUS_COMPILE and ANNULUS_DEVICE.
ANNULUS_EXPORT annulus_status annulus_append_plan_create(annulus_device* device,
                                                         const annulus_append_problem* problem,
                                                         annulus_append_plan** plan);

// Does not wait and calls no driver: runs that were queued before may still be under way. A
// captured graph does not keep the plan, so it must outlive the graphs that were captured of it.
ANNULUS_EXPORT annulus_status annulus_append_plan_destroy(annulus_append_plan* plan);

// Everything that was decided.
typedef struct annulus_append_plan_info {
  size_t struct_size;
  const char* specialised_source;  // what the compiler was given
  double compile_ms;               // time to get the kernel, whatever its source
  int64_t rotary_dims;             // annulus_append_problem.rotary_dims, or its default
  int64_t threads;                 // of a CTA; there is one for each row of the bound
  int64_t registers;               // of a thread; on a simulated device an estimate
  int64_t local_bytes;             // of a thread: spills
  int64_t device_bytes;            // memory that the plan holds
} annulus_append_plan_info;

#define ANNULUS_APPEND_PLAN_INFO_INIT \
  { sizeof(annulus_append_plan_info), NULL, 0.0, 0, 0, 0, 0, 0 }

ANNULUS_EXPORT annulus_status annulus_append_plan_get_info(annulus_append_plan* plan,
                                                           annulus_append_plan_info* info);

// ---- Runs

// What a run reads and writes, in device memory, owned by the caller, who leaves it there until the
// work on the stream has ended. Base addresses of Q, K and V are multiples of 16 bytes, others of
// the size of a number; strides are multiples of 8 elements. What is written overlaps nothing else
// of the call, but rotated_q may be q, with the same strides.
typedef struct annulus_append_operands {
  size_t struct_size;
  // [rows, H, Dqk], with a rotation and heads above 0; else null.
  const void* q;
  void* rotated_q;
  const void* new_k;  // [rows, Hkv, Dqk]
  const void* new_v;  // [rows, Hkv, Dv]
  annulus_row_strides q_strides;
  annulus_row_strides rotated_q_strides;
  annulus_row_strides new_k_strides;
  annulus_row_strides new_v_strides;
  // As annulus_batch_operands has them. Without pages slot s is row s.
  void* k;
  void* v;
  annulus_batch_strides k_strides;
  annulus_batch_strides v_strides;
  // Pages (without pages: rows) that K and V have, so that a number outside is found. 0: 2^31 - 1.
  int64_t k_pages;
  int64_t v_pages;
  // With ANNULUS_APPEND_SLOTS one of them: [rows]. The K and V of a row with slot -1 are left out;
  // its Q is rotated. No two rows have the same slot: if they do, each 16 bytes there are those of
  // either row.
  const int64_t* slots;
  const int32_t* slots_32;
  // [1], with ANNULUS_APPEND_SLOTS: how many rows there are. Null: as many as the bound.
  const int32_t* rows;
  // With ANNULUS_APPEND_REQUESTS: what annulus_batch_plan_prepare gets, whose k_length counts the
  // new keys. Null otherwise.
  const annulus_batch_metadata* step;
  // With a rotation one of them, [rows]: the position of each row, within plus and minus 2^30. With
  // ANNULUS_APPEND_REQUESTS both may be null: then it is k_position plus the number of its key.
  const int64_t* positions;
  const int32_t* positions_32;
  // With table_dtype: [table_rows, rotary_dims / 2], table_stride elements from row to row.
  const void* cosines;
  const void* sines;
  int64_t table_stride;
  int64_t table_rows;
  // A word that is told what is wrong, by this run and those before it, from
  // annulus_append_plan_clear_status on. Null: nobody is told.
  uint32_t* status;
} annulus_append_operands;

#define ANNULUS_APPEND_OPERANDS_INIT                                                               \
  {                                                                                                \
    sizeof(annulus_append_operands), NULL, NULL, NULL, NULL, {0, 0}, {0, 0}, {0, 0}, {0, 0}, NULL, \
        NULL, {0, 0, 0}, {0, 0, 0}, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0,    \
        NULL                                                                                       \
  }

// Puts one launch on `stream`, whose size depends on the bounds alone. It allocates nothing, takes
// no lock and does not wait, and it may be captured in a graph. Errors are
// ANNULUS_INVALID_ARGUMENT for operands that the problem does not go with, ANNULUS_UNSUPPORTED for
// strides that no kernel takes, and ANNULUS_DEVICE.
ANNULUS_EXPORT annulus_status annulus_append_plan_run(annulus_append_plan* plan, void* stream,
                                                      const annulus_append_operands* operands);

// ---- What only the device can see

// Rules of a step; annulus::AppendRule. Later versions may add some.
typedef enum annulus_append_rule {
  ANNULUS_APPEND_RULE_NONE = 0,
  ANNULUS_APPEND_RULE_ROWS = 1,      // there are more rows than planned, or a negative number
  ANNULUS_APPEND_RULE_REQUESTS = 2,  // more requests than planned, or a negative number; or q_begin
                                     // is negative, descends or ends beyond the bound there
  ANNULUS_APPEND_RULE_SLOT = 3,      // a slot below -1 or beyond the pages
  ANNULUS_APPEND_RULE_KEY = 4,       // a row in front of its request's key 0, or a k_length that is
                                     // negative or beyond keys_of_one
  ANNULUS_APPEND_RULE_ENTRY = 5,     // a key beyond the entries of its request's pages, or beyond
                                     // the rows of K or V, or a negative begin
  ANNULUS_APPEND_RULE_PAGE = 6,      // a page number that is no page
  ANNULUS_APPEND_RULE_POSITION = 7   // a position beyond 2^30, or one that the tables lack
} annulus_append_rule;

// "a slot that is none", ...; "an unknown rule" for any other number.
ANNULUS_EXPORT const char* annulus_append_rule_text(int rule);

// A row that breaks ANNULUS_APPEND_RULE_POSITION is left out, as are those whose request has a
// wrong k_length or q_begin. Of a row that breaks another rule K and V are left out: neither is
// written where one has no place. All other rows are right.
typedef struct annulus_append_status {
  size_t struct_size;
  int64_t rule;  // annulus_append_rule: the first that the row breaks
  int64_t row;   // the first that breaks one; with ANNULUS_APPEND_RULE_REQUESTS the request
} annulus_append_status;

#define ANNULUS_APPEND_STATUS_INIT \
  { sizeof(annulus_append_status), 0, 0 }

// Puts on `stream` that the word at `word` says that nothing is wrong, as a run does its launch.
ANNULUS_EXPORT annulus_status annulus_append_plan_clear_status(annulus_append_plan* plan,
                                                               void* stream, uint32_t* word);

// What runs with this word have found up to now. It waits for the device's default stream, as
// annulus_device_copy_to_host; wait for other streams first. Not while a stream is being captured.
// A row that breaks a rule is no error of this call.
ANNULUS_EXPORT annulus_status annulus_append_plan_get_status(annulus_append_plan* plan,
                                                             const uint32_t* word,
                                                             annulus_append_status* status);

// The C interface of merging the answers over several sets of keys: annulus/merge.h, which
// explains what is computed. The conventions are those at the top of annulus/c.h.
//
//   annulus_merge_plan_create(device, &problem, &plan);   once: compiles the kernel
//   annulus_merge_plan_run(plan, stream, &operands);      once a layer, behind the runs that it
//                                                         merges
//
// H is the query heads, Dv the head dim of V and O.

typedef struct annulus_merge_plan annulus_merge_plan;

// ---- Problems

// The most inputs of a problem.
#define ANNULUS_MOST_MERGE_INPUTS 16

// What an answer over some of the keys is.
typedef enum annulus_partial_form {
  ANNULUS_PARTIAL_OUTPUTS = 1,  // O and LSE
  ANNULUS_PARTIAL_STATES = 2    // acc, m and l, as annulus/problem.h has them
} annulus_partial_form;

// annulus::MergeProblem.
typedef struct annulus_merge_problem {
  size_t struct_size;
  int64_t heads;      // H >= 1
  int64_t dim_v;      // Dv: a multiple of 8 from 8 to 1024
  int64_t inputs;     // 2 to ANNULUS_MOST_MERGE_INPUTS
  int64_t most_rows;  // the most rows of a run; together with the heads below 2^31
  int32_t dtype;      // ANNULUS_FLOAT16 or ANNULUS_BFLOAT16: of all O
  int32_t lse_base;   // annulus_lse_base: of all LSE
  int32_t form;       // annulus_partial_form of the inputs
  // 0 or 1: write the state over all keys instead of O and LSE; with ANNULUS_PARTIAL_STATES.
  int32_t carry_out;
  // 0 or 1: annulus_merge_operands.sink_logits are given. Not with carry_out.
  int32_t sink_logits;
} annulus_merge_problem;

#define ANNULUS_MERGE_PROBLEM_INIT                                                    \
  {                                                                                   \
    sizeof(annulus_merge_problem), 1, 0, 2, 0, ANNULUS_BFLOAT16, ANNULUS_LSE_NATURAL, \
        ANNULUS_PARTIAL_OUTPUTS, 0, 0                                                 \
  }

// Whether the problem is valid, without a device; the error names the wrong value.
ANNULUS_EXPORT annulus_status annulus_merge_problem_validate(const annulus_merge_problem* problem);

// ---- Plans

// Decides and compiles. The plan is immutable and keeps what it needs of the device; any number of
// threads may use it at a time. Errors are those of annulus_merge_problem_validate, ANNULUS_COMPILE
// and ANNULUS_DEVICE.
ANNULUS_EXPORT annulus_status annulus_merge_plan_create(annulus_device* device,
                                                        const annulus_merge_problem* problem,
                                                        annulus_merge_plan** plan);

// Does not wait and calls no driver: runs that were queued before may still be under way. A
// captured graph does not keep the plan, so it must outlive the graphs that were captured of it.
ANNULUS_EXPORT annulus_status annulus_merge_plan_destroy(annulus_merge_plan* plan);

// Everything that was decided.
typedef struct annulus_merge_plan_info {
  size_t struct_size;
  const char* specialised_source;  // what the compiler was given
  double compile_ms;               // time to get the kernel, whatever its source
  int64_t ctas;                    // of a run
  int64_t threads;                 // of a CTA
  int64_t registers;               // of a thread; on a simulated device an estimate
  int64_t local_bytes;             // of a thread: spills
} annulus_merge_plan_info;

#define ANNULUS_MERGE_PLAN_INFO_INIT \
  { sizeof(annulus_merge_plan_info), NULL, 0.0, 0, 0, 0, 0 }

ANNULUS_EXPORT annulus_status annulus_merge_plan_get_info(annulus_merge_plan* plan,
                                                          annulus_merge_plan_info* info);

// ---- Runs

// A row of a head whose LSE is -inf, or whose l is 0, has seen no key: it counts for nothing, and
// its O or acc is not read.
typedef struct annulus_merge_input {
  const void* o;        // [rows, H, Dv]; null with ANNULUS_PARTIAL_STATES
  const float* lse;     // [rows, H] in any order; likewise
  annulus_state state;  // with ANNULUS_PARTIAL_STATES: contiguous. Only read.
} annulus_merge_input;

// What a run reads and writes, in device memory, owned by the caller, who leaves it there until the
// work on the stream has ended. Base addresses of O are multiples of 16 bytes, others of 4; strides
// count elements, those of O multiples of 8. What is written overlaps nothing else of the call, but
// `o` and `lse` may be those of the first input, with the same strides, and `state` that of the
// first input.
typedef struct annulus_merge_operands {
  size_t struct_size;
  // As many as the problem has, in host memory, read by the call alone.
  const annulus_merge_input* inputs;
  annulus_row_strides input_o_strides;    // of every input
  annulus_row_strides input_lse_strides;  // of every input
  void* o;                                // [rows, H, Dv]
  float* lse;                             // [rows, H] in any order; null: not written
  annulus_row_strides o_strides;
  annulus_row_strides lse_strides;
  // [1]: how many rows there are, up to most_rows. A larger number counts as that, a negative one
  // as 0. Null: all. Others are neither read nor written.
  const int32_t* rows;
  // [H], with annulus_merge_problem.sink_logits: each counts once, as a key without a value.
  const float* sink_logits;
  annulus_state state;  // with carry_out in place of O and LSE: contiguous
  // The number of entries of `inputs`. It must be the problem's number of inputs, or 0 if it is not
  // to be compared.
  size_t input_count;
} annulus_merge_operands;

#define ANNULUS_MERGE_OPERANDS_INIT                                                               \
  {                                                                                               \
    sizeof(annulus_merge_operands), NULL, {0, 0}, {0, 0}, NULL, NULL, {0, 0}, {0, 0}, NULL, NULL, \
        {NULL, NULL, NULL}, 0                                                                     \
  }

// Puts one launch on `stream`, whose size depends on the bounds alone. It allocates nothing, takes
// no lock and does not wait, and it may be captured in a graph. Errors are
// ANNULUS_INVALID_ARGUMENT for operands that the problem does not go with, and ANNULUS_DEVICE.
ANNULUS_EXPORT annulus_status annulus_merge_plan_run(annulus_merge_plan* plan, void* stream,
                                                     const annulus_merge_operands* operands);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ANNULUS_C_BATCH_H_
