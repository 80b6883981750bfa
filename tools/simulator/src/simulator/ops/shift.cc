// Shifts (PTX ISA 9.0, section 9.7.8).

#include "simulator/ops/handlers.h"

namespace annulus::simulator {
namespace {

// Shift counts have 32 bits for every type, and are clamped, not wrapped.
template <typename T, bool kLeft>
void shift(Warp& warp, const Inst& inst, Mask mask) {
  constexpr std::uint32_t kBits = 8 * sizeof(T);
  each_lane(
      mask, warp.lanes<T>(inst.d),
      [](T a, std::uint32_t count) -> T {
        if constexpr (kLeft) {
          return count >= kBits ? T{0} : static_cast<T>(a << (count & (kBits - 1)));
        } else if constexpr (std::is_signed_v<T>) {
          return static_cast<T>(a >> (count >= kBits ? kBits - 1 : count));
        } else {
          return count >= kBits ? T{0} : static_cast<T>(a >> (count & (kBits - 1)));
        }
      },
      warp.lanes<T>(inst.a), warp.lanes<std::uint32_t>(inst.b));
}

void take_shift(Decoder& decoder, Type type) {
  Inst& inst = decoder.inst();
  inst.kind = Class::kInteger;
  inst.a = decoder.in(1, type);
  inst.b = decoder.in(2, kU32);
  inst.d = decoder.out(0, type);
}

// shf shifts the 64-bit value {b, a} left or right. A count above 32 is clamped to 32, or taken
// modulo 32.
template <bool kLeft, bool kClamp>
struct Funnel {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::uint32_t c) const {
    const std::uint32_t count = kClamp ? (c > 32 ? 32 : c) : c & 31u;
    const std::uint64_t both = (std::uint64_t{b} << 32) | a;
    return kLeft ? static_cast<std::uint32_t>((both << count) >> 32)
                 : static_cast<std::uint32_t>(both >> count);
  }
};

}  // namespace

void decode_shl(Decoder& decoder) {
  const Type type = decoder.type();
  take_shift(decoder, type);
  use(decoder, type.bits == 16   ? shift<std::uint16_t, true>
               : type.bits == 32 ? shift<std::uint32_t, true>
                                 : shift<std::uint64_t, true>);
}

void decode_shr(Decoder& decoder) {
  const Type type = decoder.type();
  take_shift(decoder, type);
  const bool is_signed = type.kind == Type::kSigned;
  use(decoder,
      type.bits == 16   ? (is_signed ? shift<std::int16_t, false> : shift<std::uint16_t, false>)
      : type.bits == 32 ? (is_signed ? shift<std::int32_t, false> : shift<std::uint32_t, false>)
                        : (is_signed ? shift<std::int64_t, false> : shift<std::uint64_t, false>));
}

void decode_shf(Decoder& decoder) {
  take_ternary(decoder, kU32, Class::kInteger);
  using U = std::uint32_t;
  const bool clamp = decoder.has("clamp");
  use(decoder,
      decoder.has("l")
          ? (clamp ? ternary<U, U, Funnel<true, true>> : ternary<U, U, Funnel<true, false>>)
          : (clamp ? ternary<U, U, Funnel<false, true>> : ternary<U, U, Funnel<false, false>>));
}

}  // namespace annulus::simulator
