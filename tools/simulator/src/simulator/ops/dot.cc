// Dot products of bytes with accumulation: dp4a and dp2a (PTX ISA 9.0, section 9.7.1).

#include "simulator/ops/handlers.h"

namespace annulus::simulator {
namespace {

// The index-th part of `bits` bits.
std::int32_t part(std::uint32_t word, int index, bool is_signed, int bits) {
  const std::uint32_t value = (word >> (index * bits)) & ((1u << bits) - 1);
  return is_signed ? static_cast<std::int32_t>(value << (32 - bits)) >> (32 - bits)
                   : static_cast<std::int32_t>(value);
}

template <bool kSignedA, bool kSignedB>
struct Dot4 {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::uint32_t c) const {
    for (int i = 0; i < 4; ++i) {
      c += static_cast<std::uint32_t>(part(a, i, kSignedA, 8) * part(b, i, kSignedB, 8));
    }
    return c;
  }
};

template <bool kSignedA, bool kSignedB>
void dot2(Warp& warp, const Inst& inst, Mask mask) {
  const int first = inst.small[0];  // 0: low half of b, 2: high half
  std::uint32_t* d = warp.lanes<std::uint32_t>(inst.d);
  const auto* a = warp.lanes<std::uint32_t>(inst.a);
  const auto* b = warp.lanes<std::uint32_t>(inst.b);
  const auto* c = warp.lanes<std::uint32_t>(inst.c);
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    std::uint32_t sum = c[lane];
    for (int i = 0; i < 2; ++i) {
      sum += static_cast<std::uint32_t>(part(a[lane], i, kSignedA, 16) *
                                        part(b[lane], first + i, kSignedB, 8));
    }
    d[lane] = sum;
  }
}

}  // namespace

void decode_dp4a(Decoder& decoder) {
  const bool a = decoder.type_from_end(1).kind == Type::kSigned;
  const bool b = decoder.type_from_end(0).kind == Type::kSigned;
  take_ternary(decoder, kU32, Class::kInteger);
  using U = std::uint32_t;
  use(decoder, a ? (b ? ternary<U, U, Dot4<true, true>> : ternary<U, U, Dot4<true, false>>)
                 : (b ? ternary<U, U, Dot4<false, true>> : ternary<U, U, Dot4<false, false>>));
}

void decode_dp2a(Decoder& decoder) {
  const bool a = decoder.type_from_end(1).kind == Type::kSigned;
  const bool b = decoder.type_from_end(0).kind == Type::kSigned;
  take_ternary(decoder, kU32, Class::kInteger);
  decoder.inst().small[0] = decoder.has("hi") ? 2 : 0;
  use(decoder, a ? (b ? dot2<true, true> : dot2<true, false>)
                 : (b ? dot2<false, true> : dot2<false, false>));
}

}  // namespace annulus::simulator
