// Extended precision (PTX ISA 9.0, section 9.7.2). The carry flag is one bit for each lane of the
// warp. A subtraction sets it if it borrows.

#include "simulator/ops/arithmetic.h"
#include "simulator/ops/handlers.h"
#include "simulator/ops/integer_functions.h"

namespace annulus::simulator {
namespace {

void set_carry(Mask& carry, int lane, bool value) {
  carry = (carry & ~(1u << lane)) | (static_cast<Mask>(value) << lane);
}

template <typename T, bool kSubtract, bool kCarryIn, bool kCarryOut>
void extended(Warp& warp, const Inst& inst, Mask mask) {
  T* d = warp.lanes<T>(inst.d);
  const T* a = warp.lanes<T>(inst.a);
  const T* b = warp.lanes<T>(inst.b);
  Mask& carry = warp.carry;
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    const T in = kCarryIn ? static_cast<T>((carry >> lane) & 1) : T{0};
    T result;
    bool out;
    if constexpr (kSubtract) {
      T step;
      const bool first = __builtin_sub_overflow(a[lane], b[lane], &step);
      out = first | __builtin_sub_overflow(step, in, &result);
    } else {
      T step;
      const bool first = __builtin_add_overflow(a[lane], b[lane], &step);
      out = first | __builtin_add_overflow(step, in, &result);
    }
    d[lane] = result;
    if (kCarryOut) set_carry(carry, lane, out);
  }
}

// mad.cc and madc. The carry comes only from the addition, because a product has none.
template <typename T, bool kHigh>
void extended_mad(Warp& warp, const Inst& inst, Mask mask) {
  const bool carry_in = inst.small[0];
  const bool carry_out = inst.small[1];
  T* d = warp.lanes<T>(inst.d);
  const T* a = warp.lanes<T>(inst.a);
  const T* b = warp.lanes<T>(inst.b);
  const T* c = warp.lanes<T>(inst.c);
  using U = std::make_unsigned_t<T>;
  Mask& carry = warp.carry;
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    const U product =
        static_cast<U>(kHigh ? MulHigh{}(a[lane], b[lane]) : MulLow{}(a[lane], b[lane]));
    const U in = carry_in ? static_cast<U>((carry >> lane) & 1) : U{0};
    U step;
    U result;
    const bool first = __builtin_add_overflow(product, static_cast<U>(c[lane]), &step);
    const bool out = first | __builtin_add_overflow(step, in, &result);
    d[lane] = static_cast<T>(result);
    if (carry_out) set_carry(carry, lane, out);
  }
}

void decode_mad_carry(Decoder& decoder, bool carry_in) {
  const Type type = decoder.type();
  take_ternary(decoder, type, Class::kInteger);
  decoder.inst().small[0] = carry_in;
  decoder.inst().small[1] = decoder.has("cc");
  const bool high = decoder.has("hi");
  const bool is_signed = type.kind == Type::kSigned;
  using std::int32_t, std::int64_t, std::uint32_t, std::uint64_t;
  if (type.bits == 32) {
    return use(decoder,
               is_signed ? (high ? extended_mad<int32_t, true> : extended_mad<int32_t, false>)
                         : (high ? extended_mad<uint32_t, true> : extended_mad<uint32_t, false>));
  }
  if (type.bits != 64) decoder.unsupported();
  use(decoder, is_signed ? (high ? extended_mad<int64_t, true> : extended_mad<int64_t, false>)
                         : (high ? extended_mad<uint64_t, true> : extended_mad<uint64_t, false>));
}

template <bool kSubtract>
void decode_extended(Decoder& decoder, bool carry_in) {
  Type type = decoder.type();
  type.kind = Type::kUnsigned;
  take_binary(decoder, type, Class::kInteger);
  const bool out = decoder.has("cc");
  using U = std::uint32_t;
  using W = std::uint64_t;
  if (type.bits == 32) {
    use(decoder,
        carry_in ? (out ? extended<U, kSubtract, true, true> : extended<U, kSubtract, true, false>)
                 : extended<U, kSubtract, false, true>);
  } else {
    use(decoder,
        carry_in ? (out ? extended<W, kSubtract, true, true> : extended<W, kSubtract, true, false>)
                 : extended<W, kSubtract, false, true>);
  }
}

}  // namespace

void decode_add_cc(Decoder& decoder) { decode_extended<false>(decoder, false); }
void decode_addc(Decoder& decoder) { decode_extended<false>(decoder, true); }
void decode_sub_cc(Decoder& decoder) { decode_extended<true>(decoder, false); }
void decode_subc(Decoder& decoder) { decode_extended<true>(decoder, true); }
void decode_mad_cc(Decoder& decoder) { decode_mad_carry(decoder, false); }
void decode_madc(Decoder& decoder) { decode_mad_carry(decoder, true); }

}  // namespace annulus::simulator
