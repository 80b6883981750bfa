#ifndef ANNULUS_SIMULATOR_OPS_MMA_H_
#define ANNULUS_SIMULATOR_OPS_MMA_H_

// The operands of mma.sync, which all its forms take in the same way.

#include <cstdint>
#include <vector>

#include "simulator/ops/handlers.h"

namespace annulus::simulator {

// Appends the slots of a fragment's registers. Operand 0 is D, which is written.
void take_mma_fragment(Decoder& decoder, std::size_t operand, int registers,
                       std::vector<std::uint32_t>& slots);

// Throws Fault unless all lanes take part. All lanes that have a thread are in the mask, which in
// the last warp of a CTA may be fewer than 32.
void require_mma_warp(Mask mask);

// Decodes an mma.sync of 8-bit elements or of tf32 (mma_words.cc). False if it has other elements,
// or a shape or modifier that is not modelled.
bool decode_mma_of_words(Decoder& decoder);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_OPS_MMA_H_
