#ifndef ANNULUS_C_APPEND_H_
#define ANNULUS_C_APPEND_H_

// The C interface of appending new keys and values, and of rotary position embedding:
// annulus/append.h, which explains what a slot and a rotation are. The conventions are those at the
// top of annulus/c.h.
//
//   annulus_append_plan_create(device, &problem, &plan);   once: compiles the kernel
//   annulus_append_plan_run(plan, stream, &operands);      once a layer, before
//                                                          annulus_batch_plan_run
//
// A step has some rows, each with H heads of Q, and Hkv heads of new K and V. P is the rows of a
// page.

#include "annulus/c_batch.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ANNULUS_C_APPEND_H_
