#ifndef ANNULUS_C_MERGE_H_
#define ANNULUS_C_MERGE_H_

// The C interface of merging the answers over several sets of keys: annulus/merge.h, which explains
// what is computed. The conventions are those at the top of annulus/c.h.
//
//   annulus_merge_plan_create(device, &problem, &plan);   once: compiles the kernel
//   annulus_merge_plan_run(plan, stream, &operands);      once a layer, behind the runs that it
//                                                         merges
//
// H is the query heads, Dv the head dim of V and O.

#include "annulus/c_batch.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct annulus_merge_plan annulus_merge_plan;

// ---- Problems

// The most inputs of a problem.
#define ANNULUS_MOST_MERGE_INPUTS 16

// What an answer over some of the keys is.
typedef enum annulus_partial_form {
  ANNULUS_PARTIAL_OUTPUTS = 1,  // O and LSE
  ANNULUS_PARTIAL_STATES = 2    // acc, m and l, as annulus/state.h has them
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

#endif  // ANNULUS_C_MERGE_H_
