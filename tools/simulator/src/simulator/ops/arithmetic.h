#ifndef ANNULUS_SIMULATOR_OPS_ARITHMETIC_H_
#define ANNULUS_SIMULATOR_OPS_ARITHMETIC_H_

// Opcodes that exist for integers and for floats are decoded in arithmetic.cc. It calls one of
// these functions, depending on the type.

#include "simulator/decode/decoder.h"

namespace annulus::simulator {

// integer.cc
void add_integers(Decoder& decoder);
void sub_integers(Decoder& decoder);
void mul_integers(Decoder& decoder);
void mad_integers(Decoder& decoder);
void div_integers(Decoder& decoder);
void min_integers(Decoder& decoder);
void max_integers(Decoder& decoder);
void abs_integers(Decoder& decoder);
void neg_integers(Decoder& decoder);

// extended.cc
void decode_add_cc(Decoder& decoder);
void decode_sub_cc(Decoder& decoder);
void decode_mad_cc(Decoder& decoder);

// floating.cc
void add_floats(Decoder& decoder);
void sub_floats(Decoder& decoder);
void mul_floats(Decoder& decoder);
void div_floats(Decoder& decoder);
void min_floats(Decoder& decoder);
void max_floats(Decoder& decoder);
void abs_floats(Decoder& decoder);
void neg_floats(Decoder& decoder);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_OPS_ARITHMETIC_H_
