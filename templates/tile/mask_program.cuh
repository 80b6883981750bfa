#ifndef ANNULUS_TILE_MASK_PROGRAM_CUH_
#define ANNULUS_TILE_MASK_PROGRAM_CUH_

// Runs a mask that is given as a program (params/mask_program_params.h). All threads of a CTA
// execute the same instructions, because a CTA has one head and one batch, so nothing diverges.
// tile/masking.cuh runs it once for all rows of a lane.

#include "params/mask_program_params.h"
#include "tile/mask.cuh"

namespace annulus::tile {

using kernels::MaskOp;

// The slots of a leaf in a program, which come before q and k.
#define ANNULUS_SLOTS_0
#define ANNULUS_SLOTS_1 0,
#define ANNULUS_SLOTS_2 0, 1,
#define ANNULUS_SLOTS_3 0, 1, 2,
#define ANNULUS_SLOTS_4 0, 1, 2, 3,
#define ANNULUS_SLOTS_5 0, 1, 2, 3, 4,

// The number of operands of a leaf.
__device__ __forceinline__ int slots_of(MaskOp op) {
  switch (op) {
#define ANNULUS_COMPARED_LEAF(name, slots) \
  case MaskOp::name:                       \
    return slots;
#define ANNULUS_SEARCHED_LEAF(name, slots) ANNULUS_COMPARED_LEAF(name, slots)
#include "params/mask_leaves_params.h"
#undef ANNULUS_COMPARED_LEAF
#undef ANNULUS_SEARCHED_LEAF
    default:
      return 0;
  }
}

// The result of the program that begins at `begin`. leaf(op, numbers) returns the result of a leaf.
template <typename Answer, typename Context, typename Leaf>
__device__ __forceinline__ Answer run_mask_program(const int* begin, const Context& context,
                                                   const Leaf& leaf) {
  // The stack, its top first. It is registers that are moved, because registers have no index.
  Answer top(false), second(false), third(false), fourth(false);
  const int* at = begin;
#pragma unroll 1
  while (true) {
    const MaskOp op = static_cast<MaskOp>(*at++);
    if (op == MaskOp::kEnd) return top;
    if (op == MaskOp::kNot) {
      top = !top;
    } else if (op == MaskOp::kAnd || op == MaskOp::kOr) {
      top = op == MaskOp::kAnd ? second & top : second | top;
      second = third;
      third = fourth;
    } else if (op == MaskOp::kJump) {
      at = begin + *at;
    } else if (op == MaskOp::kTurn) {
      at = begin + at[2 + context.head / at[0] % at[1]];
    } else if (op == MaskOp::kBatchTurn) {
      at = begin + at[1 + context.batch % at[0]];
    } else {
      fourth = third;
      third = second;
      second = top;
      if (op == MaskOp::kTrue || op == MaskOp::kFalse) {
        top = Answer(op == MaskOp::kTrue);
      } else {
        top = leaf(op, at);
        at += slots_of(op);
      }
    }
  }
}

}  // namespace annulus::tile

#endif  // ANNULUS_TILE_MASK_PROGRAM_CUH_
