// Arithmetic on floats of 16, 32 and 64 bits (PTX ISA 9.0, sections 9.7.3 and 9.7.4).

#include <cfenv>

#include "simulator/ops/arithmetic.h"
#include "simulator/ops/handlers.h"

namespace annulus::simulator {
namespace {

// .ftz flushes a result that is below 2^-126 after rounding to 24 bits with an exponent of
// unbounded range, as an H200 does. The product with kRaise is rounded so. If an operand becomes
// infinite by it, the result is 0 or not subnormal, and is kept.
constexpr float kRaise = 0x1p64f;

template <bool kFlush>
struct Fp32 {
  static float in(float value) { return kFlush ? flush(value) : value; }
  static float out(float value) { return canonical(kFlush ? flush(value) : value); }
  // `raised` is kRaise times the result.
  static float out(float value, float raised) {
    const bool tiny = std::fabs(raised) < 0x1p-126f * kRaise;
    return canonical(kFlush && tiny ? std::copysign(0.0f, value) : value);
  }
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
    const float x = Fp32<kFlush>::in(a);
    const float y = Fp32<kFlush>::in(b);
    return Fp32<kFlush>::out(x * y, x * kRaise * y);
  }
};
template <bool kFlush>
struct FmaFloat {
  float operator()(float a, float b, float c) const {
    const float x = Fp32<kFlush>::in(a);
    const float y = Fp32<kFlush>::in(b);
    const float z = Fp32<kFlush>::in(c);
    return Fp32<kFlush>::out(__builtin_fmaf(x, y, z), __builtin_fmaf(x * kRaise, y, z * kRaise));
  }
};
template <bool kFlush>
struct DivFloat {
  float operator()(float a, float b) const {
    const float x = Fp32<kFlush>::in(a);
    const float y = Fp32<kFlush>::in(b);
    return Fp32<kFlush>::out(x / y, x * kRaise / y);
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
// abs and neg only change the sign. A NaN stays a NaN, with an unspecified payload.
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

// product + addend, rounded to odd: an inexact sum gets an odd last bit. Rounding it once more to a
// shorter format then gives the same number as rounding only once. Requires: the product is exact.
inline double sum_to_odd(double product, double addend) {
  const double sum = product + addend;
  const double of_addend = sum - product;
  const double rest = (product - (sum - of_addend)) + (addend - of_addend);
  const auto bits = std::bit_cast<std::int64_t>(sum);
  const bool exact = !(rest < 0 || rest > 0);
  const std::int64_t away = (rest > 0) == (sum > 0) ? 1 : -1;
  return std::bit_cast<double>(exact || (bits & 1) != 0 ? bits : bits + away);
}
// The products of 16-bit floats are exact in fp64.
struct FmaShort {
  double operator()(double a, double b, double c) const { return sum_to_odd(a * b, c); }
};

// Arithmetic on 16-bit floats in fp64. Products are exact there. Sums are exact, or rounded to odd,
// or so far from a tie of the short format that the rounding of fp64 cannot matter. So only the
// rounding to 16 bits counts.
template <typename T, typename F>
struct Narrow {
  template <typename... S>
  T operator()(S... s) const {
    const double result = F{}(static_cast<double>(widen(s))...);
    return result != result ? T{0x7fff} : narrow<T>(to_odd(result));
  }
};
// .sat clamps to [0, 1] and makes NaN 0; .relu makes negative results 0.
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
// .ftz of f16. As in fp32, a result is flushed if it is subnormal after rounding with an exponent
// of unbounded range. The tie between the largest such result and 2^-14 is rounded up.
template <typename T, typename F>
struct NarrowFlushed {
  static T signed_zero(T value) { return T{static_cast<std::uint16_t>(value.bits & 0x8000u)}; }
  static T flushed(T value) { return (value.bits & 0x7c00u) == 0 ? signed_zero(value) : value; }
  template <typename... S>
  T operator()(S... s) const {
    const T result = Narrow<T, F>{}(flushed(s)...);
    const double exact = F{}(static_cast<double>(widen(flushed(s)))...);
    return std::fabs(exact) < 0x1p-14 - 0x1p-26 ? signed_zero(result) : result;
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

// A handler of `shape` over the 16-bit float types, scalar or packed. `form` is one of the class
// templates above.
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

template <template <bool> typename F, typename Double>
void decode_float(Decoder& decoder) {
  const Type type = decoder.type();
  take_binary(decoder, type, Class::kFloat32);
  use(decoder, type.bits == 16 ? small_binary<Double>(decoder, type)
                               : float_binary<F, Double>(decoder, type));
}

// min and max. NanF and NanDouble are for .NaN, with which the result is NaN if an operand is.
template <template <bool> typename F, template <bool> typename NanF, typename Double,
          typename NanDouble>
void decode_extreme(Decoder& decoder) {
  if (decoder.operands() != 3 || decoder.has("xorsign")) decoder.unsupported();
  const Type type = decoder.type();
  take_binary(decoder, type, Class::kFloat32);
  if (type.bits == 16) {
    return use(decoder, decoder.has("NaN") ? small_binary<NanDouble>(decoder, type)
                                           : small_binary<Double>(decoder, type));
  }
  use(decoder, decoder.has("NaN") ? float_binary<NanF, Double>(decoder, type)
                                  : float_binary<F, Double>(decoder, type));
}

template <template <bool> typename F, typename Double, template <typename> typename Small>
void decode_sign(Decoder& decoder) {
  const Type type = decoder.type();
  take_unary(decoder, type, Class::kFloat32);
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

void add_floats(Decoder& decoder) { decode_float<AddFloat, AddDouble>(decoder); }
void sub_floats(Decoder& decoder) { decode_float<SubFloat, SubDouble>(decoder); }
void mul_floats(Decoder& decoder) { decode_float<MulFloat, MulDouble>(decoder); }
void div_floats(Decoder& decoder) {
  if (decoder.type().bits == 16) decoder.unsupported();
  decode_float<DivFloat, DivDouble>(decoder);
}
void min_floats(Decoder& decoder) {
  decode_extreme<MinFloat, MinNan, MinDouble, MinNanDouble>(decoder);
}
void max_floats(Decoder& decoder) {
  decode_extreme<MaxFloat, MaxNan, MaxDouble, MaxNanDouble>(decoder);
}
void abs_floats(Decoder& decoder) { decode_sign<AbsFloat, AbsDouble, AbsSmall>(decoder); }
void neg_floats(Decoder& decoder) { decode_sign<NegFloat, NegDouble, NegSmall>(decoder); }

void decode_fma(Decoder& decoder) {
  const Type type = decoder.type();
  take_ternary(decoder, type, Class::kFloat32);
  if (type.bits == 16) {
    if (decoder.has("sat")) {
      return use(decoder, ANNULUS_SMALL_FLOAT(type, ternary, NarrowSaturated, FmaShort));
    }
    if (decoder.has("relu")) {
      if (decoder.has("ftz")) decoder.unsupported();
      return use(decoder, ANNULUS_SMALL_FLOAT(type, ternary, NarrowRelu, FmaShort));
    }
    if (decoder.has("ftz")) {
      return use(decoder, ANNULUS_SMALL_FLOAT(type, ternary, NarrowFlushed, FmaShort));
    }
    return use(decoder, ANNULUS_SMALL_FLOAT(type, ternary, Narrow, FmaShort));
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

void decode_copysign(Decoder& decoder) {
  const Type type = decoder.type();
  take_binary(decoder, type, Class::kFloat32);
  use(decoder, type == kF64 ? binary<double, double, CopySign> : binary<float, float, CopySign>);
}

}  // namespace annulus::simulator
