// Conversions between number formats (PTX ISA 9.0, section 9.7.9.21).

#include <limits>

#include "simulator/ops/handlers.h"

namespace annulus::simulator {
namespace {

enum class Rounding : std::uint8_t { kNearest, kZero, kDown, kUp };

template <typename F>
F round_to_integer(F value, Rounding rounding) {
  switch (rounding) {
    case Rounding::kNearest:
      return std::nearbyint(value);
    case Rounding::kZero:
      return std::trunc(value);
    case Rounding::kDown:
      return std::floor(value);
    case Rounding::kUp:
      return std::ceil(value);
  }
  return value;
}

// Values out of range are clamped. NaN gives 0, or only the top bit if either side has 64 bits (PTX
// ISA 9.0, section 9.7.9.21).
template <typename I, typename F>
I to_integer(F value, Rounding rounding, bool from_double) {
  if (value != value) {
    if (!from_double && sizeof(I) < 8) return 0;
    return static_cast<I>(std::uint64_t{1} << (8 * sizeof(I) - 1));
  }
  const F rounded = round_to_integer(value, rounding);
  const F high = std::ldexp(F{1}, std::numeric_limits<I>::digits);
  if (rounded >= high) return std::numeric_limits<I>::max();
  if (std::is_signed_v<I> ? rounded < -high : rounded < F{0}) return std::numeric_limits<I>::min();
  return static_cast<I>(rounded);
}

// Rounds the exact value to fp32 in the given direction.
float to_float(double value, Rounding rounding) {
  const float nearest = static_cast<float>(value);
  if (rounding == Rounding::kNearest || value != value || static_cast<double>(nearest) == value) {
    return nearest;
  }
  const bool above = static_cast<double>(nearest) > value;
  const bool up = rounding == Rounding::kUp || (rounding == Rounding::kZero && value < 0);
  if (up && !above) return std::nextafter(nearest, std::numeric_limits<float>::infinity());
  if (!up && above) return std::nextafter(nearest, -std::numeric_limits<float>::infinity());
  return nearest;
}

// Rounds the exact value to a 16-bit format in the given direction. The bits of neighbouring
// numbers of one sign are neighbouring integers.
template <typename T>
T to_small(double value, Rounding rounding) {
  if (value != value) return T{0x7fff};
  T result = narrow<T>(to_odd(value));
  const double got = widen(result);
  if (rounding == Rounding::kNearest || got == value) return result;
  const bool up = rounding == Rounding::kUp || (rounding == Rounding::kZero && value < 0);
  if (up == (got > value)) return result;
  const bool away = up == (value > 0);
  result.bits = static_cast<std::uint16_t>(result.bits + (away ? 1 : -1));
  return result;
}

// Converts an integer to fp32 or fp64, rounded by the processor in the given direction.
template <typename F, typename I>
F from_integer(I value, Rounding rounding) {
  // Zero is converted without a direction: compilers may convert by a subtraction, which gives -0
  // when it is rounded down.
  if (rounding == Rounding::kNearest || value == 0) return static_cast<F>(value);
  const int before = std::fegetround();
  std::fesetround(rounding == Rounding::kZero   ? FE_TOWARDZERO
                  : rounding == Rounding::kDown ? FE_DOWNWARD
                                                : FE_UPWARD);
  volatile I opaque = value;
  volatile F result = static_cast<F>(opaque);
  std::fesetround(before);
  return result;
}

// An integer as fp64, for a second rounding to 16 bits. fp64 is exact up to 2^53. Beyond that, the
// lowest bit of the significand is set if digits were cut. So the second rounding takes no value
// for a tie or for exact if it is not.
template <typename I>
double integer_to_odd(I value) {
  const auto result = from_integer<double>(value, Rounding::kZero);
  // Rounded towards zero, the result is within the range of I again.
  if (static_cast<I>(result) == value) return result;
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(result) | 1);
}

struct Conversion {
  Type from, to;
  Rounding rounding = Rounding::kNearest;
  bool to_integral = false;  // rni, rzi, rmi or rpi between floats
  bool flush = false;
  bool saturate = false;
  bool relu = false;
  int from_bits = 0;  // the number of bits of the source register
  int to_bits = 0;
};

std::uint64_t load_bits(const std::byte* slot, int bits, int lane) {
  std::uint64_t value = 0;
  std::memcpy(&value, slot + lane * bits / 8, static_cast<std::size_t>(bits) / 8);
  return value;
}
void store_bits(std::byte* slot, int bits, int lane, std::uint64_t value) {
  std::memcpy(slot + lane * bits / 8, &value, static_cast<std::size_t>(bits) / 8);
}

std::int64_t sign_extend(std::uint64_t value, int bits) {
  return static_cast<std::int64_t>(value << (64 - bits)) >> (64 - bits);
}

// Converts an integer of 64 bits, signed or not, to an integer of another type, by cutting or
// clamping.
std::uint64_t integer_to_integer(const Conversion& how, std::uint64_t cut, std::int64_t as_signed) {
  const Type to = how.to;
  const bool is_signed = how.from.kind == Type::kSigned;
  if (!how.saturate) return is_signed ? static_cast<std::uint64_t>(as_signed) : cut;
  const std::uint64_t highest = (~std::uint64_t{0}) >> (64 - to.bits + (to.kind == Type::kSigned));
  if (is_signed && as_signed < 0) {
    if (to.kind != Type::kSigned) return 0;
    const std::int64_t lowest = -static_cast<std::int64_t>(highest) - 1;
    return static_cast<std::uint64_t>(std::max(as_signed, lowest));
  }
  return std::min(is_signed ? static_cast<std::uint64_t>(as_signed) : cut, highest);
}

std::uint64_t convert_integer(const Conversion& how, std::uint64_t bits) {
  const Type from = how.from;
  const Type to = how.to;
  const bool is_signed = from.kind == Type::kSigned;
  const std::uint64_t cut = from.bits == 64 ? bits : bits & ((std::uint64_t{1} << from.bits) - 1);
  const std::int64_t as_signed = sign_extend(cut, from.bits);
  if (to.is_integer()) return integer_to_integer(how, cut, as_signed);
  const Rounding r = how.rounding;
  if (to.bits == 64) {
    return std::bit_cast<std::uint64_t>(is_signed ? from_integer<double>(as_signed, r)
                                                  : from_integer<double>(cut, r));
  }
  if (to.bits == 16) {
    const double value = is_signed ? integer_to_odd(as_signed) : integer_to_odd(cut);
    return to.kind == Type::kBrain ? to_small<Brain>(value, r).bits : to_small<Half>(value, r).bits;
  }
  float value = is_signed ? from_integer<float>(as_signed, r) : from_integer<float>(cut, r);
  if (how.saturate) value = saturate(value);
  return std::bit_cast<std::uint32_t>(value);
}

std::uint64_t float_to_integer(const Conversion& how, double value) {
  const bool is_signed = how.to.kind == Type::kSigned;
  const Rounding r = how.rounding;
  const bool wide = how.from.bits == 64;
  switch (how.to.bits) {
    case 8:
      return is_signed
                 ? static_cast<std::uint64_t>(std::int64_t{to_integer<std::int8_t>(value, r, wide)})
                 : to_integer<std::uint8_t>(value, r, wide);
    case 16:
      return is_signed ? static_cast<std::uint64_t>(
                             std::int64_t{to_integer<std::int16_t>(value, r, wide)})
                       : to_integer<std::uint16_t>(value, r, wide);
    case 32:
      return is_signed ? static_cast<std::uint64_t>(
                             std::int64_t{to_integer<std::int32_t>(value, r, wide)})
                       : to_integer<std::uint32_t>(value, r, wide);
    default:
      return is_signed ? static_cast<std::uint64_t>(to_integer<std::int64_t>(value, r, wide))
                       : to_integer<std::uint64_t>(value, r, wide);
  }
}

double widen_float(const Conversion& how, std::uint64_t bits) {
  if (how.from.bits == 64) return std::bit_cast<double>(bits);
  if (how.from.bits == 32) {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    return how.flush ? flush(value) : value;
  }
  const auto half = static_cast<std::uint16_t>(bits);
  return how.from.kind == Type::kBrain ? widen(Brain{half}) : widen(Half{half});
}

std::uint64_t convert_float(const Conversion& how, std::uint64_t bits) {
  const Type to = how.to;
  double value = widen_float(how, bits);
  if (to.is_integer()) return float_to_integer(how, value);
  if (how.to_integral) value = round_to_integer(value, how.rounding);
  if (to.bits == 64) return std::bit_cast<std::uint64_t>(canonical(value));
  const Rounding rounding = how.to_integral ? Rounding::kNearest : how.rounding;
  if (to.bits == 32) {
    float result = to_float(value, rounding);
    if (how.flush) result = flush(result);
    if (how.saturate) result = saturate(result);
    return std::bit_cast<std::uint32_t>(canonical(result));
  }
  if (how.saturate) value = value > 0 ? (value < 1 ? value : 1.0) : 0.0;
  if (how.relu && value <= 0) value = 0.0;
  return to.kind == Type::kBrain ? to_small<Brain>(value, rounding).bits
                                 : to_small<Half>(value, rounding).bits;
}

// Converts one value by way of int64, uint64 or double, which represent every narrower format
// exactly.
std::uint64_t convert(const Conversion& how, std::uint64_t bits) {
  return how.from.is_integer() ? convert_integer(how, bits) : convert_float(how, bits);
}

// The general case. store_conversion fills in its Inst: imm the two types, small[0] the rounding,
// small[1] flags, small[2] and small[3] the bits of the registers. Conversions that are frequent in
// inner loops have separate handlers below.
void convert_any(Warp& warp, const Inst& inst, Mask mask) {
  Conversion how;
  const std::uint64_t code = static_cast<std::uint64_t>(inst.imm);
  const auto type = [&](int shift) {
    return Type{static_cast<Type::Kind>((code >> shift) & 7), 1 << ((code >> (shift + 3)) & 7), 1};
  };
  how.from = type(0);
  how.to = type(8);
  how.rounding = static_cast<Rounding>(inst.small[0]);
  how.to_integral = inst.small[1] & 1;
  how.flush = inst.small[1] & 2;
  how.saturate = inst.small[1] & 4;
  how.relu = inst.small[1] & 8;
  const int from_bits = inst.small[2];
  const int to_bits = inst.small[3];
  const std::byte* a = warp.registers + inst.a;
  std::byte* d = warp.registers + inst.d;
  std::uint64_t results[kLanes];
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    std::uint64_t value = convert(how, load_bits(a, from_bits, lane));
    // A result that is narrower than its register is extended according to its type.
    if (how.to.is_integer() && how.to.bits < 64) {
      value = how.to.kind == Type::kSigned
                  ? static_cast<std::uint64_t>(sign_extend(value, how.to.bits))
                  : value & ((std::uint64_t{1} << how.to.bits) - 1);
    }
    results[lane] = value;
  }
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    store_bits(d, to_bits, lane, results[lane]);
  }
}

template <typename D, typename S>
struct Cast {
  D operator()(S a) const { return static_cast<D>(a); }
};
struct WidenHalf {
  float operator()(Half a) const { return canonical(widen(a)); }
};
struct NarrowHalf {
  Half operator()(float a) const { return narrow<Half>(a); }
};
struct NarrowBrain {
  Brain operator()(float a) const { return narrow<Brain>(a); }
};

// .relu makes negative numbers 0 and keeps NaN.
template <bool kRelu>
float clamped(float value) {
  return kRelu && value <= 0 ? 0.0f : value;
}

// cvt.{rn,rz}.{f16x2,bf16x2}.f32 d, a, b: a becomes the upper half.
template <typename T, bool kRelu, Rounding kRounding>
void convert_pair(Warp& warp, const Inst& inst, Mask mask) {
  const auto part = [](float value) -> std::uint32_t {
    value = clamped<kRelu>(value);
    if constexpr (kRounding == Rounding::kNearest) return narrow<T>(value).bits;
    return to_small<T>(static_cast<double>(value), kRounding).bits;
  };
  each_lane(
      mask, warp.lanes<std::uint32_t>(inst.d),
      [part](float a, float b) { return (part(a) << 16) | part(b); }, warp.lanes<float>(inst.a),
      warp.lanes<float>(inst.b));
}

// cvt.rn.satfinite.e4m3x2.f32 d, a, b: each result has 8 bits, and a becomes the upper ones.
template <bool kRelu>
void convert_bytes(Warp& warp, const Inst& inst, Mask mask) {
  const auto part = [](float value) -> std::uint32_t {
    return base::float_to_e4m3(clamped<kRelu>(value));
  };
  each_lane(
      mask, warp.lanes<std::uint16_t>(inst.d),
      [part](float a, float b) { return static_cast<std::uint16_t>((part(a) << 8) | part(b)); },
      warp.lanes<float>(inst.a), warp.lanes<float>(inst.b));
}

// cvt.rn.f16x2.{e4m3x2,e5m2x2} d, a: the upper 8 bits of a become the upper half. The conversion is
// exact; e5m2 is the upper byte of an f16.
template <bool kMoreExponents, bool kRelu>
struct FromBytes {
  std::uint32_t operator()(std::uint16_t a) const {
    const auto half = [](unsigned bits) -> std::uint32_t {
      const float value = kMoreExponents ? widen(Half{static_cast<std::uint16_t>(bits << 8)})
                                         : base::e4m3_to_float(static_cast<std::uint8_t>(bits));
      return narrow<Half>(clamped<kRelu>(value)).bits;
    };
    return (half(a >> 8) << 16) | half(a & 0xffu);
  }
};

// Rounds to ten bits of fraction, ties away from zero.
struct ToTensorFloat {
  std::uint32_t operator()(std::uint32_t a) const {
    const std::uint32_t magnitude = a & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return 0x7fffffffu;
    if (magnitude == 0x7f800000u) return a;
    return (a & 0x80000000u) | ((magnitude + 0x1000u) & 0xffffe000u);
  }
};

template <typename T>
Handler pick_pair(bool relu, bool nearest) {
  if (nearest) {
    return relu ? convert_pair<T, true, Rounding::kNearest>
                : convert_pair<T, false, Rounding::kNearest>;
  }
  return relu ? convert_pair<T, true, Rounding::kZero> : convert_pair<T, false, Rounding::kZero>;
}

Handler fast_conversion(const Conversion& how) {
  const Type u32{Type::kUnsigned, 32}, s32{Type::kSigned, 32}, u64{Type::kUnsigned, 64},
      s64{Type::kSigned, 64}, f32{Type::kFloat, 32}, f16{Type::kFloat, 16}, b16{Type::kBrain, 16};
  if (how.flush || how.saturate || how.relu || how.to_integral) return nullptr;
  const auto match = [&](Type from, Type to) {
    return how.from == from && how.to == to && how.from_bits == from.bits && how.to_bits == to.bits;
  };
  using std::int32_t, std::int64_t, std::uint32_t, std::uint64_t;
  if (match(s32, s64)) return unary<int64_t, int32_t, Cast<int64_t, int32_t>>;
  if (match(u32, u64)) return unary<uint64_t, uint32_t, Cast<uint64_t, uint32_t>>;
  if (match(u64, u32) || match(s64, s32) || match(u64, s32) || match(s64, u32)) {
    return unary<uint32_t, uint64_t, Cast<uint32_t, uint64_t>>;
  }
  if (match(f16, f32)) return unary<float, Half, WidenHalf>;
  if (how.rounding != Rounding::kNearest) return nullptr;
  if (match(s32, f32)) return unary<float, int32_t, Cast<float, int32_t>>;
  if (match(u32, f32)) return unary<float, uint32_t, Cast<float, uint32_t>>;
  if (match(f32, f16)) return unary<Half, float, NarrowHalf>;
  if (match(f32, b16)) return unary<Brain, float, NarrowBrain>;
  return nullptr;
}

int log2_of(int value) { return std::countr_zero(static_cast<unsigned>(value)); }

// cvt.rna.tf32.f32. Its result is in the format tf32, which takes 32 bits.
void decode_to_tensor_float(Decoder& decoder) {
  if (!decoder.has("rna") || !decoder.has("f32")) decoder.unsupported();
  Inst& inst = decoder.inst();
  inst.a = decoder.in(1, Type{Type::kFloat, 32});
  inst.d = decoder.out(0, Type{Type::kBits, 32});
  decoder.handler(unary<std::uint32_t, std::uint32_t, ToTensorFloat>);
}

// Conversions to a pair of 8-bit floats in 16 bits, which exist only from fp32.
void decode_to_bytes(Decoder& decoder) {
  if (!decoder.has("rn") || !decoder.has("satfinite") || decoder.operands() != 3 ||
      decoder.type_from_end(0) != Type{Type::kFloat, 32}) {
    decoder.unsupported();
  }
  Inst& inst = decoder.inst();
  inst.a = decoder.in(1, Type{Type::kFloat, 32});
  inst.b = decoder.in(2, Type{Type::kFloat, 32});
  inst.d = decoder.out(0, Type{Type::kBits, 16});
  decoder.handler(decoder.has("relu") ? convert_bytes<true> : convert_bytes<false>);
}

// Conversions of such a pair to a pair of f16.
void decode_from_bytes(Decoder& decoder) {
  if (!decoder.has("rn") || !decoder.has("f16x2") || decoder.operands() != 2) {
    decoder.unsupported();
  }
  Inst& inst = decoder.inst();
  inst.a = decoder.in(1, Type{Type::kBits, 16});
  inst.d = decoder.out(0, Type{Type::kBits, 32});
  const auto handler = [&]<bool kMoreExponents>() -> Handler {
    return decoder.has("relu")
               ? unary<std::uint32_t, std::uint16_t, FromBytes<kMoreExponents, true>>
               : unary<std::uint32_t, std::uint16_t, FromBytes<kMoreExponents, false>>;
  };
  decoder.handler(decoder.has("e5m2x2") ? handler.operator()<true>() : handler.operator()<false>());
}

// Conversions to a pair of 16-bit floats.
void decode_to_pair(Decoder& decoder, const Conversion& how) {
  const bool nearest = decoder.has("rn");
  if (how.from != Type{Type::kFloat, 32} || decoder.operands() != 3 ||
      (!nearest && !decoder.has("rz"))) {
    decoder.unsupported();
  }
  Inst& inst = decoder.inst();
  inst.a = decoder.in(1, how.from);
  inst.b = decoder.in(2, how.from);
  inst.d = decoder.out(0, Type{Type::kBits, 32});
  const bool relu = decoder.has("relu");
  use(decoder, how.to.kind == Type::kBrain ? pick_pair<Brain>(relu, nearest)
                                           : pick_pair<Half>(relu, nearest));
}

void take_rounding(const Decoder& decoder, Conversion& how) {
  static constexpr std::pair<const char*, Rounding> kModes[] = {
      {"rn", Rounding::kNearest}, {"rni", Rounding::kNearest}, {"rz", Rounding::kZero},
      {"rzi", Rounding::kZero},   {"rm", Rounding::kDown},     {"rmi", Rounding::kDown},
      {"rp", Rounding::kUp},      {"rpi", Rounding::kUp}};
  for (const auto& [name, rounding] : kModes) {
    if (!decoder.has(name)) continue;
    how.rounding = rounding;
    how.to_integral = name[2] == 'i';
  }
  // Ties away from zero exist only for tf32, which decode_to_tensor_float handles.
  if (decoder.has("rna")) decoder.unsupported();
}

// Stores a conversion in the form that convert_any reads.
void store_conversion(Inst& inst, const Conversion& how) {
  const auto code = [](Type type) {
    return static_cast<std::uint64_t>(type.kind) |
           (static_cast<std::uint64_t>(log2_of(type.bits)) << 3);
  };
  inst.imm = static_cast<std::int64_t>(code(how.from) | (code(how.to) << 8));
  inst.small[0] = static_cast<std::uint8_t>(how.rounding);
  inst.small[1] = static_cast<std::uint8_t>((how.to_integral ? 1 : 0) | (how.flush ? 2 : 0) |
                                            (how.saturate ? 4 : 0) | (how.relu ? 8 : 0));
  inst.small[2] = static_cast<std::uint8_t>(how.from_bits);
  inst.small[3] = static_cast<std::uint8_t>(how.to_bits);
}

}  // namespace

void decode_cvt(Decoder& decoder) {
  Inst& inst = decoder.inst();
  inst.kind = Class::kConversion;
  if (decoder.has("tf32")) return decode_to_tensor_float(decoder);
  if (decoder.has("e4m3x2") || decoder.has("e5m2x2")) {
    if (decoder.has("f16x2")) return decode_from_bytes(decoder);
    if (decoder.has("e4m3x2")) return decode_to_bytes(decoder);
  }
  Conversion how;
  how.from = decoder.type_from_end(0);
  how.to = decoder.type_from_end(1);
  if (how.to.count == 2) return decode_to_pair(decoder, how);
  if (how.from.count == 2 || how.from.bits == 0 || how.to.bits == 0) decoder.unsupported();
  take_rounding(decoder, how);
  how.flush = decoder.has("ftz");
  how.saturate = decoder.has("sat");
  how.relu = decoder.has("relu");
  if (how.to.is_integer()) how.to_integral = false;
  inst.a = decoder.in_wide(decoder.operand(1), how.from, &how.from_bits);
  inst.d = decoder.out_wide(decoder.operand(0), how.to, &how.to_bits);
  if (const Handler fast = fast_conversion(how)) return decoder.handler(fast);
  store_conversion(inst, how);
  decoder.handler(convert_any);
}

}  // namespace annulus::simulator
