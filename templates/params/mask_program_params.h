#ifndef ANNULUS_PARAMS_MASK_PROGRAM_PARAMS_H_
#define ANNULUS_PARAMS_MASK_PROGRAM_PARAMS_H_

// A mask as numbers, for general kernels, into which no mask is compiled (tile/mask_program.cuh).
// Plain C++, for NVRTC and the host compiler; src/attention/kernels/mask_program.h writes programs.
//
// A program is a sequence of instructions in MaskParams::lists: a number that says which, then its
// operands. They work on a stack of answers, each the visibility of a row's columns. The one answer
// that is left at the end is the mask's. Indices of instructions count from the program's begin.

namespace annulus::kernels {

enum : int { kMaskDepth = 4 };  // the most answers on the stack

enum class MaskOp : int {
  kEnd,
  kAnd,    // takes two answers, leaves one
  kOr,     // likewise
  kNot,    // changes one answer
  kTrue,   // adds an answer
  kFalse,  // likewise
  kJump,   // to the instruction with this index
  // Goes on with one of n instructions, by the head or the batch. Operands: how many neighbouring
  // heads share one (kTurn alone), n, then the n indices.
  kTurn,
  kBatchTurn,
// Leaves add an answer. Their operands are the numbers of their slots, in the order of the slots.
#define ANNULUS_COMPARED_LEAF(name, numbers) name,
#define ANNULUS_SEARCHED_LEAF(name, numbers) name,
#include "params/mask_leaves_params.h"
#undef ANNULUS_COMPARED_LEAF
#undef ANNULUS_SEARCHED_LEAF
};

}  // namespace annulus::kernels

#endif  // ANNULUS_PARAMS_MASK_PROGRAM_PARAMS_H_
