#ifndef ANNULUS_SIMULATOR_OPS_ATOMIC_VECTOR_H_
#define ANNULUS_SIMULATOR_OPS_ATOMIC_VECTOR_H_

// Decodes atom and red on vectors and on single 16-bit floats, as a part of decode_atom and
// decode_red.

#include "simulator/decode/decoder.h"

namespace annulus::simulator {

bool is_atomic_vector(const Decoder& decoder);
void decode_atomic_vector(Decoder& decoder, bool returns);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_OPS_ATOMIC_VECTOR_H_
