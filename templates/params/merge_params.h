#ifndef ANNULUS_PARAMS_MERGE_PARAMS_H_
#define ANNULUS_PARAMS_MERGE_PARAMS_H_

// The argument of merge_outputs: the contract between the host (src/batch) and the template. Plain
// C++, for NVRTC and the host compiler, as batch_params.h. Strides count elements.

#include "params/batch_params.h"

namespace annulus::kernels {

enum : int {
  kMostMerged = 16,
  kMergeThreads = 128,
  kMergeResident = 4,                         // CTAs of a multiprocessor that the registers allow
  kMergeHeads = kMergeThreads / kRowThreads,  // of rows, that a CTA has
};

// O and LSE of several sets of keys, [rows, H, Dv] and [rows, H], to those of their union. Of
// states acc is in the place of O and m in that of LSE, and all of them are contiguous.
struct MergeParams {
  // One of each for every input; all inputs have the same strides.
  const void* o[kMostMerged];
  const float* lse[kMostMerged];
  const float* l[kMostMerged];  // of states, as m lies
  long long o_row, o_head;
  long long lse_row, lse_head;

  void* merged_o;     // may be o[0]
  float* merged_lse;  // may be lse[0]; null: not written
  long long merged_o_row, merged_o_head;
  long long merged_lse_row, merged_lse_head;

  float* merged_l;     // of a state, as m lies
  const float* sinks;  // [H], in base e

  const int* rows;     // how many there are; null: most_rows
  float unit;          // log2 of LSE's base; of states, whose m have base 2: 1
  float inverse_unit;  // 1 / log2 of LSE's base
  int most_rows;
  int heads;
  int chunks;       // pieces of 8 elements in a row of a head
  float sink_unit;  // from a sink logit to what m, or LSE, counts in
};

}  // namespace annulus::kernels

#endif  // ANNULUS_PARAMS_MERGE_PARAMS_H_
