// Opcodes of arithmetic that exist for integers and for floats. The type selects the function (PTX
// ISA 9.0, sections 9.7.1 to 9.7.4).

#include "simulator/ops/arithmetic.h"

namespace annulus::simulator {

void decode_fma(Decoder& decoder);

void decode_add(Decoder& decoder) {
  decoder.type().is_integer() ? add_integers(decoder) : add_floats(decoder);
}
void decode_sub(Decoder& decoder) {
  decoder.type().is_integer() ? sub_integers(decoder) : sub_floats(decoder);
}
void decode_mul(Decoder& decoder) {
  decoder.type().is_integer() ? mul_integers(decoder) : mul_floats(decoder);
}
// mad.f32 is the same as fma.rn since sm_20.
void decode_mad(Decoder& decoder) {
  decoder.type().is_integer() ? mad_integers(decoder) : decode_fma(decoder);
}
void decode_div(Decoder& decoder) {
  decoder.type().is_integer() ? div_integers(decoder) : div_floats(decoder);
}
void decode_min(Decoder& decoder) {
  decoder.type().is_integer() ? min_integers(decoder) : min_floats(decoder);
}
void decode_max(Decoder& decoder) {
  decoder.type().is_integer() ? max_integers(decoder) : max_floats(decoder);
}
void decode_abs(Decoder& decoder) {
  decoder.type().is_integer() ? abs_integers(decoder) : abs_floats(decoder);
}
void decode_neg(Decoder& decoder) {
  decoder.type().is_integer() ? neg_integers(decoder) : neg_floats(decoder);
}

}  // namespace annulus::simulator
