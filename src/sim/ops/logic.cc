// Logic, shifts and bit fields (PTX ISA 9.0, sections 9.7.1 and 9.7.8).

#include "sim/ops/numbers.h"

namespace annulus::sim {
namespace {

struct And {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};
struct Not {
  template <typename T>
  T operator()(T a) const {
    return static_cast<T>(~a);
  }
};
struct Cnot {
  template <typename T>
  T operator()(T a) const {
    return a == 0 ? 1 : 0;
  }
};

// Predicates are lane masks, so logic on them is logic on one word.
template <typename F>
void predicate_binary(Context& context, const Inst& inst, Mask mask) {
  const Mask a = context.predicate(inst.a) ^ (inst.small[0] ? kFull : 0);
  const Mask b = context.predicate(inst.b) ^ (inst.small[1] ? kFull : 0);
  Mask& d = context.predicate(inst.d);
  d = (d & ~mask) | (F{}(a, b) & mask);
}
void predicate_not(Context& context, const Inst& inst, Mask mask) {
  const Mask a = context.predicate(inst.a) ^ (inst.small[0] ? kFull : 0);
  Mask& d = context.predicate(inst.d);
  d = (d & ~mask) | (~a & mask);
}

template <typename F>
void decode_logic(Decoder& decoder) {
  const Type type = decoder.type();
  Inst& inst = decoder.inst();
  if (type.kind == Type::kPredicate) {
    bool negated = false;
    inst.kind = Class::kInteger;
    inst.a = decoder.predicate_in(decoder.operand(1), &negated);
    inst.small[0] = negated;
    inst.b = decoder.predicate_in(decoder.operand(2), &negated);
    inst.small[1] = negated;
    inst.d = decoder.predicate_out(decoder.operand(0));
    return decoder.handler(predicate_binary<F>);
  }
  take_binary(decoder, type, Class::kInteger);
  use(decoder, ANNULUS_BITS_HANDLER(type.bits, binary, F));
}

// Shift counts are 32 bits whatever the type, and clamp instead of wrapping.
template <typename T, bool kLeft>
void shift(Context& context, const Inst& inst, Mask mask) {
  constexpr std::uint32_t kBits = 8 * sizeof(T);
  each_lane(
      mask, context.lanes<T>(inst.d),
      [](T a, std::uint32_t count) -> T {
        if constexpr (kLeft) {
          return count >= kBits ? T{0} : static_cast<T>(a << (count & (kBits - 1)));
        } else if constexpr (std::is_signed_v<T>) {
          return static_cast<T>(a >> (count >= kBits ? kBits - 1 : count));
        } else {
          return count >= kBits ? T{0} : static_cast<T>(a >> (count & (kBits - 1)));
        }
      },
      context.lanes<T>(inst.a), context.lanes<std::uint32_t>(inst.b));
}

const Type kU32{Type::kUnsigned, 32};

void take_shift(Decoder& decoder, Type type) {
  Inst& inst = decoder.inst();
  inst.kind = Class::kInteger;
  inst.a = decoder.in(1, type);
  inst.b = decoder.in(2, kU32);
  inst.d = decoder.out(0, type);
}

// shf: the 64-bit value {b, a} shifted; mode 0 left, 1 right; clamp or wrap of the count.
template <bool kLeft, bool kClamp>
struct Funnel {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::uint32_t c) const {
    const std::uint32_t count = kClamp ? (c > 32 ? 32 : c) : c & 31u;
    const std::uint64_t both = (std::uint64_t{b} << 32) | a;
    return kLeft ? static_cast<std::uint32_t>((both << count) >> 32)
                 : static_cast<std::uint32_t>(both >> count);
  }
};

template <typename T>
void lop3(Context& context, const Inst& inst, Mask mask) {
  const std::uint32_t table = inst.small[0];
  each_lane(
      mask, context.lanes<T>(inst.d),
      [table](T a, T b, T c) {
        T result = 0;
        for (std::uint32_t i = 0; i < 8; ++i) {
          if (((table >> i) & 1) == 0) continue;
          result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
        }
        return result;
      },
      context.lanes<T>(inst.a), context.lanes<T>(inst.b), context.lanes<T>(inst.c));
}

template <typename T>
void bfe(Context& context, const Inst& inst, Mask mask) {
  constexpr std::uint32_t kBits = 8 * sizeof(T);
  using U = std::make_unsigned_t<T>;
  each_lane(
      mask, context.lanes<T>(inst.d),
      [](T a, std::uint32_t position, std::uint32_t length) -> T {
        position &= 0xff;
        length &= 0xff;
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
      context.lanes<T>(inst.a), context.lanes<std::uint32_t>(inst.b),
      context.lanes<std::uint32_t>(inst.c));
}

// bfi d, a, b, position, length: a's low bits go into b.
template <typename T>
void bfi(Context& context, const Inst& inst, Mask mask) {
  constexpr std::uint32_t kBits = 8 * sizeof(T);
  T* d = context.lanes<T>(inst.d);
  const T* a = context.lanes<T>(inst.a);
  const T* b = context.lanes<T>(inst.b);
  const auto* position = context.lanes<std::uint32_t>(inst.c);
  const auto* length = context.lanes<std::uint32_t>(inst.aux);
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    const std::uint32_t at = position[lane] & 0xff;
    const std::uint32_t count = length[lane] & 0xff;
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

struct Permute {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::uint32_t selector) const {
    const std::uint64_t both = (std::uint64_t{b} << 32) | a;
    std::uint32_t result = 0;
    for (std::uint32_t i = 0; i < 4; ++i) {
      const std::uint32_t nibble = (selector >> (4 * i)) & 15u;
      std::uint32_t byte = static_cast<std::uint32_t>(both >> (8 * (nibble & 7u))) & 0xffu;
      if (nibble & 8u) byte = byte & 0x80u ? 0xffu : 0u;  // the sign, eight times
      result |= byte << (8 * i);
    }
    return result;
  }
};

// The modes of prmt as selectors per value of the low two bits of c (PTX ISA, table of prmt).
template <int kMode>
struct PermuteMode {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::uint32_t c) const {
    static constexpr std::uint32_t kTable[6][4] = {{0x3210, 0x4321, 0x5432, 0x6543},   // f4e
                                                   {0x5670, 0x6701, 0x7012, 0x0123},   // b4e
                                                   {0x0000, 0x1111, 0x2222, 0x3333},   // rc8
                                                   {0x3210, 0x3211, 0x3222, 0x3333},   // ecl
                                                   {0x0000, 0x1110, 0x2210, 0x3210},   // ecr
                                                   {0x1010, 0x3232, 0x1010, 0x3232}};  // rc16
    return Permute{}(a, b, kTable[kMode][c & 3u]);
  }
};

}  // namespace

void decode_and(Decoder& decoder) { decode_logic<And>(decoder); }
void decode_or(Decoder& decoder) { decode_logic<Or>(decoder); }
void decode_xor(Decoder& decoder) { decode_logic<Xor>(decoder); }

void decode_not(Decoder& decoder) {
  const Type type = decoder.type();
  Inst& inst = decoder.inst();
  if (type.kind == Type::kPredicate) {
    bool negated = false;
    inst.kind = Class::kInteger;
    inst.a = decoder.predicate_in(decoder.operand(1), &negated);
    inst.small[0] = negated;
    inst.d = decoder.predicate_out(decoder.operand(0));
    return decoder.handler(predicate_not);
  }
  take_unary(decoder, type, Class::kInteger);
  use(decoder, ANNULUS_BITS_HANDLER(type.bits, unary, Not));
}

void decode_cnot(Decoder& decoder) {
  const Type type = decoder.type();
  take_unary(decoder, type, Class::kInteger);
  use(decoder, ANNULUS_BITS_HANDLER(type.bits, unary, Cnot));
}

void decode_lop3(Decoder& decoder) {
  if (decoder.operands() != 5) decoder.unsupported("only the form without predicates is modelled");
  take_ternary(decoder, kU32, Class::kInteger);
  decoder.inst().small[0] = static_cast<std::uint8_t>(decoder.immediate(4));
  decoder.handler(lop3<std::uint32_t>);
}

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

void decode_prmt(Decoder& decoder) {
  take_ternary(decoder, kU32, Class::kInteger);
  using U = std::uint32_t;
  use(decoder, decoder.has("f4e")    ? ternary<U, U, PermuteMode<0>>
               : decoder.has("b4e")  ? ternary<U, U, PermuteMode<1>>
               : decoder.has("rc8")  ? ternary<U, U, PermuteMode<2>>
               : decoder.has("ecl")  ? ternary<U, U, PermuteMode<3>>
               : decoder.has("ecr")  ? ternary<U, U, PermuteMode<4>>
               : decoder.has("rc16") ? ternary<U, U, PermuteMode<5>>
                                     : ternary<U, U, Permute>);
}

}  // namespace annulus::sim
