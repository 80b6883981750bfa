#ifndef ANNULUS_PARAMS_SLICES_PARAMS_H_
#define ANNULUS_PARAMS_SLICES_PARAMS_H_

// The argument of move_slices: the contract between the host (src/join) and the template. Plain
// C++, for NVRTC and the host compiler, as batch_params.h. Strides count elements.

#include "params/merge_params.h"

namespace annulus::kernels {

// O and LSE, [rows, H, Dv] and [rows, H] in any order, and as slices behind one another: those of
// some rows or of some heads, for one rank each. A slice is O [its rows, its heads, Dv], and
// `lses[i]` bytes behind its begin LSE [its rows, its heads]. Slice i of n has rows, or heads, from
// i x count / n on. Of states acc is in the place of O, m in that of LSE, and l lies as m does, in
// a slice behind it.
struct SlicesParams {
  void* o;
  float* lse;  // null: there is none
  float* l;
  long long o_row, o_head;
  long long lse_row, lse_head;

  char* slices;
  long long begins[kMostMerged];  // bytes
  long long lses[kMostMerged];
  int count;    // of slices
  int of_rows;  // not 0: slices are rows
  int rows;
  int heads;
  int chunks;  // pieces of 16 bytes in a row of a head
  int padding;
};

}  // namespace annulus::kernels

#endif  // ANNULUS_PARAMS_SLICES_PARAMS_H_
