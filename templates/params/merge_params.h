#ifndef ANNULUS_PARAMS_MERGE_PARAMS_H_
#define ANNULUS_PARAMS_MERGE_PARAMS_H_

// The argument of merge_outputs: the contract between the host (src/batch) and the template. Plain
// C++ for NVRTC and the host compiler, like batch_params.h. Strides count elements.

#include "params/batch_params.h"

namespace annulus::kernels {

enum : int {
  kMaxMerged = 16,
  kMergeThreads = 128,
  kMergeResident = 4,                         // CTAs for which one multiprocessor has registers
  kMergeHeads = kMergeThreads / kRowThreads,  // heads of rows that a CTA merges
};

// Inputs are O and LSE of several sets of keys, [rows, H, Dv] and [rows, H]; the result is O and
// LSE of the union of the sets. With states, acc takes the place of O and m the place of LSE, and
// all arrays are contiguous.
struct MergeParams {
  // One array for each input; all inputs have the same strides.
  const void* o[kMaxMerged];
  const float* lse[kMaxMerged];
  const float* l[kMaxMerged];  // only with states; the same layout as m
  long long o_row, o_head;
  long long lse_row, lse_head;

  void* merged_o;     // may be o[0]
  float* merged_lse;  // may be lse[0]; null: LSE is not written
  long long merged_o_row, merged_o_head;
  long long merged_lse_row, merged_lse_head;

  float* merged_l;     // only with states; the same layout as m
  const float* sinks;  // [H], in base e

  const int* rows;     // points to the number of rows; null: max_rows
  float unit;          // log2 of LSE's base; with states, whose m have base 2, it is 1
  float inverse_unit;  // 1 / log2 of LSE's base
  int max_rows;
  int heads;
  int chunks;       // pieces of 8 elements in a row of a head
  float sink_unit;  // factor from a sink logit to the unit of m or LSE
};

}  // namespace annulus::kernels

#endif  // ANNULUS_PARAMS_MERGE_PARAMS_H_
