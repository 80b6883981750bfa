// Functions of the special-function unit (PTX ISA 9.0, section 9.7.3). Approximations are computed
// more exactly than the manual promises, so a comparison with a GPU needs the manual's tolerances.

#include "simulator/ops/handlers.h"

namespace annulus::simulator {
namespace {

// 2^x with a relative error below 2^-23. The manual promises 2^-22 for ex2.approx.
inline float exp2_lane(float x) {
  // Beyond these bounds the result is infinity or rounds to zero for every fraction.
  const float clamped = x < -152.0f ? -152.0f : (x > 129.0f ? 129.0f : x);
  // Adding 1.5 * 2^23 rounds to an integer, which is then in the low bits of the sum.
  const float shifted = clamped + 12582912.0f;
  const float fraction = clamped - (shifted - 12582912.0f);  // in [-0.5, 0.5]
  const std::int32_t exponent = std::bit_cast<std::int32_t>(shifted) - 0x4b400000;
  // The minimax polynomial of 2^f on [-0.5, 0.5].
  float p = 1.535336188319500e-4f;
  p = __builtin_fmaf(p, fraction, 1.339887440266574e-3f);
  p = __builtin_fmaf(p, fraction, 9.618437357674640e-3f);
  p = __builtin_fmaf(p, fraction, 5.550332471162809e-2f);
  p = __builtin_fmaf(p, fraction, 2.402264791363012e-1f);
  p = __builtin_fmaf(p, fraction, 6.931472028550421e-1f);
  p = __builtin_fmaf(p, fraction, 1.0f);
  // The exponent is applied as two factors, each a normal number, so that subnormal results and
  // results up to 2^128 are rounded only once.
  const std::int32_t half = exponent >> 1;
  const float first = std::bit_cast<float>((half + 127) << 23);
  const float second = std::bit_cast<float>((exponent - half + 127) << 23);
  const float result = p * first * second;
  return x != x ? std::bit_cast<float>(0x7fffffffu) : result;
}

template <bool kFlush>
struct Exp2 {
  float operator()(float a) const {
    // Subnormal inputs give 1, with and without .ftz.
    const float result = exp2_lane(a);
    return kFlush ? flush(result) : result;
  }
};
template <bool kFlush>
struct Log2 {
  float operator()(float a) const {
    const float x = kFlush ? flush(a) : a;
    return canonical(static_cast<float>(std::log2(static_cast<double>(x))));
  }
};
template <bool kFlush>
struct Reciprocal {
  float operator()(float a) const {
    const float result = 1.0f / (kFlush ? flush(a) : a);
    return canonical(kFlush ? flush(result) : result);
  }
};
template <bool kFlush>
struct Root {
  float operator()(float a) const {
    const float result = std::sqrt(kFlush ? flush(a) : a);
    return canonical(kFlush ? flush(result) : result);
  }
};
template <bool kFlush>
struct ReciprocalRoot {
  float operator()(float a) const {
    return canonical(
        static_cast<float>(1.0 / std::sqrt(static_cast<double>(kFlush ? flush(a) : a))));
  }
};
template <bool kFlush>
struct Sine {
  float operator()(float a) const {
    return canonical(static_cast<float>(std::sin(static_cast<double>(kFlush ? flush(a) : a))));
  }
};
template <bool kFlush>
struct Cosine {
  float operator()(float a) const {
    return canonical(static_cast<float>(std::cos(static_cast<double>(kFlush ? flush(a) : a))));
  }
};
template <bool kFlush>
struct Tanh {
  float operator()(float a) const {
    return canonical(static_cast<float>(std::tanh(static_cast<double>(a))));
  }
};
struct ReciprocalDouble {
  double operator()(double a) const { return canonical(1.0 / a); }
};
struct RootDouble {
  double operator()(double a) const { return canonical(std::sqrt(a)); }
};
struct ReciprocalRootDouble {
  double operator()(double a) const { return canonical(1.0 / std::sqrt(a)); }
};

// Counts one result for each lane, because the unit computes them one after another.
template <typename F>
void special(Warp& warp, const Inst& inst, Mask mask) {
  warp.cta->counts.special_lanes += static_cast<std::uint64_t>(std::popcount(mask));
  unary<float, float, F>(warp, inst, mask);
}

// The forms of 16 bits, such as ex2.approx.f16x2, compute each half in fp32.
template <typename T, typename F>
void special_small(Warp& warp, const Inst& inst, Mask mask) {
  warp.cta->counts.special_lanes += static_cast<std::uint64_t>(std::popcount(mask));
  each_lane(
      mask, warp.lanes<T>(inst.d), [](T a) { return narrow<T>(F{}(widen(a))); },
      warp.lanes<T>(inst.a));
}
template <typename T2, typename T, typename F>
void special_pair(Warp& warp, const Inst& inst, Mask mask) {
  warp.cta->counts.special_lanes += 2 * static_cast<std::uint64_t>(std::popcount(mask));
  each_lane(
      mask, warp.lanes<T2>(inst.d),
      [](T2 a) -> T2 {
        return {narrow<T>(F{}(widen(a.lo))), narrow<T>(F{}(widen(a.hi)))};
      },
      warp.lanes<T2>(inst.a));
}

template <template <bool> typename F, int kMode>
Handler directed_special(Decoder& decoder, Type type) {
  if (type != Type{Type::kFloat, 32}) decoder.unsupported("this rounding is not modelled");
  return decoder.has("ftz") ? special<Directed<kMode, F<true>>>
                            : special<Directed<kMode, F<false>>>;
}

template <template <bool> typename F>
void decode_special(Decoder& decoder, Handler in_double) {
  const Type type = decoder.type();
  take_unary(decoder, type, Class::kSpecial);
  if (decoder.has("rz")) return use(decoder, directed_special<F, FE_TOWARDZERO>(decoder, type));
  if (decoder.has("rm")) return use(decoder, directed_special<F, FE_DOWNWARD>(decoder, type));
  if (decoder.has("rp")) return use(decoder, directed_special<F, FE_UPWARD>(decoder, type));
  if (type == Type{Type::kFloat, 64}) return use(decoder, in_double);
  if (type == Type{Type::kFloat, 32}) {
    return use(decoder, decoder.has("ftz") ? special<F<true>> : special<F<false>>);
  }
  if (type == Type{Type::kFloat, 16}) return use(decoder, special_small<Half, F<false>>);
  if (type == Type{Type::kBrain, 16}) return use(decoder, special_small<Brain, F<false>>);
  if (type == Type{Type::kFloat, 16, 2}) return use(decoder, special_pair<Half2, Half, F<false>>);
  if (type == Type{Type::kBrain, 16, 2}) return use(decoder, special_pair<Brain2, Brain, F<false>>);
  decoder.unsupported();
}

}  // namespace

void decode_ex2(Decoder& decoder) { decode_special<Exp2>(decoder, nullptr); }
void decode_lg2(Decoder& decoder) { decode_special<Log2>(decoder, nullptr); }
void decode_rcp(Decoder& decoder) {
  decode_special<Reciprocal>(decoder, unary<double, double, ReciprocalDouble>);
}
void decode_sqrt(Decoder& decoder) {
  decode_special<Root>(decoder, unary<double, double, RootDouble>);
}
void decode_rsqrt(Decoder& decoder) {
  decode_special<ReciprocalRoot>(decoder, unary<double, double, ReciprocalRootDouble>);
}
void decode_sin(Decoder& decoder) { decode_special<Sine>(decoder, nullptr); }
void decode_cos(Decoder& decoder) { decode_special<Cosine>(decoder, nullptr); }
void decode_tanh(Decoder& decoder) { decode_special<Tanh>(decoder, nullptr); }

}  // namespace annulus::simulator
