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
  int rows;                // rows of blocks
  int columns;
  int block_rows;  // R and C
  int block_columns;
  int seq_q;
  int seq_k;
  int q_position;  // position of row 0
  int k_position;
};

struct CollectParams {
  const unsigned char* classes;  // [lines, columns]
  long long* indptr;       // [lines + 1]: counts of lines from entry 1 on, and then their begins
  int* indices;            // null: the kernel only counts
  unsigned char* partial;  // the same shape as `indices`
  int* any_partial;        // set to 1 if any block is partial
  int lines;               // heads x rows
  int columns;
};

struct ScanParams {
  long long* values;  // [count]: each value is replaced by the sum of all values up to and
                      // including it
  int count;
  int padding;
};

}  // namespace annulus::kernels

#endif  // ANNULUS_PARAMS_LAYOUT_PARAMS_H_
