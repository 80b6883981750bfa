#ifndef ANNULUS_PATTERN_MASK_CODE_H_
#define ANNULUS_PATTERN_MASK_CODE_H_

// Code for partial tiles, made from a pattern. The text has the structure of the expression;
// numbers and lists are run-time parameters, so another window compiles nothing. The functions that
// the text calls are those of MaskContext in templates/tile/mask.cuh.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "annulus/pattern.h"
#include "pattern/interval.h"

namespace annulus::pattern {

struct MaskCode {
  // One expression of type bool over (m, q, k): m a tile::MaskContext, q and k int positions. It
  // depends on the structure alone and is the structure's key. "true" where every pair is visible,
  // "false" where none is; no tile is then partial because of the pattern.
  std::string text;
  std::vector<std::int32_t> numbers;  // for MaskParams::numbers, at most number_slots
  // For MaskParams::lists: numbers for which there was no slot, then the lists.
  std::vector<std::int32_t> lists;
  bool uses_blocks = false;                   // the text calls m.blocks()
  std::shared_ptr<const BlockLayout> layout;  // of blocks(); null without
  std::int64_t calls = 0;  // of functions of leaves in the text, which is what compiling it takes
};

// What the code will be used for. The choices of random() go into a list, for each head and row of
// blocks.
struct MaskScope {
  std::int64_t heads = 1;  // H
  Interval queries;        // holds the positions of all query rows
  PatternContext context;
};

// number_slots is kernels::kMaskNumbers, which MaskContext knows too. Throws Error{kUnsupported}: a
// number outside +-2^30, the device's range of positions, two different layouts in one expression,
// or more random choices than a list holds; Error{kInvalidArgument} where the context lacks what a
// leaf needs. Requires: no sum; its branches are emitted one by one.
MaskCode emit(const Pattern& pattern, std::size_t number_slots, const MaskScope& scope = {});

}  // namespace annulus::pattern

#endif  // ANNULUS_PATTERN_MASK_CODE_H_
