#ifndef ANNULUS_PARAMS_LAYOUT_PARAMS_H_
#define ANNULUS_PARAMS_LAYOUT_PARAMS_H_

// The arguments of the kernels that build a pattern's BlockLayout: the contract between the host
// (src/selection/build_layout.h) and the templates.

#include "params/attention_params.h"

namespace annulus::kernels {

enum : int {
  kLayoutThreads = 128,
  kLayoutWarps = kLayoutThreads / 32,
  kScanThreads = 1024,
};

struct ClassifyParams {
  MaskParams mask;
  unsigned char* classes;  // [heads, rows, columns]: 0 empty, 1 full, 2 partial
  int rows;                // of blocks
  int columns;
  int block_rows;  // R, C
  int block_columns;
  int seq_q;
  int seq_k;
  int q_position;  // of row 0
  int k_position;
};

struct CollectParams {
  const unsigned char* classes;  // [lines, columns]
  long long* indptr;             // [lines + 1]: counts of lines from 1 on, then where they begin
  int* indices;                  // null: count only
  unsigned char* partial;        // as indices
  int* any_partial;              // becomes 1 where a block is
  int lines;                     // heads x rows
  int columns;
};

struct ScanParams {
  long long* values;  // [count]: becomes the sum of all up to and including each
  int count;
  int padding;
};

}  // namespace annulus::kernels

#endif  // ANNULUS_PARAMS_LAYOUT_PARAMS_H_
