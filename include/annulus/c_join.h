#ifndef ANNULUS_C_JOIN_H_
#define ANNULUS_C_JOIN_H_

// The C interface of joining partial answers over ranks, and of gathering queries in front of that:
// annulus/join.h, which has the laws and what goes where. The conventions are those at the top of
// annulus/c.h, but a run may wait for the other ranks, as annulus_communicator_exchange does.
//
//   annulus_join_plan_create(device, ranks, &problem, &plan);        on every rank
//   annulus_join_plan_workspace_bytes(plan, &bytes);
//   annulus_join_plan_run(plan, stream, &operands, workspace);       once a layer, on every rank

#include "annulus/c_communicator.h"
#include "annulus/c_merge.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct annulus_join_plan annulus_join_plan;
typedef struct annulus_gather_plan annulus_gather_plan;

// ---- Joins

typedef enum annulus_joined_slices {
  ANNULUS_JOIN_ALL = 1,    // every rank gets all rows of all heads
  ANNULUS_JOIN_HEADS = 2,  // a rank gets all rows of its heads
  ANNULUS_JOIN_ROWS = 3    // a rank gets its rows of all heads
} annulus_joined_slices;

// The rows, or heads, [*begin, *end) of slice `rank` of `ranks` of `count`.
// ANNULUS_INVALID_ARGUMENT where there is no such slice.
ANNULUS_EXPORT annulus_status annulus_slice_of(int64_t count, int32_t ranks, int32_t rank,
                                               int64_t* begin, int64_t* end);

// annulus::JoinProblem.
typedef struct annulus_join_problem {
  size_t struct_size;
  int64_t heads;        // H >= 1
  int64_t dim_v;        // Dv: a multiple of 8 from 8 to 1024
  int64_t most_rows;    // of a run; at least 1
  int32_t dtype;        // ANNULUS_FLOAT16 or ANNULUS_BFLOAT16: of all O
  int32_t lse_base;     // annulus_lse_base: of all LSE, on every rank
  int32_t slices;       // annulus_joined_slices
  int32_t form;         // annulus_partial_form of the partial answers
  int32_t carry_out;    // 0 or 1: leave the state over all keys; with ANNULUS_PARTIAL_STATES
  int32_t sink_logits;  // 0 or 1: annulus_join_operands.sink_logits are given; not with carry_out
} annulus_join_problem;

#define ANNULUS_JOIN_PROBLEM_INIT                                                 \
  {                                                                               \
    sizeof(annulus_join_problem), 1, 0, 0, ANNULUS_BFLOAT16, ANNULUS_LSE_NATURAL, \
        ANNULUS_JOIN_ALL, ANNULUS_PARTIAL_OUTPUTS, 0, 0                           \
  }

// Whether the problem is valid, without a device; the error names the wrong value.
ANNULUS_EXPORT annulus_status annulus_join_problem_validate(const annulus_join_problem* problem);

// Decides and compiles; every rank calls it, and none waits for another. The plan keeps what it
// needs of device and communicator. Errors are those of annulus_join_problem_validate,
// ANNULUS_INVALID_ARGUMENT for a communicator of another device, ANNULUS_UNSUPPORTED for more than
// ANNULUS_MOST_MERGE_INPUTS ranks, ANNULUS_COMPILE and ANNULUS_DEVICE.
ANNULUS_EXPORT annulus_status annulus_join_plan_create(annulus_device* device,
                                                       annulus_communicator* communicator,
                                                       const annulus_join_problem* problem,
                                                       annulus_join_plan** plan);

// Calls no driver: runs that were queued before may still be under way.
ANNULUS_EXPORT annulus_status annulus_join_plan_destroy(annulus_join_plan* plan);

// Everything that was decided.
typedef struct annulus_join_plan_info {
  size_t struct_size;
  const char* reason;  // why it is done in so many exchanges
  double compile_ms;   // time to get the kernels, whatever their source
  int64_t rank;
  int64_t ranks;
  int64_t exchanges;   // groups of messages, one after another, of a run of most_rows
  int64_t bytes_sent;  // by this rank in such a run
} annulus_join_plan_info;

#define ANNULUS_JOIN_PLAN_INFO_INIT \
  { sizeof(annulus_join_plan_info), NULL, 0.0, 0, 0, 0, 0 }

ANNULUS_EXPORT annulus_status annulus_join_plan_get_info(annulus_join_plan* plan,
                                                         annulus_join_plan_info* info);

// Scratch memory that any run needs, 256-byte aligned: what is sent and what comes.
ANNULUS_EXPORT annulus_status annulus_join_plan_workspace_bytes(annulus_join_plan* plan,
                                                                size_t* bytes);

// What a run reads and writes, in device memory, owned by the caller, who leaves it there until the
// work on the stream has ended. Base addresses of O and acc are multiples of 16 bytes, others of 4;
// strides count elements, those of O multiples of 8. What is written overlaps nothing else.
typedef struct annulus_join_operands {
  size_t struct_size;
  int64_t rows;      // 0 to most_rows, the same on every rank
  const void* o;     // [rows, H, Dv]: this rank's partial answer
  const float* lse;  // [rows, H] in any order
  // With ANNULUS_PARTIAL_STATES in place of these two: contiguous. Only read.
  annulus_state state;
  const float* sink_logits;  // [H], the same on every rank
  annulus_row_strides o_strides;
  annulus_row_strides lse_strides;
  void* joined_o;              // [rows of the slice, heads of the slice, Dv]
  float* joined_lse;           // [rows of the slice, heads of the slice]; null: not written
  annulus_state joined_state;  // with carry_out in place of these two: contiguous
  annulus_row_strides joined_o_strides;
  annulus_row_strides joined_lse_strides;
} annulus_join_operands;

#define ANNULUS_JOIN_OPERANDS_INIT                                                                \
  {                                                                                               \
    sizeof(annulus_join_operands), 0, NULL, NULL, {NULL, NULL, NULL}, NULL, {0, 0}, {0, 0}, NULL, \
        NULL, {NULL, NULL, NULL}, {0, 0}, {                                                       \
      0, 0                                                                                        \
    }                                                                                             \
  }

// Puts the work on `stream` and returns when NCCL has queued its messages. All ranks call it with
// as many rows. It allocates nothing of its own. ANNULUS_INVALID_ARGUMENT before anything is
// queued, and what annulus_communicator_exchange returns.
ANNULUS_EXPORT annulus_status annulus_join_plan_run(annulus_join_plan* plan, void* stream,
                                                    const annulus_join_operands* operands,
                                                    void* workspace);

// ---- Queries of all heads

// annulus::GatherProblem: rows of Q of which each rank has those of its heads
// (annulus_slice_of(heads, ranks, rank)), to all heads on all ranks.
typedef struct annulus_gather_problem {
  size_t struct_size;
  int64_t heads;      // H >= 1, of all ranks together
  int64_t dim;        // of a head: a multiple of 8 from 8 to 1024
  int64_t most_rows;  // of a run; at least 1
  int64_t dtype;      // ANNULUS_FLOAT16 or ANNULUS_BFLOAT16
} annulus_gather_problem;

#define ANNULUS_GATHER_PROBLEM_INIT \
  { sizeof(annulus_gather_problem), 1, 0, 0, ANNULUS_BFLOAT16 }

// As annulus_join_plan_create, with what the problem may have wrong.
ANNULUS_EXPORT annulus_status annulus_gather_plan_create(annulus_device* device,
                                                         annulus_communicator* communicator,
                                                         const annulus_gather_problem* problem,
                                                         annulus_gather_plan** plan);
ANNULUS_EXPORT annulus_status annulus_gather_plan_destroy(annulus_gather_plan* plan);
ANNULUS_EXPORT annulus_status annulus_gather_plan_workspace_bytes(annulus_gather_plan* plan,
                                                                  size_t* bytes);

// As annulus_join_operands.
typedef struct annulus_gather_operands {
  size_t struct_size;
  int64_t rows;    // 0 to most_rows, the same on every rank
  const void* q;   // [rows, heads of this rank, dim]; ignored where it has none
  void* gathered;  // [rows, H, dim]
  annulus_row_strides q_strides;
  annulus_row_strides gathered_strides;
} annulus_gather_operands;

#define ANNULUS_GATHER_OPERANDS_INIT                                 \
  {                                                                  \
    sizeof(annulus_gather_operands), 0, NULL, NULL, {0, 0}, { 0, 0 } \
  }

// As annulus_join_plan_run: a launch, one exchange, and a launch.
ANNULUS_EXPORT annulus_status annulus_gather_plan_run(annulus_gather_plan* plan, void* stream,
                                                      const annulus_gather_operands* operands,
                                                      void* workspace);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ANNULUS_C_JOIN_H_
