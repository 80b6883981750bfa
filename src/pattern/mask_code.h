#ifndef ANNULUS_PATTERN_MASK_CODE_H_
#define ANNULUS_PATTERN_MASK_CODE_H_

// Code for partial tiles, made from a pattern. The text has the structure of the expression;
// numbers and lists are run-time parameters, so another size of a window needs no compilation. The
// text calls functions of MaskContext in templates/tile/mask.cuh.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "annulus/pattern.h"
#include "pattern/interval.h"

namespace annulus::pattern {

struct MaskCode {
  // One expression of type bool over (m, q, k): m is a tile::MaskContext, and q and k are positions
  // of type int. It depends on the structure alone, and is the key of the structure. It is "true"
  // if every pair is visible and "false" if none is; then no tile is partial because of the
  // pattern.
  std::string text;
  std::vector<std::int32_t> numbers;  // the values of MaskParams::numbers, at most number_slots
  // The values of MaskParams::lists: first the numbers for which there was no slot, then the lists.
  std::vector<std::int32_t> lists;
  bool uses_blocks = false;                   // the text calls m.blocks()
  std::shared_ptr<const BlockLayout> layout;  // the layout of blocks(); null without blocks()
  std::int64_t calls = 0;  // calls of functions of leaves in the text, which determine the time of
                           // its compilation
};

// The problem that the code is made for. The choices of random() are stored in a list, for each
// head and row of blocks.
struct MaskScope {
  std::int64_t heads = 1;  // H
  Interval queries;        // holds the positions of all query rows
  PatternContext context;
};

// number_slots is kernels::kMaskNumbers, which MaskContext uses too. Throws Error{kUnsupported} for
// a number outside +-2^30, the device's range of positions, two different layouts in one
// expression, or more random choices than a list can hold. Throws Error{kInvalidArgument} if the
// context lacks a number that a leaf needs. Requires: the pattern is not a sum; the branches of a
// sum are emitted one by one.
MaskCode emit(const Pattern& pattern, std::size_t number_slots, const MaskScope& scope = {});

}  // namespace annulus::pattern

#endif  // ANNULUS_PATTERN_MASK_CODE_H_
