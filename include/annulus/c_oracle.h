#ifndef ANNULUS_C_ORACLE_H_
#define ANNULUS_C_ORACLE_H_

// The C interface of states in host memory, annulus/state.h, and of the oracle, annulus/oracle.h:
// attention in float64 on the host, and the comparison of an answer with it. The conventions are
// those at the top of annulus/c.h. All memory here is the caller's host memory, and no device is
// needed.
//
//   annulus_reference_create(&problem, &inputs, NULL, &reference);
//   annulus_reference_compare(reference, &result, &made);
//   if (!made.within_tolerance) complain(made.first_wrong);

#include "annulus/c.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- States

// The version of the meaning of acc, m and l, which annulus/state.h explains. States of different
// versions do not merge.
#define ANNULUS_STATE_VERSION 1

typedef struct annulus_host_state {
  size_t struct_size;
  int64_t version;  // ANNULUS_STATE_VERSION
  int64_t rows;
  int64_t dim_v;
  float* acc;  // [rows, dim_v]
  float* m;    // [rows]
  float* l;    // [rows]; 0 where no key was visible
} annulus_host_state;

#define ANNULUS_HOST_STATE_INIT \
  { sizeof(annulus_host_state), ANNULUS_STATE_VERSION, 0, 0, NULL, NULL, NULL }

// Writes the state of no keys.
ANNULUS_EXPORT annulus_status annulus_state_clear(const annulus_host_state* state);
// Writes to the arrays of `into` the state of the union of both key sets, which must be disjoint.
// `into` has the rows and dim_v of both, and may be either of them.
ANNULUS_EXPORT annulus_status annulus_state_merge(const annulus_host_state* a,
                                                  const annulus_host_state* b,
                                                  const annulus_host_state* into);
// Writes O, [rows, dim_v], and LSE, [rows], in an annulus_lse_base: an empty row gives 0 and -inf.
ANNULUS_EXPORT annulus_status annulus_state_finish(const annulus_host_state* state,
                                                   int32_t lse_base, float* o, float* lse);

// ---- The oracle

// Host copies of Q, K and V, bits of the problem's dtype, laid out as on the device.
typedef struct annulus_host_inputs {
  size_t struct_size;
  const void* q;  // [B, Sq, H, Dqk] in the order of q_strides
  const void* k;  // [B, Sk, Hkv, Dqk]
  const void* v;  // [B, Sk, Hkv, Dv]
  annulus_strides q_strides;
  annulus_strides k_strides;
  annulus_strides v_strides;
  const annulus_host_state* state_in;  // B H Sq rows, with carry_in
  const float* scale_q;                // with e4m3, as in annulus_operands
  const float* scale_k;
  const float* scale_v;
  int64_t broadcast_rows;  // 0 or 1: as in annulus_operands
} annulus_host_inputs;

#define ANNULUS_HOST_INPUTS_INIT                                                                \
  {                                                                                             \
    sizeof(annulus_host_inputs), NULL, NULL, NULL, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, NULL, NULL, \
        NULL, NULL, 0                                                                           \
  }

// Called with the share of the rows that is done, from one thread at a time, not always the
// caller's.
typedef void (*annulus_oracle_callback)(void* user, double share);

typedef struct annulus_reference_options {
  size_t struct_size;
  // Above this many questions to the pattern, B H Sq Sk, only some rows are computed: the first and
  // the last tile_rows rows of every (batch, head), and sampled_rows more, drawn from the seed.
  int64_t max_pairs;
  int64_t tile_rows;
  int64_t sampled_rows;
  uint64_t seed;
  int64_t threads;  // that share the rows; 0: one for each processor of this process
  annulus_oracle_callback progress;  // null: none
  void* progress_user;
} annulus_reference_options;

#define ANNULUS_REFERENCE_OPTIONS_INIT \
  { sizeof(annulus_reference_options), INT64_C(1) << 31, 128, 256, 0, 0, NULL, NULL }

typedef struct annulus_reference annulus_reference;

// Null options are the defaults. Errors are those of annulus_problem_validate, and
// ANNULUS_INVALID_ARGUMENT where inputs lack what the problem reads.
ANNULUS_EXPORT annulus_status annulus_reference_create(const annulus_problem* problem,
                                                       const annulus_host_inputs* inputs,
                                                       const annulus_reference_options* options,
                                                       annulus_reference** reference);
ANNULUS_EXPORT annulus_status annulus_reference_destroy(annulus_reference* reference);

// The answer for the rows that were computed; the arrays belong to the handle.
typedef struct annulus_reference_rows {
  size_t struct_size;
  int64_t count;  // rows; all B H Sq where `sampled` is 0
  int64_t dim_v;
  const int64_t* rows;     // (b H + h) Sq + i, ascending
  const double* o;         // [count, dim_v]; 0 in empty rows
  const double* m;         // [count], base 2; -inf in empty rows
  const double* l;         // [count]; 0 in empty rows
  const uint8_t* tainted;  // [count]: 1 where an operand that the row reads is not finite
  int32_t sampled;         // 0 or 1
} annulus_reference_rows;

#define ANNULUS_REFERENCE_ROWS_INIT \
  { sizeof(annulus_reference_rows), 0, 0, NULL, NULL, NULL, NULL, NULL, 0 }

ANNULUS_EXPORT annulus_status annulus_reference_get(annulus_reference* reference,
                                                    annulus_reference_rows* rows);

// The results of a kernel, copied to host memory: O and perhaps LSE, or the state that it carried
// out.
typedef struct annulus_host_result {
  size_t struct_size;
  const uint16_t* o;  // [B, Sq, H, Dv] in the order of o_strides, bits of the output dtype
  annulus_strides o_strides;
  const float* lse;                 // [B, H, Sq] contiguous, in the problem's base; null: none
  const annulus_host_state* state;  // instead of the others, with carry_out
  // [B, H, Sq]: rows that are not compared, as annulus_reached_rows writes them; null: none.
  const uint8_t* excused;
} annulus_host_result;

#define ANNULUS_HOST_RESULT_INIT \
  { sizeof(annulus_host_result), NULL, {0, 0, 0}, NULL, NULL, NULL }

// The largest errors that an answer may have.
typedef struct annulus_tolerance {
  size_t struct_size;
  double row;        // relative L2 error of a row
  double frobenius;  // relative Frobenius error of a (batch, head)
  double lse;        // |difference| / max(1, |LSE|)
} annulus_tolerance;

#define ANNULUS_TOLERANCE_INIT \
  { sizeof(annulus_tolerance), 0.0, 0.0, 0.0 }

// The tolerance for Q, K and V of an annulus_dtype; docs/architecture.md explains it.
ANNULUS_EXPORT annulus_status annulus_tolerance_get(int32_t dtype, annulus_tolerance* tolerance);

// Relative errors; annulus/oracle.h says relative to what. Infinity marks an error that no
// tolerance allows.
typedef struct annulus_comparison {
  size_t struct_size;
  double error_row_max;
  double error_o;
  double error_lse;  // 0 where no LSE was written; the error of m + log2(l) with a carried state
  int64_t checked_rows;
  int64_t tainted_rows;      // not compared: an operand they read is not finite
  int64_t wrong_rows;        // beyond the tolerance of a row or of an LSE
  int32_t within_tolerance;  // 0 or 1; also 1 where no row was compared: look at checked_rows
  char first_wrong[252];     // position and values of the first wrong row; empty: none
} annulus_comparison;

#define ANNULUS_COMPARISON_INIT                                  \
  {                                                              \
    sizeof(annulus_comparison), 0.0, 0.0, 0.0, 0, 0, 0, 0, { 0 } \
  }

// Compares an answer with the reference of its problem. Differences are no error: look at
// `comparison`.
ANNULUS_EXPORT annulus_status annulus_reference_compare(annulus_reference* reference,
                                                        const annulus_host_result* result,
                                                        annulus_comparison* comparison);

// Writes reached [B, H, Sq]: 1 where a NaN or an infinity in an operand may reach the row, because
// the row's tiles read it. tile_rows and tile_columns are those of the plan.
ANNULUS_EXPORT annulus_status annulus_reached_rows(const annulus_problem* problem,
                                                   const annulus_host_inputs* inputs,
                                                   int64_t tile_rows, int64_t tile_columns,
                                                   uint8_t* reached);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // ANNULUS_C_ORACLE_H_
