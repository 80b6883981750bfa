// Bit fields, counts and positions (PTX ISA 9.0, section 9.7.1).

#include <algorithm>
#include <bit>

#include "simulator/ops/handlers.h"

namespace annulus::simulator {
namespace {

// The position or length of a bit field. The manual restricts both to 0..255. An H200 takes the
// lowest byte of a larger number for fields of 32-bit words. For fields of 64-bit words it takes
// the whole number, and every number from 64 on has the same effect.
template <typename T>
std::uint32_t field_amount(std::uint32_t amount) {
  return sizeof(T) == 4 ? amount & 0xff : std::min(amount, 64u);
}

// bfe d, a, position, length: the bits of a from position on. For signed types the sign is the
// topmost bit of the field, or the topmost bit of a if the field reaches past a. The sign fills all
// bits that a does not have. `present` is the number of bits that a has from position on, and
// `known` is a mask of them.
template <typename T>
void bfe(Warp& warp, const Inst& inst, Mask mask) {
  constexpr std::uint32_t kBits = 8 * sizeof(T);
  using U = std::make_unsigned_t<T>;
  each_lane(
      mask, warp.lanes<T>(inst.d),
      [](T a, std::uint32_t position, std::uint32_t length) -> T {
        position = field_amount<T>(position);
        length = field_amount<T>(length);
        const U value = static_cast<U>(a);
        if constexpr (std::is_unsigned_v<T>) {
          if (length == 0 || position >= kBits) return 0;
          const U shifted = value >> position;
          return length >= kBits ? shifted : shifted & ((U{1} << length) - 1);
        } else {
          if (length == 0) return 0;
          const std::uint32_t top = std::min(position + length - 1, kBits - 1);
          const bool sign = (value >> top) & 1;
          U result = position >= kBits ? 0 : value >> position;
          if (length < kBits) {
            const U field = (U{1} << length) - 1;
            result &= field;
            const std::uint32_t present = position >= kBits ? 0 : kBits - position;
            const U known = present >= kBits ? ~U{0} : (U{1} << present) - 1;
            if (sign) result |= ~(field & known);
          } else if (position > 0 && sign) {
            const std::uint32_t present = position >= kBits ? 0 : kBits - position;
            result |= ~((U{1} << present) - 1);
          }
          return static_cast<T>(result);
        }
      },
      warp.lanes<T>(inst.a), warp.lanes<std::uint32_t>(inst.b), warp.lanes<std::uint32_t>(inst.c));
}

// bfi d, a, b, position, length: the low bits of a replace a field of b.
template <typename T>
void bfi(Warp& warp, const Inst& inst, Mask mask) {
  constexpr std::uint32_t kBits = 8 * sizeof(T);
  T* d = warp.lanes<T>(inst.d);
  const T* a = warp.lanes<T>(inst.a);
  const T* b = warp.lanes<T>(inst.b);
  const auto* position = warp.lanes<std::uint32_t>(inst.c);
  const auto* length = warp.lanes<std::uint32_t>(inst.aux);
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    const std::uint32_t at = field_amount<T>(position[lane]);
    const std::uint32_t count = field_amount<T>(length[lane]);
    T field = count >= kBits ? ~T{0} : (T{1} << count) - 1;
    field = at >= kBits ? 0 : static_cast<T>(field << at);
    const T moved = at >= kBits ? 0 : static_cast<T>(a[lane] << at);
    d[lane] = (b[lane] & ~field) | (moved & field);
  }
}

template <bool kClamp>
struct BitMask {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const {
    const std::uint32_t at = kClamp ? a : a & 31u;
    const std::uint32_t count = kClamp ? b : b & 31u;
    if (at >= 32 || count == 0) return 0;
    const std::uint64_t field = count >= 32 ? 0xffffffffu : (1u << count) - 1;
    return static_cast<std::uint32_t>(field << at);
  }
};

template <typename T>
struct Reverse {
  T operator()(T a) const {
    T result = 0;
    for (std::size_t i = 0; i < 8 * sizeof(T); ++i)
      result |= ((a >> i) & 1) << (8 * sizeof(T) - 1 - i);
    return result;
  }
};
struct CountOnes {
  template <typename T>
  std::uint32_t operator()(T a) const {
    return static_cast<std::uint32_t>(std::popcount(a));
  }
};
struct LeadingZeros {
  template <typename T>
  std::uint32_t operator()(T a) const {
    return static_cast<std::uint32_t>(std::countl_zero(a));
  }
};

// The position of the highest bit that differs from the sign (signed) or is set (unsigned).
template <typename T, bool kAmount>
struct FindBit {
  std::uint32_t operator()(T a) const {
    using U = std::make_unsigned_t<T>;
    U value = static_cast<U>(a);
    if (std::is_signed_v<T> && a < 0) value = static_cast<U>(~value);
    if (value == 0) return 0xffffffffu;
    const auto position = static_cast<std::uint32_t>(8 * sizeof(T) - 1) -
                          static_cast<std::uint32_t>(std::countl_zero(value));
    return kAmount ? static_cast<std::uint32_t>(8 * sizeof(T) - 1) - position : position;
  }
};

void take_count(Decoder& decoder, Type type) {
  Inst& inst = decoder.inst();
  inst.kind = Class::kInteger;
  inst.a = decoder.in(1, type);
  inst.d = decoder.out(0, kU32);
}

}  // namespace

void decode_bfe(Decoder& decoder) {
  const Type type = decoder.type();
  Inst& inst = decoder.inst();
  inst.kind = Class::kInteger;
  inst.a = decoder.in(1, type);
  inst.b = decoder.in(2, kU32);
  inst.c = decoder.in(3, kU32);
  inst.d = decoder.out(0, type);
  const bool is_signed = type.kind == Type::kSigned;
  use(decoder, type.bits == 32 ? (is_signed ? bfe<std::int32_t> : bfe<std::uint32_t>)
                               : (is_signed ? bfe<std::int64_t> : bfe<std::uint64_t>));
}

void decode_bfi(Decoder& decoder) {
  const Type type = decoder.type();
  Inst& inst = decoder.inst();
  inst.kind = Class::kInteger;
  inst.a = decoder.in(1, type);
  inst.b = decoder.in(2, type);
  inst.c = decoder.in(3, kU32);
  inst.aux = decoder.in(4, kU32);
  inst.d = decoder.out(0, type);
  use(decoder, type.bits == 32 ? bfi<std::uint32_t> : bfi<std::uint64_t>);
}

void decode_bmsk(Decoder& decoder) {
  take_binary(decoder, kU32, Class::kInteger);
  using U = std::uint32_t;
  use(decoder, decoder.has("clamp") ? binary<U, U, BitMask<true>> : binary<U, U, BitMask<false>>);
}

void decode_brev(Decoder& decoder) {
  const Type type = decoder.type();
  take_unary(decoder, type, Class::kInteger);
  use(decoder, type.bits == 32 ? unary<std::uint32_t, std::uint32_t, Reverse<std::uint32_t>>
                               : unary<std::uint64_t, std::uint64_t, Reverse<std::uint64_t>>);
}

void decode_popc(Decoder& decoder) {
  const Type type = decoder.type();
  take_count(decoder, type);
  use(decoder, type.bits == 32 ? unary<std::uint32_t, std::uint32_t, CountOnes>
                               : unary<std::uint32_t, std::uint64_t, CountOnes>);
}

void decode_clz(Decoder& decoder) {
  const Type type = decoder.type();
  take_count(decoder, type);
  use(decoder, type.bits == 32 ? unary<std::uint32_t, std::uint32_t, LeadingZeros>
                               : unary<std::uint32_t, std::uint64_t, LeadingZeros>);
}

void decode_bfind(Decoder& decoder) {
  const Type type = decoder.type();
  take_count(decoder, type);
  const auto pick = [&]<bool kAmount>() -> Handler {
    using U = std::uint32_t;
    if (type.bits == 32) {
      return type.kind == Type::kSigned ? unary<U, std::int32_t, FindBit<std::int32_t, kAmount>>
                                        : unary<U, std::uint32_t, FindBit<std::uint32_t, kAmount>>;
    }
    return type.kind == Type::kSigned ? unary<U, std::int64_t, FindBit<std::int64_t, kAmount>>
                                      : unary<U, std::uint64_t, FindBit<std::uint64_t, kAmount>>;
  };
  use(decoder, decoder.has("shiftamt") ? pick.template operator()<true>()
                                       : pick.template operator()<false>());
}

}  // namespace annulus::simulator
