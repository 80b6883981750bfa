// Integer and floating-point arithmetic (PTX ISA 9.0, sections 9.7.1 to 9.7.4).

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

// --- Floats ---
template <bool kFlush>
struct Fp32 {
  static float in(float value) { return kFlush ? flush(value) : value; }
  static float out(float value) { return canonical(kFlush ? flush(value) : value); }
};
template <bool kFlush>
struct AddFloat {
  float operator()(float a, float b) const {
    return Fp32<kFlush>::out(Fp32<kFlush>::in(a) + Fp32<kFlush>::in(b));
  }
};
template <bool kFlush>
struct SubFloat {
  float operator()(float a, float b) const {
    return Fp32<kFlush>::out(Fp32<kFlush>::in(a)-Fp32<kFlush>::in(b));
  }
};
template <bool kFlush>
struct MulFloat {
  float operator()(float a, float b) const {
    return Fp32<kFlush>::out(Fp32<kFlush>::in(a)*Fp32<kFlush>::in(b));
  }
};
template <bool kFlush>
struct FmaFloat {
  float operator()(float a, float b, float c) const {
    return Fp32<kFlush>::out(
        __builtin_fmaf(Fp32<kFlush>::in(a), Fp32<kFlush>::in(b), Fp32<kFlush>::in(c)));
  }
};
template <bool kFlush>
struct DivFloat {
  float operator()(float a, float b) const {
    return Fp32<kFlush>::out(Fp32<kFlush>::in(a) / Fp32<kFlush>::in(b));
  }
};
template <bool kFlush>
struct MaxFloat {
  float operator()(float a, float b) const {
    return max_number(Fp32<kFlush>::in(a), Fp32<kFlush>::in(b));
  }
};
template <bool kFlush>
struct MinFloat {
  float operator()(float a, float b) const {
    return min_number(Fp32<kFlush>::in(a), Fp32<kFlush>::in(b));
  }
};
template <bool kFlush>
struct MaxNan {
  float operator()(float a, float b) const {
    return a != a || b != b ? canonical(a + b) : MaxFloat<kFlush>{}(a, b);
  }
};
template <bool kFlush>
struct MinNan {
  float operator()(float a, float b) const {
    return a != a || b != b ? canonical(a + b) : MinFloat<kFlush>{}(a, b);
  }
};
// abs and neg only touch the sign; a NaN stays one, its payload unspecified.
template <bool kFlush>
struct AbsFloat {
  float operator()(float a) const { return Fp32<kFlush>::out(std::fabs(Fp32<kFlush>::in(a))); }
};
template <bool kFlush>
struct NegFloat {
  float operator()(float a) const { return Fp32<kFlush>::out(-Fp32<kFlush>::in(a)); }
};
template <typename F>
struct Saturated {
  template <typename... S>
  float operator()(S... s) const {
    return saturate(F{}(s...));
  }
};
struct CopySign {
  template <typename T>
  T operator()(T a, T b) const {
    return std::copysign(b, a);
  }
};

struct AddDouble {
  double operator()(double a, double b) const { return canonical(a + b); }
};
struct SubDouble {
  double operator()(double a, double b) const { return canonical(a - b); }
};
struct MulDouble {
  double operator()(double a, double b) const { return canonical(a * b); }
};
struct DivDouble {
  double operator()(double a, double b) const { return canonical(a / b); }
};
struct FmaDouble {
  double operator()(double a, double b, double c) const {
    return canonical(__builtin_fma(a, b, c));
  }
};
struct MaxDouble {
  double operator()(double a, double b) const { return max_number(a, b); }
};
struct MinDouble {
  double operator()(double a, double b) const { return min_number(a, b); }
};
struct AbsDouble {
  double operator()(double a) const { return std::fabs(a); }
};
struct NegDouble {
  double operator()(double a) const { return -a; }
};

struct MinNanDouble {
  double operator()(double a, double b) const {
    return a != a || b != b ? canonical(a + b) : min_number(a, b);
  }
};
struct MaxNanDouble {
  double operator()(double a, double b) const {
    return a != a || b != b ? canonical(a + b) : max_number(a, b);
  }
};

// 16-bit floats: sums and products are exact in fp64, or so far from a tie of the short format that
// fp64's own rounding cannot matter; what remains is one rounding to 16 bits.
template <typename T, typename F>
struct Narrow {
  template <typename... S>
  T operator()(S... s) const {
    const double result = F{}(static_cast<double>(widen(s))...);
    return result != result ? T{0x7fff} : narrow<T>(to_odd(result));
  }
};
// .sat clamps to [0, 1] and takes NaN to 0; .relu takes what is negative to 0.
template <typename T, typename F>
struct NarrowSaturated {
  template <typename... S>
  T operator()(S... s) const {
    return narrow<T>(saturate(widen(Narrow<T, F>{}(s...))));
  }
};
template <typename T, typename F>
struct NarrowRelu {
  template <typename... S>
  T operator()(S... s) const {
    const T result = Narrow<T, F>{}(s...);
    return result.bits & 0x8000u ? T{0} : result;
  }
};
template <typename T, typename F>
struct NarrowFlushed {
  static T flushed(T value) {
    return (value.bits & 0x7c00u) == 0 ? T{static_cast<std::uint16_t>(value.bits & 0x8000u)}
                                       : value;
  }
  template <typename... S>
  T operator()(S... s) const {
    return flushed(Narrow<T, F>{}(flushed(s)...));
  }
};
template <typename T2, typename F>
struct Packed {
  template <typename... S>
  T2 operator()(S... s) const {
    return {F{}(s.lo...), F{}(s.hi...)};
  }
};
// abs and neg of 16-bit floats work on the sign bit.
template <typename T>
struct NegSmall {
  T operator()(T a) const { return {static_cast<std::uint16_t>(a.bits ^ 0x8000u)}; }
};
template <typename T>
struct AbsSmall {
  T operator()(T a) const { return {static_cast<std::uint16_t>(a.bits & 0x7fffu)}; }
};

// A handler of `shape` over the 16-bit float types, scalar or packed; `form` is one of the above.
#define ANNULUS_SMALL_FLOAT(type, shape, form, functor)                                            \
  ((type) == Type{Type::kFloat, 16}      ? shape<Half, Half, form<Half, functor>>                  \
   : (type) == Type{Type::kBrain, 16}    ? shape<Brain, Brain, form<Brain, functor>>               \
   : (type) == Type{Type::kFloat, 16, 2} ? shape<Half2, Half2, Packed<Half2, form<Half, functor>>> \
   : (type) == Type{Type::kBrain, 16, 2}                                                           \
       ? shape<Brain2, Brain2, Packed<Brain2, form<Brain, functor>>>                               \
       : static_cast<Handler>(nullptr))

template <typename F>
Handler small_binary(Decoder& decoder, Type type) {
  if (decoder.has("sat")) return ANNULUS_SMALL_FLOAT(type, binary, NarrowSaturated, F);
  if (decoder.has("ftz") && type.kind == Type::kFloat) {
    return ANNULUS_SMALL_FLOAT(type, binary, NarrowFlushed, F);
  }
  return ANNULUS_SMALL_FLOAT(type, binary, Narrow, F);
}

const Type kF32{Type::kFloat, 32};
const Type kF64{Type::kFloat, 64};

template <template <bool> typename F, typename Double, int kMode>
Handler directed_binary(Decoder& decoder, Type type) {
  if (decoder.has("sat")) decoder.unsupported("saturation with directed rounding is not modelled");
  if (type == kF64) return binary<double, double, Directed<kMode, Double>>;
  if (type != kF32) return nullptr;
  return decoder.has("ftz") ? binary<float, float, Directed<kMode, F<true>>>
                            : binary<float, float, Directed<kMode, F<false>>>;
}

template <template <bool> typename F, typename Double>
Handler float_binary(Decoder& decoder, Type type) {
  if (decoder.has("rz")) return directed_binary<F, Double, FE_TOWARDZERO>(decoder, type);
  if (decoder.has("rm")) return directed_binary<F, Double, FE_DOWNWARD>(decoder, type);
  if (decoder.has("rp")) return directed_binary<F, Double, FE_UPWARD>(decoder, type);
  if (type == kF64) return binary<double, double, Double>;
  if (type != kF32) return nullptr;
  if (decoder.has("sat")) {
    return decoder.has("ftz") ? binary<float, float, Saturated<F<true>>>
                              : binary<float, float, Saturated<F<false>>>;
  }
  return decoder.has("ftz") ? binary<float, float, F<true>> : binary<float, float, F<false>>;
}

template <int kMode>
Handler directed_fma(Decoder& decoder, Type type) {
  if (decoder.has("sat")) decoder.unsupported("saturation with directed rounding is not modelled");
  if (type == kF64) return ternary<double, double, Directed<kMode, FmaDouble>>;
  if (type != kF32) return nullptr;
  return decoder.has("ftz") ? ternary<float, float, Directed<kMode, FmaFloat<true>>>
                            : ternary<float, float, Directed<kMode, FmaFloat<false>>>;
}

}  // namespace

void decode_add(Decoder& decoder) {
  const Type type = decoder.type();
  if (decoder.has("cc")) {
    void decode_add_carry(Decoder&, bool);
    return decode_add_carry(decoder, false);
  }
  take_binary(decoder, type, type.is_integer() ? Class::kInteger : Class::kFloat32);
  if (type.is_integer()) {
    if (decoder.has("sat")) return use(decoder, binary<std::int32_t, std::int32_t, AddSaturated>);
    return use(decoder, ANNULUS_INTEGER_HANDLER(type, binary, AddInteger));
  }
  if (type.bits == 16) return use(decoder, small_binary<AddDouble>(decoder, type));
  use(decoder, float_binary<AddFloat, AddDouble>(decoder, type));
}

void decode_sub(Decoder& decoder) {
  const Type type = decoder.type();
  if (decoder.has("cc")) {
    void decode_sub_carry(Decoder&, bool);
    return decode_sub_carry(decoder, false);
  }
  take_binary(decoder, type, type.is_integer() ? Class::kInteger : Class::kFloat32);
  if (type.is_integer()) {
    if (decoder.has("sat")) return use(decoder, binary<std::int32_t, std::int32_t, SubSaturated>);
    return use(decoder, ANNULUS_INTEGER_HANDLER(type, binary, SubInteger));
  }
  if (type.bits == 16) return use(decoder, small_binary<SubDouble>(decoder, type));
  use(decoder, float_binary<SubFloat, SubDouble>(decoder, type));
}

namespace {

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

void decode_mul(Decoder& decoder) {
  const Type type = decoder.type();
  if (type.is_integer()) {
    if (decoder.has("wide")) return decode_wide<false>(decoder, type);
    take_binary(decoder, type, Class::kInteger);
    return use(decoder, decoder.has("hi") ? ANNULUS_INTEGER_HANDLER(type, binary, MulHigh)
                                          : ANNULUS_INTEGER_HANDLER(type, binary, MulLow));
  }
  take_binary(decoder, type, Class::kFloat32);
  if (type.bits == 16) return use(decoder, small_binary<MulDouble>(decoder, type));
  use(decoder, float_binary<MulFloat, MulDouble>(decoder, type));
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

void decode_fma(Decoder& decoder);

void decode_mad(Decoder& decoder) {
  const Type type = decoder.type();
  if (!type.is_integer()) return decode_fma(decoder);  // mad.f32 is fma.rn since sm_20
  if (decoder.has("cc") || decoder.has("sat")) decoder.unsupported();
  if (decoder.has("wide")) return decode_wide<true>(decoder, type);
  take_ternary(decoder, type, Class::kInteger);
  use(decoder, decoder.has("hi") ? ANNULUS_INTEGER_HANDLER(type, ternary, MadHigh)
                                 : ANNULUS_INTEGER_HANDLER(type, ternary, MadLow));
}

void decode_fma(Decoder& decoder) {
  const Type type = decoder.type();
  take_ternary(decoder, type, Class::kFloat32);
  if (type.bits == 16) {
    if (decoder.has("sat")) {
      return use(decoder, ANNULUS_SMALL_FLOAT(type, ternary, NarrowSaturated, FmaDouble));
    }
    if (decoder.has("relu")) {
      if (decoder.has("ftz")) decoder.unsupported();
      return use(decoder, ANNULUS_SMALL_FLOAT(type, ternary, NarrowRelu, FmaDouble));
    }
    if (decoder.has("ftz")) {
      return use(decoder, ANNULUS_SMALL_FLOAT(type, ternary, NarrowFlushed, FmaDouble));
    }
    return use(decoder, ANNULUS_SMALL_FLOAT(type, ternary, Narrow, FmaDouble));
  }
  if (decoder.has("rz")) return use(decoder, directed_fma<FE_TOWARDZERO>(decoder, type));
  if (decoder.has("rm")) return use(decoder, directed_fma<FE_DOWNWARD>(decoder, type));
  if (decoder.has("rp")) return use(decoder, directed_fma<FE_UPWARD>(decoder, type));
  if (type == kF64) return use(decoder, ternary<double, double, FmaDouble>);
  if (decoder.has("sat")) {
    return use(decoder, decoder.has("ftz") ? ternary<float, float, Saturated<FmaFloat<true>>>
                                           : ternary<float, float, Saturated<FmaFloat<false>>>);
  }
  use(decoder, decoder.has("ftz") ? ternary<float, float, FmaFloat<true>>
                                  : ternary<float, float, FmaFloat<false>>);
}

void decode_div(Decoder& decoder) {
  const Type type = decoder.type();
  take_binary(decoder, type, type.is_integer() ? Class::kInteger : Class::kFloat32);
  if (type.is_integer()) return use(decoder, ANNULUS_INTEGER_HANDLER(type, binary, DivInteger));
  use(decoder, float_binary<DivFloat, DivDouble>(decoder, type));
}

void decode_rem(Decoder& decoder) {
  const Type type = decoder.type();
  take_binary(decoder, type, Class::kInteger);
  use(decoder, ANNULUS_INTEGER_HANDLER(type, binary, RemInteger));
}

void decode_min(Decoder& decoder) {
  const Type type = decoder.type();
  if (decoder.operands() != 3 || decoder.has("xorsign")) decoder.unsupported();
  take_binary(decoder, type, type.is_integer() ? Class::kInteger : Class::kFloat32);
  if (type.is_integer()) return use(decoder, ANNULUS_INTEGER_HANDLER(type, binary, MinInteger));
  if (type.bits == 16) {
    if (decoder.has("NaN")) return use(decoder, small_binary<MinNanDouble>(decoder, type));
    return use(decoder, small_binary<MinDouble>(decoder, type));
  }
  if (decoder.has("NaN")) return use(decoder, float_binary<MinNan, MinDouble>(decoder, type));
  use(decoder, float_binary<MinFloat, MinDouble>(decoder, type));
}

void decode_max(Decoder& decoder) {
  const Type type = decoder.type();
  if (decoder.operands() != 3 || decoder.has("xorsign")) decoder.unsupported();
  take_binary(decoder, type, type.is_integer() ? Class::kInteger : Class::kFloat32);
  if (type.is_integer()) return use(decoder, ANNULUS_INTEGER_HANDLER(type, binary, MaxInteger));
  if (type.bits == 16) {
    if (decoder.has("NaN")) return use(decoder, small_binary<MaxNanDouble>(decoder, type));
    return use(decoder, small_binary<MaxDouble>(decoder, type));
  }
  if (decoder.has("NaN")) return use(decoder, float_binary<MaxNan, MaxDouble>(decoder, type));
  use(decoder, float_binary<MaxFloat, MaxDouble>(decoder, type));
}

namespace {

template <template <bool> typename F, typename Integer, typename Double,
          template <typename> typename Small>
void decode_sign(Decoder& decoder) {
  const Type type = decoder.type();
  take_unary(decoder, type, type.is_integer() ? Class::kInteger : Class::kFloat32);
  if (type.is_integer()) {
    return use(decoder, type.bits == 16   ? unary<std::int16_t, std::int16_t, Integer>
                        : type.bits == 32 ? unary<std::int32_t, std::int32_t, Integer>
                                          : unary<std::int64_t, std::int64_t, Integer>);
  }
  if (type == kF64) return use(decoder, unary<double, double, Double>);
  if (type == kF32) {
    return use(decoder,
               decoder.has("ftz") ? unary<float, float, F<true>> : unary<float, float, F<false>>);
  }
  if (decoder.has("ftz")) decoder.unsupported();
  if (type.count == 2) return use(decoder, unary<Half2, Half2, Packed<Half2, Small<Half>>>);
  use(decoder, unary<Half, Half, Small<Half>>);
}

}  // namespace

void decode_abs(Decoder& decoder) {
  decode_sign<AbsFloat, AbsInteger, AbsDouble, AbsSmall>(decoder);
}
void decode_neg(Decoder& decoder) {
  decode_sign<NegFloat, NegInteger, NegDouble, NegSmall>(decoder);
}

void decode_sad(Decoder& decoder) {
  const Type type = decoder.type();
  take_ternary(decoder, type, Class::kInteger);
  use(decoder, ANNULUS_INTEGER_HANDLER(type, ternary, SadInteger));
}

void decode_copysign(Decoder& decoder) {
  const Type type = decoder.type();
  take_binary(decoder, type, Class::kFloat32);
  use(decoder, type == kF64 ? binary<double, double, CopySign> : binary<float, float, CopySign>);
}

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

void decode_add_carry(Decoder& decoder, bool carry_in) {
  decode_extended<false>(decoder, carry_in);
}
void decode_sub_carry(Decoder& decoder, bool carry_in) { decode_extended<true>(decoder, carry_in); }
void decode_addc(Decoder& decoder) { decode_add_carry(decoder, true); }
void decode_subc(Decoder& decoder) { decode_sub_carry(decoder, true); }

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
