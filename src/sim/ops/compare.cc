// Comparison and selection (PTX ISA 9.0, section 9.7.6).

#include "sim/ops/numbers.h"

namespace annulus::sim {
namespace {

enum class Compare { kEq, kNe, kLt, kLe, kGt, kGe, kNum, kNan };

// kUnordered: true as soon as an operand is NaN (equ, neu, ltu, ...).
template <Compare kCompare, bool kUnordered, typename T>
inline bool compare(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    const bool nan = (a != a) | (b != b);
    if constexpr (kCompare == Compare::kNum) return !nan;
    if constexpr (kCompare == Compare::kNan) return nan;
    if constexpr (kUnordered) {
      if (nan) return true;
    }
    if constexpr (kCompare == Compare::kNe && !kUnordered) return (a < b) | (a > b);
  }
  if constexpr (kCompare == Compare::kEq) return a == b;
  if constexpr (kCompare == Compare::kNe) return a != b;
  if constexpr (kCompare == Compare::kLt) return a < b;
  if constexpr (kCompare == Compare::kLe) return a <= b;
  if constexpr (kCompare == Compare::kGt) return a > b;
  if constexpr (kCompare == Compare::kGe) return a >= b;
  return false;
}

// Reads lanes of storage type S as values of type T.
template <typename S>
inline auto value_of(S stored) {
  if constexpr (std::is_same_v<S, Half> || std::is_same_v<S, Brain>) {
    return widen(stored);
  } else {
    return stored;
  }
}

template <typename S, Compare kCompare, bool kUnordered, bool kFlush>
inline Mask compare_lanes(const Context& context, const Inst& inst) {
  const S* a = context.lanes<S>(inst.a);
  const S* b = context.lanes<S>(inst.b);
  Mask result = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    auto x = value_of(a[lane]);
    auto y = value_of(b[lane]);
    if constexpr (kFlush) {
      x = flush(x);
      y = flush(y);
    }
    result |= static_cast<Mask>(compare<kCompare, kUnordered>(x, y)) << lane;
  }
  return result;
}

// setp p[|q], a, b[, c]: small[0] how c joins (0 none, 1 and, 2 or, 3 xor), small[1] c negated,
// small[2] a second destination in aux.
template <typename S, Compare kCompare, bool kUnordered, bool kFlush>
void setp(Context& context, const Inst& inst, Mask mask) {
  const Mask result = compare_lanes<S, kCompare, kUnordered, kFlush>(context, inst);
  Mask first = result;
  Mask second = ~result;
  if (inst.small[0] != 0) {
    const Mask c = context.predicate(inst.c) ^ (inst.small[1] ? kFull : 0);
    first = inst.small[0] == 1 ? first & c : inst.small[0] == 2 ? first | c : first ^ c;
    second = inst.small[0] == 1 ? second & c : inst.small[0] == 2 ? second | c : second ^ c;
  }
  Mask& d = context.predicate(inst.d);
  d = (d & ~mask) | (first & mask);
  if (inst.small[2]) {
    Mask& q = context.predicate(inst.aux);
    q = (q & ~mask) | (second & mask);
  }
}

// set d, a, b[, c]: all ones or 1.0f; small[3] says which.
template <typename S, Compare kCompare, bool kUnordered, bool kFlush>
void set(Context& context, const Inst& inst, Mask mask) {
  Mask result = compare_lanes<S, kCompare, kUnordered, kFlush>(context, inst);
  if (inst.small[0] != 0) {
    const Mask c = context.predicate(inst.c) ^ (inst.small[1] ? kFull : 0);
    result = inst.small[0] == 1 ? result & c : inst.small[0] == 2 ? result | c : result ^ c;
  }
  auto* d = context.lanes<std::uint32_t>(inst.d);
  const std::uint32_t yes = inst.small[3] ? std::bit_cast<std::uint32_t>(1.0f) : 0xffffffffu;
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((mask >> lane) & 1) d[lane] = (result >> lane) & 1 ? yes : 0;
  }
}

template <typename S, bool kFlush, bool kSet, Compare kCompare>
Handler pick_order(bool unordered) {
  if constexpr (kSet) {
    return unordered ? set<S, kCompare, true, kFlush> : set<S, kCompare, false, kFlush>;
  } else {
    return unordered ? setp<S, kCompare, true, kFlush> : setp<S, kCompare, false, kFlush>;
  }
}

template <typename S, bool kFlush, bool kSet>
Handler pick_compare(Compare how, bool unordered) {
  switch (how) {
    case Compare::kEq:
      return pick_order<S, kFlush, kSet, Compare::kEq>(unordered);
    case Compare::kNe:
      return pick_order<S, kFlush, kSet, Compare::kNe>(unordered);
    case Compare::kLt:
      return pick_order<S, kFlush, kSet, Compare::kLt>(unordered);
    case Compare::kLe:
      return pick_order<S, kFlush, kSet, Compare::kLe>(unordered);
    case Compare::kGt:
      return pick_order<S, kFlush, kSet, Compare::kGt>(unordered);
    case Compare::kGe:
      return pick_order<S, kFlush, kSet, Compare::kGe>(unordered);
    case Compare::kNum:
      return pick_order<S, kFlush, kSet, Compare::kNum>(false);
    case Compare::kNan:
      return pick_order<S, kFlush, kSet, Compare::kNan>(false);
  }
  return nullptr;
}

template <bool kSet>
Handler pick_type(Type type, bool ftz, Compare how, bool unordered) {
  if (type == Type{Type::kFloat, 32}) {
    return ftz ? pick_compare<float, true, kSet>(how, unordered)
               : pick_compare<float, false, kSet>(how, unordered);
  }
  if (type == Type{Type::kFloat, 64}) return pick_compare<double, false, kSet>(how, unordered);
  if (type == Type{Type::kFloat, 16}) return pick_compare<Half, false, kSet>(how, unordered);
  if (type == Type{Type::kBrain, 16}) return pick_compare<Brain, false, kSet>(how, unordered);
  if (!type.is_integer()) return nullptr;
  if (type.kind == Type::kSigned) {
    if (type.bits == 16) return pick_compare<std::int16_t, false, kSet>(how, false);
    if (type.bits == 32) return pick_compare<std::int32_t, false, kSet>(how, false);
    if (type.bits == 64) return pick_compare<std::int64_t, false, kSet>(how, false);
  }
  if (type.bits == 16) return pick_compare<std::uint16_t, false, kSet>(how, false);
  if (type.bits == 32) return pick_compare<std::uint32_t, false, kSet>(how, false);
  if (type.bits == 64) return pick_compare<std::uint64_t, false, kSet>(how, false);
  return nullptr;
}

// Packed pairs are rare: the comparison is looked up for every lane. small[4] holds it, and in its
// upper half whether it is unordered.
bool compare_any(int how, float a, float b) {
  const bool nan = (a != a) | (b != b);
  const auto order = static_cast<Compare>(how & 15);
  if (order == Compare::kNum) return !nan;
  if (order == Compare::kNan) return nan;
  if (nan) return (how & 16) != 0;
  switch (order) {
    case Compare::kEq:
      return a == b;
    case Compare::kNe:
      return a != b;
    case Compare::kLt:
      return a < b;
    case Compare::kLe:
      return a <= b;
    case Compare::kGt:
      return a > b;
    default:
      return a >= b;
  }
}

// setp.f16x2 p|q: p for the lower halves, q for the upper ones; c joins both.
template <typename T2>
void setp_pair(Context& context, const Inst& inst, Mask mask) {
  const T2* a = context.lanes<T2>(inst.a);
  const T2* b = context.lanes<T2>(inst.b);
  Mask low = 0;
  Mask high = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    low |= static_cast<Mask>(compare_any(inst.small[4], widen(a[lane].lo), widen(b[lane].lo)))
           << lane;
    high |= static_cast<Mask>(compare_any(inst.small[4], widen(a[lane].hi), widen(b[lane].hi)))
            << lane;
  }
  if (inst.small[0] != 0) {
    const Mask c = context.predicate(inst.c) ^ (inst.small[1] ? kFull : 0);
    const auto join = [&](Mask x) {
      return inst.small[0] == 1 ? x & c : inst.small[0] == 2 ? x | c : x ^ c;
    };
    low = join(low);
    high = join(high);
  }
  Mask& p = context.predicate(inst.d);
  Mask& q = context.predicate(inst.aux);
  p = (p & ~mask) | (low & mask);
  q = (q & ~mask) | (high & mask);
}

// set.f16x2.f16x2: 1.0 of the format in each half that compares true, else 0.
template <typename T2, std::uint16_t kOne>
void set_pair(Context& context, const Inst& inst, Mask mask) {
  const T2* a = context.lanes<T2>(inst.a);
  const T2* b = context.lanes<T2>(inst.b);
  T2* d = context.lanes<T2>(inst.d);
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    const T2 x = a[lane];
    const T2 y = b[lane];
    const bool low = compare_any(inst.small[4], widen(x.lo), widen(y.lo));
    const bool high = compare_any(inst.small[4], widen(x.hi), widen(y.hi));
    d[lane] = {{low ? kOne : std::uint16_t{0}}, {high ? kOne : std::uint16_t{0}}};
  }
}

// The comparison is the first modifier: eq, lo, ltu, num, ...
void parse_compare(Decoder& decoder, Type type, Compare* how, bool* unordered) {
  if (decoder.source().modifiers.empty()) decoder.malformed("no comparison");
  std::string name = decoder.source().modifiers[0];
  *unordered = false;
  if (name == "num" || name == "nan") {
    *how = name == "num" ? Compare::kNum : Compare::kNan;
    return;
  }
  if (type.is_integer()) {  // unsigned comparisons may have names of their own
    if (name == "lo") name = "lt";
    if (name == "ls") name = "le";
    if (name == "hi") name = "gt";
    if (name == "hs") name = "ge";
  } else if (name.size() == 3 && name[2] == 'u') {
    *unordered = true;
    name.pop_back();
  }
  if (name == "eq") {
    *how = Compare::kEq;
  } else if (name == "ne") {
    *how = Compare::kNe;
  } else if (name == "lt") {
    *how = Compare::kLt;
  } else if (name == "le") {
    *how = Compare::kLe;
  } else if (name == "gt") {
    *how = Compare::kGt;
  } else if (name == "ge") {
    *how = Compare::kGe;
  } else {
    decoder.malformed("unknown comparison");
  }
}

void take_combination(Decoder& decoder) {
  if (decoder.operands() <= 3) return;
  Inst& inst = decoder.inst();
  inst.small[0] = decoder.has("and") ? 1 : decoder.has("or") ? 2 : decoder.has("xor") ? 3 : 0;
  if (inst.small[0] == 0) decoder.malformed("a fourth operand needs and, or or xor");
  bool negated = false;
  inst.c = decoder.predicate_in(decoder.operand(3), &negated);
  inst.small[1] = negated;
}

template <typename T>
void selp(Context& context, const Inst& inst, Mask mask) {
  const Mask chosen = context.predicate(inst.c) ^ (inst.small[0] ? kFull : 0);
  const T* a = context.lanes<T>(inst.a);
  const T* b = context.lanes<T>(inst.b);
  T* d = context.lanes<T>(inst.d);
  if (mask == kFull) {
    ANNULUS_LANE_LOOP
    for (int lane = 0; lane < kLanes; ++lane) d[lane] = (chosen >> lane) & 1 ? a[lane] : b[lane];
  } else {
    for (int lane = 0; lane < kLanes; ++lane) {
      if ((mask >> lane) & 1) d[lane] = (chosen >> lane) & 1 ? a[lane] : b[lane];
    }
  }
}

template <typename T, typename C>
void slct(Context& context, const Inst& inst, Mask mask) {
  each_lane(
      mask, context.lanes<T>(inst.d), [](T a, T b, C c) { return c >= 0 ? a : b; },
      context.lanes<T>(inst.a), context.lanes<T>(inst.b), context.lanes<C>(inst.c));
}

template <typename T>
void testp(Context& context, const Inst& inst, Mask mask) {
  const T* a = context.lanes<T>(inst.a);
  Mask result = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    bool yes = false;
    switch (inst.small[0]) {
      case 0:
        yes = std::isfinite(a[lane]);
        break;
      case 1:
        yes = std::isinf(a[lane]);
        break;
      case 2:
        yes = !std::isnan(a[lane]);
        break;
      case 3:
        yes = std::isnan(a[lane]);
        break;
      case 4:
        yes = std::isnormal(a[lane]);
        break;
      default:
        yes = std::fpclassify(a[lane]) == FP_SUBNORMAL;
        break;
    }
    result |= static_cast<Mask>(yes) << lane;
  }
  Mask& d = context.predicate(inst.d);
  d = (d & ~mask) | (result & mask);
}

}  // namespace

void decode_setp(Decoder& decoder) {
  const Type type = decoder.type();
  Inst& inst = decoder.inst();
  Compare how{};
  bool unordered = false;
  parse_compare(decoder, type, &how, &unordered);
  inst.kind = type.is_integer() ? Class::kInteger : Class::kFloat32;
  inst.a = decoder.in(1, type);
  inst.b = decoder.in(2, type);
  take_combination(decoder);
  const ptx::Operand& destination = decoder.operand(0);
  if (destination.kind == ptx::OperandKind::kPair) {
    inst.d = decoder.predicate_out(destination.elements[0]);
    inst.aux = decoder.predicate_out(destination.elements[1]);
    inst.small[2] = 1;
  } else {
    inst.d = decoder.predicate_out(destination);
  }
  if (type.count == 2) {
    if (inst.small[2] == 0) decoder.malformed("a packed comparison has two results");
    if (decoder.has("ftz")) decoder.unsupported();
    inst.small[4] = static_cast<std::uint8_t>(static_cast<int>(how) | (unordered ? 16 : 0));
    return decoder.handler(type.kind == Type::kBrain ? setp_pair<Brain2> : setp_pair<Half2>);
  }
  use(decoder, pick_type<false>(type, decoder.has("ftz"), how, unordered));
}

void decode_set(Decoder& decoder) {
  const Type type = decoder.type();
  const Type result = decoder.type_from_end(1);
  Inst& inst = decoder.inst();
  const bool packed = type.count == 2 && result == type && decoder.operands() == 3;
  if (!packed && (type.count != 1 || result.count != 1 || result.bits != 32)) decoder.unsupported();
  Compare how{};
  bool unordered = false;
  parse_compare(decoder, type, &how, &unordered);
  inst.kind = type.is_integer() ? Class::kInteger : Class::kFloat32;
  inst.a = decoder.in(1, type);
  inst.b = decoder.in(2, type);
  take_combination(decoder);
  inst.small[3] = result.kind == Type::kFloat;
  inst.d = decoder.out(0, result);
  if (packed) {
    if (decoder.has("ftz")) decoder.unsupported();
    inst.small[4] = static_cast<std::uint8_t>(static_cast<int>(how) | (unordered ? 16 : 0));
    return decoder.handler(type.kind == Type::kBrain ? set_pair<Brain2, 0x3f80>
                                                     : set_pair<Half2, 0x3c00>);
  }
  use(decoder, pick_type<true>(type, decoder.has("ftz"), how, unordered));
}

void decode_selp(Decoder& decoder) {
  const Type type = decoder.type();
  Inst& inst = decoder.inst();
  inst.kind = Class::kInteger;
  inst.a = decoder.in(1, type);
  inst.b = decoder.in(2, type);
  bool negated = false;
  inst.c = decoder.predicate_in(decoder.operand(3), &negated);
  inst.small[0] = negated;
  inst.d = decoder.out(0, type);
  use(decoder, type.bits == 16   ? selp<std::uint16_t>
               : type.bits == 32 ? selp<std::uint32_t>
                                 : selp<std::uint64_t>);
}

void decode_slct(Decoder& decoder) {
  const Type selector = decoder.type_from_end(0);
  const Type type = decoder.type_from_end(1);
  Inst& inst = decoder.inst();
  inst.kind = Class::kInteger;
  inst.a = decoder.in(1, type);
  inst.b = decoder.in(2, type);
  inst.c = decoder.in(3, selector);
  inst.d = decoder.out(0, type);
  const bool by_float = selector.kind == Type::kFloat;
  use(decoder, type.bits == 16
                   ? (by_float ? slct<std::uint16_t, float> : slct<std::uint16_t, std::int32_t>)
               : type.bits == 32
                   ? (by_float ? slct<std::uint32_t, float> : slct<std::uint32_t, std::int32_t>)
                   : (by_float ? slct<std::uint64_t, float> : slct<std::uint64_t, std::int32_t>));
}

void decode_testp(Decoder& decoder) {
  const Type type = decoder.type();
  Inst& inst = decoder.inst();
  inst.kind = Class::kFloat32;
  inst.a = decoder.in(1, type);
  inst.d = decoder.predicate_out(decoder.operand(0));
  inst.small[0] = decoder.has("finite")       ? 0
                  : decoder.has("infinite")   ? 1
                  : decoder.has("number")     ? 2
                  : decoder.has("notanumber") ? 3
                  : decoder.has("normal")     ? 4
                                              : 5;
  use(decoder, type.bits == 64 ? testp<double> : testp<float>);
}

}  // namespace annulus::sim
