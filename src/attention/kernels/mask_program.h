#ifndef ANNULUS_ATTENTION_KERNELS_MASK_PROGRAM_H_
#define ANNULUS_ATTENTION_KERNELS_MASK_PROGRAM_H_

// A pattern as a program (templates/params/mask_program_params.h), for general kernels, into which
// no mask is compiled.

#include <cstddef>
#include <optional>

#include "annulus/pattern.h"
#include "pattern/mask_code.h"

namespace annulus::attention {

// The text of the mask of every general kernel: a program that begins where slot 0 says.
inline constexpr char kProgramText[] = "m.program(0, q, k)";

// As pattern::emit(), with the program in MaskCode::lists and kProgramText as text, whatever the
// pattern. Empty where the expression needs more than kernels::kMaskDepth answers at a time. Throws
// as pattern::emit() does.
std::optional<pattern::MaskCode> emit_program(const Pattern& pattern, std::size_t number_slots,
                                              const pattern::MaskScope& scope = {});

}  // namespace annulus::attention

#endif  // ANNULUS_ATTENTION_KERNELS_MASK_PROGRAM_H_
