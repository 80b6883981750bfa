#ifndef ANNULUS_PARAMS_MASK_PROGRAM_PARAMS_H_
#define ANNULUS_PARAMS_MASK_PROGRAM_PARAMS_H_

// A mask as numbers, for general kernels, which have no compiled mask (tile/mask_program.cuh).
// Plain C++ for NVRTC and the host compiler; src/attention/kernels/mask_program.h writes programs.
//
// A program is a sequence of instructions in MaskParams::lists: the number of the operation, and
// then its operands. They use a stack of results; each result is the visibility of a row's columns.
// The single result that is left at the end is the result of the mask. Indices of instructions
// count from the start of the program.

namespace annulus::kernels {

enum : int { kMaskDepth = 4 };  // the most results on the stack

enum class MaskOp : int {
  kEnd,
  kAnd,    // pops two results, pushes one
  kOr,     // pops two results, pushes one
  kNot,    // changes one result
  kTrue,   // pushes a result
  kFalse,  // pushes a result
  kJump,   // continues at the instruction with this index
  // Continues at one of n instructions, chosen by the head or the batch. Operands: the number of
  // neighbouring heads that share one (only for kTurn), n, and then the n indices.
  kTurn,
  kBatchTurn,
// Leaves push a result. Their operands are the numbers in their slots, in the order of the slots.
#define ANNULUS_COMPARED_LEAF(name, numbers) name,
#define ANNULUS_SEARCHED_LEAF(name, numbers) name,
#include "params/mask_leaves_params.h"
#undef ANNULUS_COMPARED_LEAF
#undef ANNULUS_SEARCHED_LEAF
};

}  // namespace annulus::kernels

#endif  // ANNULUS_PARAMS_MASK_PROGRAM_PARAMS_H_
