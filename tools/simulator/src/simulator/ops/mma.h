#ifndef ANNULUS_SIMULATOR_OPS_MMA_H_
#define ANNULUS_SIMULATOR_OPS_MMA_H_

// Functions for the operands of mma.sync, which are the same for all of its forms.

#include <cstdint>
#include <vector>

#include "simulator/ops/handlers.h"

namespace annulus::simulator {

// Appends the slots of a fragment's registers. Operand 0 is D, which is written.
void take_mma_fragment(Decoder& decoder, std::size_t operand, int registers,
                       std::vector<std::uint32_t>& slots);

// Throws Fault unless all 32 lanes take part. In the last warp of a CTA, fewer than 32 lanes may
// have threads.
void require_mma_warp(Mask mask);

// Decodes an mma.sync of 8-bit elements or of tf32 (mma_words.cc). Returns false if it has other
// elements, or an unsupported shape or modifier.
bool decode_mma_of_words(Decoder& decoder);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_OPS_MMA_H_
