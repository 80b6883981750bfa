#ifndef ANNULUS_C_SELECTION_H_
#define ANNULUS_C_SELECTION_H_

// The C interface of blocks that each run chooses on the device: annulus/selection.h,
// annulus/recall.h and annulus/importance.h say what is chosen, measured and changed. The
// conventions are those at the top of annulus/c.h.
//
//   selection.max_blocks = 32;
//   annulus_plan_create_selected(device, &problem, &selection, NULL, &plan);
//   annulus_plan_run(plan, stream, &operands, workspace);      chooses, lists, attends

#include "annulus/c.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum annulus_selection_rule {
  ANNULUS_TOP_K = 1,  // the best max_blocks of a row
  ANNULUS_TOP_P = 2,  // the best ones, until together they have `mass` of the row's softmax
  ANNULUS_GIVEN = 3   // what the caller lists in annulus_selection_buffers
} annulus_selection_rule;

// How a block is scored.
typedef enum annulus_pool {
  ANNULUS_POOL_MEAN = 1,         // mean of Q's rows . mean of K's rows
  ANNULUS_POOL_MAX = 2,          // maximum of Q's rows . maximum of K's rows
  ANNULUS_POOL_ANTIDIAGONAL = 3  // products on antidiagonals, 1 / stride of all
} annulus_pool;

typedef struct annulus_selection {
  size_t struct_size;
  int64_t block_rows;     // R >= 1
  int64_t block_columns;  // C >= 1
  int32_t rule;           // annulus_selection_rule
  int32_t pool;           // annulus_pool
  // Blocks of a row, including those that are always kept. Top p: at most this many; 0: no bound.
  // Given: entries of a row of `given`.
  int64_t max_blocks;
  double mass;     // p of top p, in (0, 1]
  int64_t stride;  // S of the antidiagonals: divides R and C, C / S is a power of two up to 64
  int64_t coarse_factor;    // f of 2 or more: blocks of f R x f C are scored first; 0: no such pass
  int64_t coarse_blocks;    // how many of these are kept in each row
  int64_t sink_blocks;      // the first blocks of columns, always kept where visible
  int64_t diagonal_blocks;  // at the row's own positions and before; 0: none
} annulus_selection;

#define ANNULUS_SELECTION_INIT \
  { sizeof(annulus_selection), 128, 128, ANNULUS_TOP_K, ANNULUS_POOL_MEAN, 0, 0.95, 16, 0, 0, 1, 1 }

// The other functions of plans take this one too. ANNULUS_UNSUPPORTED as well where the pattern is
// a sum or has blocks() of its own.
ANNULUS_EXPORT annulus_status annulus_plan_create_selected(annulus_device* device,
                                                           const annulus_problem* problem,
                                                           const annulus_selection* selection,
                                                           const annulus_plan_options* options,
                                                           annulus_plan** plan);

// Device memory of one run besides the operands, 4-byte aligned; it must stay until the work on the
// stream has ended.
typedef struct annulus_selection_buffers {
  size_t struct_size;
  // With ANNULUS_GIVEN, else null: block columns [B, H, rows, max_blocks], in any order; -1, and
  // any number that is no visible block of the row, is skipped.
  const int32_t* given;
  // Null, or memory for the chosen blocks: [B, H, rows, max_chosen], ascending, then -1.
  int32_t* chosen;
  int64_t max_chosen;  // entries of a row of `chosen`; a row with more blocks writes only the first
                       // ones
} annulus_selection_buffers;

#define ANNULUS_SELECTION_BUFFERS_INIT \
  { sizeof(annulus_selection_buffers), NULL, NULL, 0 }

// annulus_plan_run for a plan with a selection that reads or writes more than the operands. A plan
// without one is ANNULUS_INVALID_ARGUMENT. Null buffers mean none.
ANNULUS_EXPORT annulus_status annulus_plan_run_selected(annulus_plan* plan, void* stream,
                                                        const annulus_operands* operands,
                                                        void* workspace,
                                                        const annulus_selection_buffers* buffers);

// ---- Recall: how much of the attention a sparse run saw

typedef struct annulus_recall_meter annulus_recall_meter;

// `problem` is that of the runs that are judged; it has want_lse. Any number of threads may run one
// at a time.
ANNULUS_EXPORT annulus_status annulus_recall_meter_create(annulus_device* device,
                                                          const annulus_problem* problem,
                                                          const annulus_plan_options* options,
                                                          annulus_recall_meter** meter);
ANNULUS_EXPORT annulus_status annulus_recall_meter_destroy(annulus_recall_meter* meter);
// Scratch memory that every concurrent run needs of its own, 16-byte aligned.
ANNULUS_EXPORT annulus_status annulus_recall_meter_workspace_bytes(annulus_recall_meter* meter,
                                                                   size_t* bytes);
// Writes recall, fp32 [B, H, Sq] in device memory: the share of each query's softmax mass that
// belongs to the pairs attended to; 1 for a query that sees no key. `operands` are those of the
// run, whose LSEs operands->lse holds by then; Q, K and V must be as they were in the run.
// Asynchronous, as annulus_plan_run.
ANNULUS_EXPORT annulus_status annulus_recall_meter_run(annulus_recall_meter* meter, void* stream,
                                                       const annulus_operands* operands,
                                                       float* recall, void* workspace);
// Summarises recalls in host memory; without any, both numbers are 1.
ANNULUS_EXPORT annulus_status annulus_recall_summarise(const float* recall, size_t count,
                                                       double* mean, double* least);

// ---- Importance: kept blocks that change little by little

typedef struct annulus_importance_tracker annulus_importance_tracker;

typedef struct annulus_tracker_options {
  size_t struct_size;
  int64_t max_added;    // blocks of a row that one update may add
  int64_t max_dropped;  // blocks of a row that one update may drop
} annulus_tracker_options;

#define ANNULUS_TRACKER_OPTIONS_INIT \
  { sizeof(annulus_tracker_options), 1, 1 }

// `problem`, which has want_lse, and `selection`, of rule ANNULUS_GIVEN, are those of the plan
// whose runs are measured. Null options are the defaults. Any number of threads may use one at a
// time, each with a state and a workspace of its own.
ANNULUS_EXPORT annulus_status annulus_importance_tracker_create(
    annulus_device* device, const annulus_problem* problem, const annulus_selection* selection,
    const annulus_tracker_options* options, annulus_importance_tracker** tracker);
ANNULUS_EXPORT annulus_status
annulus_importance_tracker_destroy(annulus_importance_tracker* tracker);
// state: masses of all blocks, kept by the caller between calls, 16-byte aligned, zeros before the
// first. workspace: scratch memory of every call, likewise aligned. Either may be null.
ANNULUS_EXPORT annulus_status annulus_importance_tracker_sizes(annulus_importance_tracker* tracker,
                                                               size_t* state_bytes,
                                                               size_t* workspace_bytes);
// Adds the mass that each kept block received in the run of these operands, whose LSEs
// operands->lse holds. All pointers are device memory. Asynchronous, as annulus_plan_run.
ANNULUS_EXPORT annulus_status annulus_importance_tracker_measure(
    annulus_importance_tracker* tracker, void* stream, const annulus_operands* operands,
    const int32_t* given, void* state, void* workspace);
// Changes `given`, [B, H, rows, max_blocks], and sets the masses back to 0.
ANNULUS_EXPORT annulus_status annulus_importance_tracker_update(annulus_importance_tracker* tracker,
                                                                void* stream,
                                                                const annulus_operands* operands,
                                                                int32_t* given, void* state,
                                                                void* workspace);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ANNULUS_C_SELECTION_H_
