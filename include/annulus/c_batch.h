#ifndef ANNULUS_C_BATCH_H_
#define ANNULUS_C_BATCH_H_

// The C interface of batches of requests, of appending keys and values, and of merging results over
// several sets of keys: annulus/batch.h and annulus/merge.h, whose declarations have the full
// meaning. The conventions are at the top of annulus/c.h; docs/embedding.md has the order of calls.
//
//   annulus_append_plan_create(device, &append, &append_plan);        // once
//   annulus_batch_plan_create(device, &problem, NULL, &plan);         // once
//   annulus_batch_plan_workspace_bytes(plan, &bytes);
//   annulus_batch_plan_prepare(plan, stream, &metadata, workspace);   // once a step of the model
//   annulus_append_plan_run(append_plan, stream, &append_operands);   // once a layer
//   annulus_batch_plan_run(plan, stream, &operands, workspace);       // once a layer
//
// Rules of all plans here. A plan is immutable, any number of threads may use it at a time, and it
// keeps what it needs of the device alive. Destroying a plan does not wait and calls no driver:
// runs that were queued before may still be executing. A captured graph does not keep its plan
// alive. Functions with a `stream` put launches on it and return: they allocate nothing, take no
// lock and do not wait, and they may be captured in a graph. The caller owns all device memory,
// which must stay until the work on the stream has ended. Functions that read a status wait for the
// device's default stream, so wait for other streams first, and do not call them during a capture.
//
// Letters: R requests, H query heads, Hkv key/value heads, head dims Dqk and Dv, P rows of a page.

#include "annulus/c.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- Batches

typedef struct annulus_batch_plan annulus_batch_plan;

// The C form of annulus::BatchBounds.
typedef struct annulus_batch_bounds {
  int64_t requests;     // 1 to 65535
  int64_t rows;         // rows of Q of all requests together; at least 1
  int64_t rows_of_one;  // rows of Q of one request; 0: `rows`
  int64_t keys_of_one;  // keys of one request; at least 1
  int64_t keys;         // keys of all requests together; 0: requests * keys_of_one
} annulus_batch_bounds;

// The C form of annulus::KeyInterleave: key i of the whole request is on rank i / block mod ranks.
typedef struct annulus_key_interleave {
  int64_t block;  // at least 1; block x ranks is at most 2^24
  int64_t ranks;  // 1 to 1024; 1: one rank holds all keys
  int64_t rank;   // 0 to ranks - 1
} annulus_key_interleave;
#define ANNULUS_KEY_INTERLEAVE_INIT \
  { 1, 1, 0 }

// Calls annulus::held_keys for the first `keys` keys of a request.
ANNULUS_EXPORT annulus_status annulus_interleave_held_keys(const annulus_key_interleave* interleave,
                                                           int64_t keys, int64_t* held);

// The C form of annulus::BatchProblem.
typedef struct annulus_batch_problem {
  size_t struct_size;
  int64_t heads;     // H >= 1
  int64_t kv_heads;  // Hkv >= 1, divides H
  int64_t dim_qk;    // Dqk and Dv, as in annulus_problem
  int64_t dim_v;
  const char* pattern;  // visible keys of each query, as text (docs/patterns.md); null: all
  // The score as text. It must not repeat a scale or a soft-cap that has_scale or softcap sets. b
  // of a score expression is the request's number. Null: no other terms.
  const char* score;
  double scale;               // scale of the scores if has_scale, else 1 / sqrt(Dqk)
  double softcap;             // c > 0: score = c tanh(scale q.k / c); 0: none
  annulus_batch_bounds most;  // bounds of a step; without defaults
  int64_t page_rows;          // P, the rows of a page of K and of V; 0: no pages
  int32_t has_scale;          // 0 or 1
  int32_t dtype;              // dtype of Q, K, V and O: ANNULUS_FLOAT16 or ANNULUS_BFLOAT16
  int32_t want_lse;           // 0 or 1: write LSE
  int32_t lse_base;           // annulus_lse_base of the LSE that is written
  int32_t carry_in;           // 0 or 1: start from a state of other keys
  int32_t carry_out;          // 0 or 1: write the state instead of O and LSE
  int64_t block_keys;         // C, the keys of a block; a multiple of 16; 0: no lists of blocks
  int64_t max_blocks;         // entries of a list; 1 to 2^18 with block_keys, else 0
  int32_t row_limits;         // 0 or 1: annulus_batch_metadata.row_end or tree_bits is set
  annulus_key_interleave interleave;  // the keys that this rank holds; not with block_keys
} annulus_batch_problem;
#define ANNULUS_BATCH_PROBLEM_INIT                                                           \
  {                                                                                          \
    sizeof(annulus_batch_problem), 1, 1, 0, 0, NULL, NULL, 0.0, 0.0, {0, 0, 0, 0, 0}, 0, 0,  \
        ANNULUS_BFLOAT16, 0, ANNULUS_LSE_NATURAL, 0, 0, 0, 0, 0, ANNULUS_KEY_INTERLEAVE_INIT \
  }

// Checks the problem without a device; the error names the wrong value. Only
// annulus_batch_plan_create finds out whether there is a kernel for its pattern.
ANNULUS_EXPORT annulus_status annulus_batch_problem_validate(const annulus_batch_problem* problem);

// The C form of annulus::BatchOptions.
typedef struct annulus_batch_options {
  size_t struct_size;
  int64_t part_keys;            // keys of a part: a multiple of 128 from 128 to 2^20; 0: chosen
  int64_t max_workspace_bytes;  // 0: no limit; if it is too small: ANNULUS_OUT_OF_MEMORY
  int32_t max_multiprocessors;  // 0: all
  int32_t check_status;         // 0 or 1, for debugging: runs wait, and check the status
  const char* config;           // configurations of the kernels; null: chosen
} annulus_batch_options;
#define ANNULUS_BATCH_OPTIONS_INIT \
  { sizeof(annulus_batch_options), 0, 0, 0, 0, NULL }

// Calls annulus::plan_batch. It takes up to some seconds.
ANNULUS_EXPORT annulus_status annulus_batch_plan_create(annulus_device* device,
                                                        const annulus_batch_problem* problem,
                                                        const annulus_batch_options* options,
                                                        annulus_batch_plan** plan);
ANNULUS_EXPORT annulus_status annulus_batch_plan_destroy(annulus_batch_plan* plan);

// The C form of annulus::BatchInfo. Numbers of a kernel are for few queries.
typedef struct annulus_batch_plan_info {
  size_t struct_size;
  const char* config;     // the kernel for requests with few queries, then the kernel for others
  const char* decisions;  // lines
  const char* specialised_source;  // the compiled source
  annulus_batch_bounds most;       // the bounds with defaults filled in
  double plan_ms;                  // time to decide
  double compile_ms;               // time to find or compile the kernels
  int64_t part_keys;               // annulus_batch_options.part_keys, or the number that was chosen
  int64_t launches;                // launches of a run
  int64_t ctas;                    // CTAs of a run's persistent kernel
  int64_t threads;                 // threads of a CTA
  int64_t shared_bytes;            // shared memory of a CTA
  int64_t registers;               // registers of a thread; an estimate on a simulated device
  int64_t local_bytes;             // local memory of a thread: spills
  int64_t bytes_under_way;         // bytes of K and V in flight on a multiprocessor by design
  int64_t device_bytes;            // memory that the plan holds
  const char* tuned;  // sources of tuned configurations, separated by ", "; empty: none
} annulus_batch_plan_info;
#define ANNULUS_BATCH_PLAN_INFO_INIT                                                             \
  {                                                                                              \
    sizeof(annulus_batch_plan_info), NULL, NULL, NULL, {0, 0, 0, 0, 0}, 0.0, 0.0, 0, 0, 0, 0, 0, \
        0, 0, 0, 0, NULL                                                                         \
  }

ANNULUS_EXPORT annulus_status annulus_batch_plan_get_info(annulus_batch_plan* plan,
                                                          annulus_batch_plan_info* info);

// Stores the bytes of device memory that prepare and the runs after it share, 16-byte aligned. It
// is never 0. Steps that may execute at the same time need separate workspaces.
ANNULUS_EXPORT annulus_status annulus_batch_plan_workspace_bytes(annulus_batch_plan* plan,
                                                                 size_t* bytes);

// ---- Steps

// The C form of annulus::PageTable.
typedef struct annulus_page_table {
  const int32_t* ids;
  const int32_t* begin;  // [R + 1], or null
  int64_t width;         // entries of a row; ignored if `begin` is not null
} annulus_page_table;

// The C form of annulus::BatchMetadata: int32 arrays in device memory, 4-byte aligned.
typedef struct annulus_batch_metadata {
  size_t struct_size;
  const int32_t*
      q_begin;  // [R + 1], ascending: request r has rows q_begin[r] to q_begin[r + 1] - 1
  const int32_t* k_length;     // [R]: keys of each request
  const int32_t* requests;     // [1]: the number of requests of this step; null: the bound
  const int32_t* k_position;   // [R]: the position of a request's key 0; null: 0
  annulus_page_table k_pages;  // K's pages
  annulus_page_table v_pages;  // V's pages; null ids: K's table
  // Without pages, [R]: the row of K (of V) with a request's first key. If v_begin is null, V uses
  // k_begin. If both are null, request r begins at r * annulus_batch_strides.page.
  const int32_t* k_begin;
  const int32_t* v_begin;
  const int32_t* blocks;  // [R, Hkv, max_blocks] with block_keys, padded with -1
  // With row_limits, at least one of the two, [rows]. tree_bits is 8-byte aligned.
  const int32_t* row_end;
  const uint64_t* tree_bits;
  // The number of entries of `ids` in a page table with `begin`. 0: not checked.
  int64_t k_entries;
  int64_t v_entries;
} annulus_batch_metadata;
#define ANNULUS_BATCH_METADATA_INIT                                                           \
  {                                                                                           \
    sizeof(annulus_batch_metadata), NULL, NULL, NULL, NULL, {NULL, NULL, 0}, {NULL, NULL, 0}, \
        NULL, NULL, NULL, NULL, NULL, 0, 0                                                    \
  }

// Makes the lists of work for a step (see annulus::BatchPlan::prepare).
ANNULUS_EXPORT annulus_status annulus_batch_plan_prepare(annulus_batch_plan* plan, void* stream,
                                                         const annulus_batch_metadata* metadata,
                                                         void* workspace);

// Distances in elements in K and V (see annulus::BatchStrides).
typedef struct annulus_batch_strides {
  int64_t page;  // between pages; without pages and k_begin, between requests
  int64_t row;
  int64_t head;
} annulus_batch_strides;

// Distances in elements in a [rows, H, D] tensor; multiples of 8, of 1 for LSE.
typedef struct annulus_row_strides {
  int64_t row;
  int64_t head;
} annulus_row_strides;

// The C form of annulus::BatchOperands: the tensors of one layer, in device memory.
typedef struct annulus_batch_operands {
  size_t struct_size;
  const void* q;  // [rows, H, Dqk]
  const void* k;
  const void* v;
  void* o;     // [rows, H, Dv]; null with carry_out
  float* lse;  // [rows, H]; null without want_lse
  annulus_row_strides q_strides;
  annulus_batch_strides k_strides;
  annulus_batch_strides v_strides;
  annulus_row_strides o_strides;
  annulus_row_strides lse_strides;
  // The number of pages (without pages: rows) of K and V, to detect numbers outside. 0: 2^31 - 1.
  int64_t k_pages;
  int64_t v_pages;
  annulus_state state_in;   // the state to start from; with carry_in
  annulus_state state_out;  // the state to write; with carry_out
} annulus_batch_operands;
#define ANNULUS_BATCH_OPERANDS_INIT                                                             \
  {                                                                                             \
    sizeof(annulus_batch_operands), NULL, NULL, NULL, NULL, NULL, {0, 0}, {0, 0, 0}, {0, 0, 0}, \
        {0, 0}, {0, 0}, 0, 0, {NULL, NULL, NULL}, {                                             \
      NULL, NULL, NULL                                                                          \
    }                                                                                           \
  }

// Computes the attention of one layer for the step of the last annulus_batch_plan_prepare on the
// workspace (see annulus::BatchPlan::run). With check_status it waits and cannot be captured.
ANNULUS_EXPORT annulus_status annulus_batch_plan_run(annulus_batch_plan* plan, void* stream,
                                                     const annulus_batch_operands* operands,
                                                     void* workspace);

// ---- Errors that only the device can find

// The C form of annulus::BatchRule. Later versions may add rules.
typedef enum annulus_batch_rule {
  ANNULUS_RULE_NONE = 0,
  ANNULUS_RULE_REQUESTS = 1,
  ANNULUS_RULE_ROWS = 2,
  ANNULUS_RULE_ROWS_OF_ONE = 3,
  ANNULUS_RULE_KEYS = 4,
  ANNULUS_RULE_PAGES = 5,
  ANNULUS_RULE_ALL_KEYS = 6,
  ANNULUS_RULE_POSITION = 7,
  ANNULUS_RULE_PAGE = 8,
  ANNULUS_RULE_BLOCKS = 9,
  ANNULUS_RULE_ROW_END = 10
} annulus_batch_rule;

// "positions beyond 2^30", ...; "an unknown rule" for any other number.
ANNULUS_EXPORT const char* annulus_batch_rule_text(int rule);

// The first rule that was broken; annulus::BatchStatus has the consequences.
typedef struct annulus_batch_status {
  size_t struct_size;
  int64_t rule;     // annulus_batch_rule: the first rule that the request breaks
  int64_t request;  // the first request that breaks a rule
} annulus_batch_status;
#define ANNULUS_BATCH_STATUS_INIT \
  { sizeof(annulus_batch_status), 0, 0 }
// Reads the errors in a workspace after prepare. A broken rule is not an error of this call.
ANNULUS_EXPORT annulus_status annulus_batch_plan_get_status(annulus_batch_plan* plan,
                                                            const void* workspace,
                                                            annulus_batch_status* status);

// ---- Appending keys and values, and rotary position embedding

typedef struct annulus_append_plan annulus_append_plan;

// How the place of a row in K and V is determined (see annulus::AppendPlace).
typedef enum annulus_append_place {
  ANNULUS_APPEND_SLOTS = 1,    // slot s is row s mod P of page s / P
  ANNULUS_APPEND_REQUESTS = 2  // row i of a request with n rows is key k_length - n + i
} annulus_append_place;

// Which two of the first rotary_dims elements of a head form pair i (see annulus::RotaryOrder).
typedef enum annulus_rotary_order {
  ANNULUS_ROTARY_NONE = 0,         // no rotation: Q is not used, and K is copied
  ANNULUS_ROTARY_INTERLEAVED = 1,  // elements 2 i and 2 i + 1
  ANNULUS_ROTARY_HALVES = 2        // elements i and i + rotary_dims / 2
} annulus_rotary_order;

// The C form of annulus::AppendProblem.
typedef struct annulus_append_problem {
  size_t struct_size;
  int64_t heads;     // H, heads of Q that are rotated; 0: no Q
  int64_t kv_heads;  // Hkv >= 1
  int64_t dim_qk;    // Dqk and Dv: multiples of 8 from 8 to 1024
  int64_t dim_v;
  // The largest step: `rows`, up to 2^27, and with ANNULUS_APPEND_REQUESTS `requests` and
  // `keys_of_one`. Other fields are ignored.
  annulus_batch_bounds most;
  int64_t page_rows;  // P; 0: no pages
  int64_t
      rotary_dims;  // rotated elements: a multiple of 8, of 16 with ANNULUS_ROTARY_HALVES; 0: Dqk
  double rotary_base;  // base of the frequencies; at least 1
  // [rotary_dims / 2] in host memory, which only the call reads: radians per position, from -4 to
  // 4. Null: computed from rotary_base.
  const double* frequencies;
  int32_t dtype;  // dtype of Q, new K and V, and the pages: ANNULUS_FLOAT16 or ANNULUS_BFLOAT16
  int32_t place;  // annulus_append_place
  int32_t rotary_order;               // annulus_rotary_order
  int32_t table_dtype;                // annulus_dtype of tables of cosines and sines; 0: no tables
  annulus_key_interleave interleave;  // the keys of this rank, with ANNULUS_APPEND_REQUESTS
  size_t frequency_count;             // entries of `frequencies`, for a check; 0: not checked
} annulus_append_problem;
#define ANNULUS_APPEND_PROBLEM_INIT                                                   \
  {                                                                                   \
    sizeof(annulus_append_problem), 0, 1, 0, 0, {0, 0, 0, 0, 0}, 0, 0, 10000.0, NULL, \
        ANNULUS_BFLOAT16, ANNULUS_APPEND_SLOTS, ANNULUS_ROTARY_NONE, 0,               \
        ANNULUS_KEY_INTERLEAVE_INIT, 0                                                \
  }

// Checks the problem without a device; the error names the wrong value.
ANNULUS_EXPORT annulus_status
annulus_append_problem_validate(const annulus_append_problem* problem);

// Calls annulus::plan_append.
ANNULUS_EXPORT annulus_status annulus_append_plan_create(annulus_device* device,
                                                         const annulus_append_problem* problem,
                                                         annulus_append_plan** plan);
ANNULUS_EXPORT annulus_status annulus_append_plan_destroy(annulus_append_plan* plan);

// The C form of annulus::AppendInfo.
typedef struct annulus_append_plan_info {
  size_t struct_size;
  const char* specialised_source;  // the compiled source
  double compile_ms;               // time to find or compile the kernel
  int64_t rotary_dims;             // annulus_append_problem.rotary_dims, or its default
  int64_t threads;                 // threads of a CTA; each row of the bound has a CTA
  int64_t registers;               // registers of a thread; an estimate on a simulated device
  int64_t local_bytes;             // local memory of a thread: spills
  int64_t device_bytes;            // memory that the plan holds
} annulus_append_plan_info;
#define ANNULUS_APPEND_PLAN_INFO_INIT \
  { sizeof(annulus_append_plan_info), NULL, 0.0, 0, 0, 0, 0, 0 }

ANNULUS_EXPORT annulus_status annulus_append_plan_get_info(annulus_append_plan* plan,
                                                           annulus_append_plan_info* info);

// The C form of annulus::AppendOperands: the tensors of one run, in device memory.
typedef struct annulus_append_operands {
  size_t struct_size;
  const void* q;      // [rows, H, Dqk], with a rotation and heads above 0; else null
  void* rotated_q;    // like q
  const void* new_k;  // [rows, Hkv, Dqk]
  const void* new_v;  // [rows, Hkv, Dv]
  annulus_row_strides q_strides;
  annulus_row_strides rotated_q_strides;
  annulus_row_strides new_k_strides;
  annulus_row_strides new_v_strides;
  // K and V are as in annulus_batch_operands. Without pages, slot s is row s.
  void* k;
  void* v;
  annulus_batch_strides k_strides;
  annulus_batch_strides v_strides;
  int64_t k_pages;
  int64_t v_pages;
  // With ANNULUS_APPEND_SLOTS, one of the two: [rows]; -1: K and V of the row are not written.
  const int64_t* slots;
  const int32_t* slots_32;
  const int32_t* rows;  // [1], with ANNULUS_APPEND_SLOTS: rows of this step; null: all
  // With ANNULUS_APPEND_REQUESTS: the metadata for annulus_batch_plan_prepare, whose k_length
  // counts the new keys. Null otherwise.
  const annulus_batch_metadata* step;
  // With a rotation, one of the two: [rows], from -2^30 to 2^30. With ANNULUS_APPEND_REQUESTS both
  // may be null: then a row's position is k_position plus the number of its key.
  const int64_t* positions;
  const int32_t* positions_32;
  // With table_dtype: [table_rows, rotary_dims / 2], table_stride elements from row to row.
  const void* cosines;
  const void* sines;
  int64_t table_stride;
  int64_t table_rows;
  uint32_t* status;  // the word to which runs write errors; null: errors are not reported
} annulus_append_operands;
#define ANNULUS_APPEND_OPERANDS_INIT                                                               \
  {                                                                                                \
    sizeof(annulus_append_operands), NULL, NULL, NULL, NULL, {0, 0}, {0, 0}, {0, 0}, {0, 0}, NULL, \
        NULL, {0, 0, 0}, {0, 0, 0}, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0,    \
        NULL                                                                                       \
  }

// Appends the rows of one step (see annulus::AppendPlan::run).
ANNULUS_EXPORT annulus_status annulus_append_plan_run(annulus_append_plan* plan, void* stream,
                                                      const annulus_append_operands* operands);

// The C form of annulus::AppendRule. Later versions may add rules.
typedef enum annulus_append_rule {
  ANNULUS_APPEND_RULE_NONE = 0,
  ANNULUS_APPEND_RULE_ROWS = 1,
  ANNULUS_APPEND_RULE_REQUESTS = 2,
  ANNULUS_APPEND_RULE_SLOT = 3,
  ANNULUS_APPEND_RULE_KEY = 4,
  ANNULUS_APPEND_RULE_ENTRY = 5,
  ANNULUS_APPEND_RULE_PAGE = 6,
  ANNULUS_APPEND_RULE_POSITION = 7
} annulus_append_rule;

// "a slot that does not exist", ...; "an unknown rule" for any other number.
ANNULUS_EXPORT const char* annulus_append_rule_text(int rule);

// The first rule that was broken; annulus::AppendStatus has the consequences.
typedef struct annulus_append_status {
  size_t struct_size;
  int64_t rule;  // annulus_append_rule: the first rule that the row breaks
  int64_t row;   // the first such row; with ANNULUS_APPEND_RULE_REQUESTS, the request
} annulus_append_status;
#define ANNULUS_APPEND_STATUS_INIT \
  { sizeof(annulus_append_status), 0, 0 }

// Sets the word to "no error" in stream order.
ANNULUS_EXPORT annulus_status annulus_append_plan_clear_status(annulus_append_plan* plan,
                                                               void* stream, uint32_t* word);

// Reads the errors of runs with this word. A broken rule is not an error of this call.
ANNULUS_EXPORT annulus_status annulus_append_plan_get_status(annulus_append_plan* plan,
                                                             const uint32_t* word,
                                                             annulus_append_status* status);

// ---- Merging results over several sets of keys

typedef struct annulus_merge_plan annulus_merge_plan;

// The most inputs of a problem.
#define ANNULUS_MAX_MERGE_INPUTS 16

// The form of a result over some of the keys (see annulus::PartialForm).
typedef enum annulus_partial_form {
  ANNULUS_PARTIAL_OUTPUTS = 1,  // O and LSE
  ANNULUS_PARTIAL_STATES = 2    // acc, m and l, as in annulus/problem.h
} annulus_partial_form;

// The C form of annulus::MergeProblem.
typedef struct annulus_merge_problem {
  size_t struct_size;
  int64_t heads;        // H >= 1
  int64_t dim_v;        // Dv: a multiple of 8 from 8 to 1024
  int64_t inputs;       // 2 to ANNULUS_MAX_MERGE_INPUTS
  int64_t max_rows;     // the most rows of a run; rows times heads is below 2^31
  int32_t dtype;        // dtype of every O: ANNULUS_FLOAT16 or ANNULUS_BFLOAT16
  int32_t lse_base;     // annulus_lse_base of every LSE
  int32_t form;         // annulus_partial_form of the inputs
  int32_t carry_out;    // 0 or 1, with ANNULUS_PARTIAL_STATES: write the state instead of O and LSE
  int32_t sink_logits;  // 0 or 1: annulus_merge_operands.sink_logits is set; not with carry_out
} annulus_merge_problem;
#define ANNULUS_MERGE_PROBLEM_INIT                                                    \
  {                                                                                   \
    sizeof(annulus_merge_problem), 1, 0, 2, 0, ANNULUS_BFLOAT16, ANNULUS_LSE_NATURAL, \
        ANNULUS_PARTIAL_OUTPUTS, 0, 0                                                 \
  }

// Checks the problem without a device; the error names the wrong value.
ANNULUS_EXPORT annulus_status annulus_merge_problem_validate(const annulus_merge_problem* problem);

// Calls annulus::plan_merge.
ANNULUS_EXPORT annulus_status annulus_merge_plan_create(annulus_device* device,
                                                        const annulus_merge_problem* problem,
                                                        annulus_merge_plan** plan);
ANNULUS_EXPORT annulus_status annulus_merge_plan_destroy(annulus_merge_plan* plan);

// The C form of annulus::MergeInfo.
typedef struct annulus_merge_plan_info {
  size_t struct_size;
  const char* specialised_source;  // the compiled source
  double compile_ms;               // time to find or compile the kernel
  int64_t ctas;                    // CTAs of a run
  int64_t threads;                 // threads of a CTA
  int64_t registers;               // registers of a thread; an estimate on a simulated device
  int64_t local_bytes;             // local memory of a thread: spills
} annulus_merge_plan_info;
#define ANNULUS_MERGE_PLAN_INFO_INIT \
  { sizeof(annulus_merge_plan_info), NULL, 0.0, 0, 0, 0, 0 }

ANNULUS_EXPORT annulus_status annulus_merge_plan_get_info(annulus_merge_plan* plan,
                                                          annulus_merge_plan_info* info);

// The C form of annulus::MergeInput. If the LSE of a row of a head is -inf, or its l is 0, the row
// is empty and its O or acc is not read.
typedef struct annulus_merge_input {
  const void* o;        // [rows, H, Dv]; null with ANNULUS_PARTIAL_STATES
  const float* lse;     // [rows, H] in any order; null with ANNULUS_PARTIAL_STATES
  annulus_state state;  // the input with ANNULUS_PARTIAL_STATES: contiguous, only read
} annulus_merge_input;

// The C form of annulus::MergeOperands: the tensors of one run, in device memory.
typedef struct annulus_merge_operands {
  size_t struct_size;
  // The inputs of the problem, in host memory, which only the call reads.
  const annulus_merge_input* inputs;
  annulus_row_strides input_o_strides;    // strides of every input
  annulus_row_strides input_lse_strides;  // strides of every input
  void* o;                                // [rows, H, Dv]
  float* lse;                             // [rows, H] in any order; null: not written
  annulus_row_strides o_strides;
  annulus_row_strides lse_strides;
  const int32_t* rows;       // [1]: rows of this run, clamped to [0, max_rows]; null: max_rows
  const float* sink_logits;  // [H], with annulus_merge_problem.sink_logits
  annulus_state state;       // the contiguous state to write with carry_out
  size_t input_count;        // entries of `inputs`, for a check; 0: not checked
} annulus_merge_operands;
#define ANNULUS_MERGE_OPERANDS_INIT                                                               \
  {                                                                                               \
    sizeof(annulus_merge_operands), NULL, {0, 0}, {0, 0}, NULL, NULL, {0, 0}, {0, 0}, NULL, NULL, \
        {NULL, NULL, NULL}, 0                                                                     \
  }

// Merges the inputs (see annulus::MergePlan::run).
ANNULUS_EXPORT annulus_status annulus_merge_plan_run(annulus_merge_plan* plan, void* stream,
                                                     const annulus_merge_operands* operands);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ANNULUS_C_BATCH_H_
