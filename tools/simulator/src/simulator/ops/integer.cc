// Arithmetic on integers (PTX ISA 9.0, section 9.7.1).

#include "simulator/ops/arithmetic.h"
#include "simulator/ops/handlers.h"
#include "simulator/ops/integer_functions.h"

namespace annulus::simulator {
namespace {

// mul.wide, mad.wide: the sources have half the bits of the destination.
template <typename D, typename S, bool kAdd>
void wide(Warp& warp, const Inst& inst, Mask mask) {
  D* d = warp.lanes<D>(inst.d);
  const S* a = warp.lanes<S>(inst.a);
  const S* b = warp.lanes<S>(inst.b);
  if constexpr (kAdd) {
    each_lane(
        mask, d,
        [](S x, S y, D z) {
          return AddInteger{}(static_cast<D>(static_cast<D>(x) * static_cast<D>(y)), z);
        },
        a, b, warp.lanes<D>(inst.c));
  } else {
    each_lane(
        mask, d, [](S x, S y) { return static_cast<D>(static_cast<D>(x) * static_cast<D>(y)); }, a,
        b);
  }
}

Type widened(Type type) { return {type.kind, type.bits * 2, 1}; }

template <bool kAdd>
void decode_wide(Decoder& decoder, Type type) {
  Inst& inst = decoder.inst();
  inst.kind = Class::kInteger;
  inst.a = decoder.in(1, type);
  inst.b = decoder.in(2, type);
  if (kAdd) inst.c = decoder.in(3, widened(type));
  inst.d = decoder.out(0, widened(type));
  use(decoder, type == Type{Type::kUnsigned, 16}   ? wide<std::uint32_t, std::uint16_t, kAdd>
               : type == Type{Type::kSigned, 16}   ? wide<std::int32_t, std::int16_t, kAdd>
               : type == Type{Type::kUnsigned, 32} ? wide<std::uint64_t, std::uint32_t, kAdd>
               : type == Type{Type::kSigned, 32}   ? wide<std::int64_t, std::int32_t, kAdd>
                                                   : nullptr);
}

}  // namespace

void add_integers(Decoder& decoder) {
  const Type type = decoder.type();
  if (decoder.has("cc")) return decode_add_cc(decoder);
  take_binary(decoder, type, Class::kInteger);
  if (decoder.has("sat")) return use(decoder, binary<std::int32_t, std::int32_t, AddSaturated>);
  use(decoder, ANNULUS_INTEGER_HANDLER(type, binary, AddInteger));
}

void sub_integers(Decoder& decoder) {
  const Type type = decoder.type();
  if (decoder.has("cc")) return decode_sub_cc(decoder);
  take_binary(decoder, type, Class::kInteger);
  if (decoder.has("sat")) return use(decoder, binary<std::int32_t, std::int32_t, SubSaturated>);
  use(decoder, ANNULUS_INTEGER_HANDLER(type, binary, SubInteger));
}

void mul_integers(Decoder& decoder) {
  const Type type = decoder.type();
  if (decoder.has("wide")) return decode_wide<false>(decoder, type);
  take_binary(decoder, type, Class::kInteger);
  use(decoder, decoder.has("hi") ? ANNULUS_INTEGER_HANDLER(type, binary, MulHigh)
                                 : ANNULUS_INTEGER_HANDLER(type, binary, MulLow));
}

void decode_mul24(Decoder& decoder) {
  const Type type = decoder.type();
  take_binary(decoder, type, Class::kInteger);
  const bool is_signed = type.kind == Type::kSigned;
  using S = std::int32_t;
  using U = std::uint32_t;
  if (decoder.has("hi")) {
    return use(decoder, is_signed ? binary<S, S, Mul24High> : binary<U, U, Mul24High>);
  }
  use(decoder, is_signed ? binary<S, S, Mul24Low> : binary<U, U, Mul24Low>);
}

void decode_mad24(Decoder& decoder) {
  const Type type = decoder.type();
  if (!decoder.has("lo")) decoder.unsupported();
  take_ternary(decoder, type, Class::kInteger);
  use(decoder, type.kind == Type::kSigned ? ternary<std::int32_t, std::int32_t, Mad24Low>
                                          : ternary<std::uint32_t, std::uint32_t, Mad24Low>);
}

void mad_integers(Decoder& decoder) {
  const Type type = decoder.type();
  if (decoder.has("cc")) return decode_mad_cc(decoder);
  if (decoder.has("sat")) {
    if (!decoder.has("hi") || type != Type{Type::kSigned, 32}) decoder.unsupported();
    take_ternary(decoder, type, Class::kInteger);
    return use(decoder, ternary<std::int32_t, std::int32_t, MadHighSaturated>);
  }
  if (decoder.has("wide")) return decode_wide<true>(decoder, type);
  take_ternary(decoder, type, Class::kInteger);
  use(decoder, decoder.has("hi") ? ANNULUS_INTEGER_HANDLER(type, ternary, MadHigh)
                                 : ANNULUS_INTEGER_HANDLER(type, ternary, MadLow));
}

namespace {

// Decodes opcodes whose operands all have the same integer type.
void decode_plain(Decoder& decoder, Handler (*pick)(Type)) {
  const Type type = decoder.type();
  take_binary(decoder, type, Class::kInteger);
  use(decoder, pick(type));
}

template <typename F>
void decode_signed(Decoder& decoder) {
  const Type type = decoder.type();
  take_unary(decoder, type, Class::kInteger);
  use(decoder, type.bits == 16   ? unary<std::int16_t, std::int16_t, F>
               : type.bits == 32 ? unary<std::int32_t, std::int32_t, F>
                                 : unary<std::int64_t, std::int64_t, F>);
}

}  // namespace

void div_integers(Decoder& decoder) {
  decode_plain(decoder,
               [](Type type) { return ANNULUS_INTEGER_HANDLER(type, binary, DivInteger); });
}
void decode_rem(Decoder& decoder) {
  decode_plain(decoder,
               [](Type type) { return ANNULUS_INTEGER_HANDLER(type, binary, RemInteger); });
}
void min_integers(Decoder& decoder) {
  decode_plain(decoder,
               [](Type type) { return ANNULUS_INTEGER_HANDLER(type, binary, MinInteger); });
}
void max_integers(Decoder& decoder) {
  decode_plain(decoder,
               [](Type type) { return ANNULUS_INTEGER_HANDLER(type, binary, MaxInteger); });
}
void abs_integers(Decoder& decoder) { decode_signed<AbsInteger>(decoder); }
void neg_integers(Decoder& decoder) { decode_signed<NegInteger>(decoder); }

void decode_sad(Decoder& decoder) {
  const Type type = decoder.type();
  take_ternary(decoder, type, Class::kInteger);
  use(decoder, ANNULUS_INTEGER_HANDLER(type, ternary, SadInteger));
}

}  // namespace annulus::simulator
