#ifndef ANNULUS_ATTENTION_KERNELS_MASK_PROGRAM_H_
#define ANNULUS_ATTENTION_KERNELS_MASK_PROGRAM_H_

// A pattern as a program (templates/params/mask_program_params.h), for general kernels, which have
// no compiled mask.

#include <cstddef>
#include <optional>

#include "annulus/pattern.h"
#include "pattern/mask_code.h"

namespace annulus::attention {

// The text of the mask of every general kernel: a program that begins at the instruction that slot
// 0 holds.
inline constexpr char kProgramText[] = "m.program(0, q, k)";

// Like pattern::emit(), but MaskCode::lists has the program, and the text is kProgramText for every
// pattern. Nullopt if the expression needs more than kernels::kMaskDepth results on the stack at a
// time. Throws as pattern::emit() does.
std::optional<pattern::MaskCode> emit_program(const Pattern& pattern, std::size_t number_slots,
                                              const pattern::MaskScope& scope = {});

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_KERNELS_MASK_PROGRAM_H_
