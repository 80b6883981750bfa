// Arithmetic on integers, plain, extended and on packed bytes (PTX ISA 9.0, sections 9.7.1 and
// 9.7.2).

#include "sim/ops/arithmetic.h"
#include "sim/ops/numbers.h"

namespace annulus::sim {
namespace {

template <typename T>
using Unsigned = std::make_unsigned_t<std::conditional_t<std::is_integral_v<T>, T, int>>;

// --- Integers wrap around; C++ says so only for unsigned ones. ---
struct AddInteger {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b));
  }
};
struct SubInteger {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b));
  }
};
struct AddSaturated {
  std::int32_t operator()(std::int32_t a, std::int32_t b) const {
    const std::int64_t sum = std::int64_t{a} + b;
    return static_cast<std::int32_t>(sum > INT32_MAX   ? INT32_MAX
                                     : sum < INT32_MIN ? INT32_MIN
                                                       : sum);
  }
};
struct SubSaturated {
  std::int32_t operator()(std::int32_t a, std::int32_t b) const {
    const std::int64_t sum = std::int64_t{a} - b;
    return static_cast<std::int32_t>(sum > INT32_MAX   ? INT32_MAX
                                     : sum < INT32_MIN ? INT32_MIN
                                                       : sum);
  }
};
struct MulLow {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  }
};
struct MulHigh {
  template <typename T>
  T operator()(T a, T b) const {
    if constexpr (sizeof(T) == 8) {
      __extension__ using Signed = __int128;
      __extension__ using Plain = unsigned __int128;
      using Wide = std::conditional_t<std::is_signed_v<T>, Signed, Plain>;
      return static_cast<T>((static_cast<Wide>(a) * static_cast<Wide>(b)) >> 64);
    } else {
      using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
      return static_cast<T>((static_cast<Wide>(a) * static_cast<Wide>(b)) >> (8 * sizeof(T)));
    }
  }
};
struct MadLow {
  template <typename T>
  T operator()(T a, T b, T c) const {
    return AddInteger{}(MulLow{}(a, b), c);
  }
};
struct MadHigh {
  template <typename T>
  T operator()(T a, T b, T c) const {
    return AddInteger{}(MulHigh{}(a, b), c);
  }
};
struct MadHighSaturated {
  std::int32_t operator()(std::int32_t a, std::int32_t b, std::int32_t c) const {
    return AddSaturated{}(MulHigh{}(a, b), c);
  }
};
struct Mul24Low {
  template <typename T>
  static std::int64_t cut(T value) {
    const std::uint32_t low = static_cast<std::uint32_t>(value) & 0xffffffu;
    return std::is_signed_v<T> ? static_cast<std::int32_t>(low << 8) >> 8
                               : static_cast<std::int64_t>(low);
  }
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(cut(a) * cut(b));
  }
};
struct Mul24High {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>((Mul24Low::cut(a) * Mul24Low::cut(b)) >> 16);
  }
};
struct Mad24Low {
  template <typename T>
  T operator()(T a, T b, T c) const {
    return AddInteger{}(Mul24Low{}(a, b), c);
  }
};
// Division by zero and INT_MIN / -1 are "unspecified, machine-dependent" in PTX; the machine gives
// all ones and wraps.
struct DivInteger {
  template <typename T>
  T operator()(T a, T b) const {
    if (b == 0) return static_cast<T>(-1);
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return SubInteger{}(T{0}, a);
    }
    return static_cast<T>(a / b);
  }
};
struct RemInteger {
  template <typename T>
  T operator()(T a, T b) const {
    if (b == 0) return a;
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return 0;
    }
    return static_cast<T>(a % b);
  }
};
struct MinInteger {
  template <typename T>
  T operator()(T a, T b) const {
    return a < b ? a : b;
  }
};
struct MaxInteger {
  template <typename T>
  T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};
struct AbsInteger {
  template <typename T>
  T operator()(T a) const {
    return a < 0 ? SubInteger{}(T{0}, a) : a;
  }
};
struct NegInteger {
  template <typename T>
  T operator()(T a) const {
    return SubInteger{}(T{0}, a);
  }
};
struct SadInteger {
  template <typename T>
  T operator()(T a, T b, T c) const {
    return AddInteger{}(c, a < b ? SubInteger{}(b, a) : SubInteger{}(a, b));
  }
};

// mul.wide, mad.wide: the sources have half the bits of the destination.
template <typename D, typename S, bool kAdd>
void wide(Context& context, const Inst& inst, Mask mask) {
  D* d = context.lanes<D>(inst.d);
  const S* a = context.lanes<S>(inst.a);
  const S* b = context.lanes<S>(inst.b);
  if constexpr (kAdd) {
    each_lane(
        mask, d,
        [](S x, S y, D z) {
          return AddInteger{}(static_cast<D>(static_cast<D>(x) * static_cast<D>(y)), z);
        },
        a, b, context.lanes<D>(inst.c));
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

// --- Extended precision: the carry flag is one bit per lane of the warp. ---
namespace {

template <typename T, bool kSubtract, bool kCarryIn, bool kCarryOut>
void extended(Context& context, const Inst& inst, Mask mask) {
  T* d = context.lanes<T>(inst.d);
  const T* a = context.lanes<T>(inst.a);
  const T* b = context.lanes<T>(inst.b);
  Mask& carry = context.warp->carry;
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
    if (kCarryOut) carry = (carry & ~(1u << lane)) | (static_cast<Mask>(out) << lane);
  }
}

// mad.cc and madc: the carry of the addition alone; a product has none.
template <typename T, bool kHigh>
void extended_mad(Context& context, const Inst& inst, Mask mask) {
  const bool carry_in = inst.small[0];
  const bool carry_out = inst.small[1];
  T* d = context.lanes<T>(inst.d);
  const T* a = context.lanes<T>(inst.a);
  const T* b = context.lanes<T>(inst.b);
  const T* c = context.lanes<T>(inst.c);
  using U = std::make_unsigned_t<T>;
  Mask& carry = context.warp->carry;
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
    if (carry_out) carry = (carry & ~(1u << lane)) | (static_cast<Mask>(out) << lane);
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

void add_integers(Decoder& decoder) {
  const Type type = decoder.type();
  if (decoder.has("cc")) return decode_extended<false>(decoder, false);
  take_binary(decoder, type, Class::kInteger);
  if (decoder.has("sat")) return use(decoder, binary<std::int32_t, std::int32_t, AddSaturated>);
  use(decoder, ANNULUS_INTEGER_HANDLER(type, binary, AddInteger));
}

void sub_integers(Decoder& decoder) {
  const Type type = decoder.type();
  if (decoder.has("cc")) return decode_extended<true>(decoder, false);
  take_binary(decoder, type, Class::kInteger);
  if (decoder.has("sat")) return use(decoder, binary<std::int32_t, std::int32_t, SubSaturated>);
  use(decoder, ANNULUS_INTEGER_HANDLER(type, binary, SubInteger));
}

void decode_madc(Decoder& decoder) { decode_mad_carry(decoder, true); }
void decode_addc(Decoder& decoder) { decode_extended<false>(decoder, true); }
void decode_subc(Decoder& decoder) { decode_extended<true>(decoder, true); }

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
  if (decoder.has("cc")) return decode_mad_carry(decoder, false);
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

// Opcodes of one form: every operand of one integer type.
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

// --- Dot products of bytes ---
namespace {

template <bool kSignedA, bool kSignedB, int kBytes>
struct Dot {
  static std::int32_t part(std::uint32_t word, int index, bool is_signed, int bits) {
    const std::uint32_t value = (word >> (index * bits)) & ((1u << bits) - 1);
    return is_signed ? static_cast<std::int32_t>(value << (32 - bits)) >> (32 - bits)
                     : static_cast<std::int32_t>(value);
  }
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::uint32_t c) const {
    for (int i = 0; i < 4; ++i) {
      c += static_cast<std::uint32_t>(part(a, i, kSignedA, 8) * part(b, i, kSignedB, 8));
    }
    return c;
  }
};

template <bool kSignedA, bool kSignedB>
void dot2(Context& context, const Inst& inst, Mask mask) {
  const int first = inst.small[0];  // 0: low half of b, 2: high half
  std::uint32_t* d = context.lanes<std::uint32_t>(inst.d);
  const auto* a = context.lanes<std::uint32_t>(inst.a);
  const auto* b = context.lanes<std::uint32_t>(inst.b);
  const auto* c = context.lanes<std::uint32_t>(inst.c);
  using D = Dot<kSignedA, kSignedB, 4>;
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    std::uint32_t sum = c[lane];
    for (int i = 0; i < 2; ++i) {
      sum += static_cast<std::uint32_t>(D::part(a[lane], i, kSignedA, 16) *
                                        D::part(b[lane], first + i, kSignedB, 8));
    }
    d[lane] = sum;
  }
}

const Type kU32{Type::kUnsigned, 32};

}  // namespace

void decode_dp4a(Decoder& decoder) {
  const bool a = decoder.type_from_end(1).kind == Type::kSigned;
  const bool b = decoder.type_from_end(0).kind == Type::kSigned;
  take_ternary(decoder, kU32, Class::kInteger);
  using U = std::uint32_t;
  use(decoder, a ? (b ? ternary<U, U, Dot<true, true, 4>> : ternary<U, U, Dot<true, false, 4>>)
                 : (b ? ternary<U, U, Dot<false, true, 4>> : ternary<U, U, Dot<false, false, 4>>));
}

void decode_dp2a(Decoder& decoder) {
  const bool a = decoder.type_from_end(1).kind == Type::kSigned;
  const bool b = decoder.type_from_end(0).kind == Type::kSigned;
  take_ternary(decoder, kU32, Class::kInteger);
  decoder.inst().small[0] = decoder.has("hi") ? 2 : 0;
  use(decoder, a ? (b ? dot2<true, true> : dot2<true, false>)
                 : (b ? dot2<false, true> : dot2<false, false>));
}

}  // namespace annulus::sim
