#ifndef ANNULUS_PARAMS_IMPORTANCE_PARAMS_H_
#define ANNULUS_PARAMS_IMPORTANCE_PARAMS_H_

// The arguments of the kernels that measure how much attention each block had and change which
// blocks are kept (src/selection/tracker.h), and of the kernel that computes the recall of rows.
// Kernels get them in addition to AttentionParams. They are shared with the host, like
// selection_params.h.

#include "params/selection_params.h"

namespace annulus::kernels {

struct MeasureParams {
  unsigned long long* mass;  // [B, H, rows, columns]: sums in units of 2^-32 of a query's attention
  int rows;                  // rows of blocks
  int columns;
  int block_rows;  // multiples of 8
  int block_columns;
  float lse_factor;  // from an LSE to base 2
  int padding;
};

struct UpdateParams {
  CandidateParams candidates;
  const float* scores;       // [B, H, rows, words 32], of candidates
  const unsigned* forced;    // [visible_heads, rows, words]
  unsigned* kept;            // [B, H, rows, words]: read and written
  unsigned long long* mass;  // [B, H, rows, columns]: read, then 0
  int columns;
  int most;         // blocks of a row without forced blocks
  int max_added;    // A
  int max_dropped;  // B
};

struct RecallParams {
  const float* lse;  // [count]: LSE of the pairs that were seen
  const float* all;  // [count]: LSE of all pairs
  float* recall;     // [count]
  long long count;
  float lse_factor;  // from an LSE to base 2
  int padding;
};

}  // namespace annulus::kernels

#endif  // ANNULUS_PARAMS_IMPORTANCE_PARAMS_H_
