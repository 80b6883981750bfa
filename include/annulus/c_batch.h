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
ANNULUS_EXPORT annulus_status annulus_held_keys(const annulus_key_interleave* interleave,
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

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ANNULUS_C_BATCH_H_
