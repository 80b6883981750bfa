#ifndef ANNULUS_PARAMS_SLICES_PARAMS_H_
#define ANNULUS_PARAMS_SLICES_PARAMS_H_

// The argument of move_slices: the contract between the host (src/join) and the template. Plain C++
// for NVRTC and the host compiler, like batch_params.h. Strides count elements.

#include "params/merge_params.h"

namespace annulus::kernels {

// O and LSE, [rows, H, Dv] and [rows, H] in any order, and the same data as slices, one after
// another. A slice has some rows or some heads, for one rank. It is O [its rows, its heads, Dv],
// and `lses[i]` bytes after its start LSE [its rows, its heads]. Slice i of n has rows, or heads,
// from i x count / n on. With states, acc takes the place of O and m the place of LSE; l has the
// layout of m, and comes after m in a slice.
struct SlicesParams {
  void* o;
  float* lse;  // null: there is none
  float* l;
  long long o_row, o_head;
  long long lse_row, lse_head;

  char* slices;
  long long begins[kMaxMerged];  // bytes
  long long lses[kMaxMerged];
  int count;    // number of slices
  int of_rows;  // 1: slices of rows; 0: slices of heads
  int rows;
  int heads;
  int chunks;  // pieces of 16 bytes in a row of a head
  int padding;
};

}  // namespace annulus::kernels

#endif  // ANNULUS_PARAMS_SLICES_PARAMS_H_
