// Comparison (PTX ISA 9.0, section 9.7.6).

#include <array>
#include <utility>

#include "simulator/ops/handlers.h"

namespace annulus::simulator {
namespace {

enum class Order : std::uint8_t { kEq, kNe, kLt, kLe, kGt, kGe, kNum, kNan };
constexpr std::size_t kOrders = 8;

struct Comparison {
  Order order = Order::kEq;
  bool unordered = false;  // true if an operand is NaN: equ, neu, ltu, ...
};

// If `how` is a constant, this compiles to one comparison.
template <typename T>
inline __attribute__((always_inline)) bool compare(Comparison how, T a, T b) {
  bool nan = false;
  if constexpr (std::is_floating_point_v<T>) nan = (a != a) | (b != b);
  switch (how.order) {
    case Order::kEq:
      return (a == b) | (how.unordered & nan);
    case Order::kNe:
      return how.unordered ? a != b : (a < b) | (a > b);
    case Order::kLt:
      return (a < b) | (how.unordered & nan);
    case Order::kLe:
      return (a <= b) | (how.unordered & nan);
    case Order::kGt:
      return (a > b) | (how.unordered & nan);
    case Order::kGe:
      return (a >= b) | (how.unordered & nan);
    case Order::kNum:
      return !nan;
    case Order::kNan:
      return nan;
  }
  return false;
}

// Converts a lane of storage type S to its value of type T.
template <typename S>
inline auto value_of(S stored) {
  if constexpr (std::is_same_v<S, Half> || std::is_same_v<S, Brain>) {
    return widen(stored);
  } else {
    return stored;
  }
}

template <typename S, Order kOrder, bool kUnordered, bool kFlush>
inline Mask compare_lanes(const Warp& warp, const Inst& inst) {
  const S* a = warp.lanes<S>(inst.a);
  const S* b = warp.lanes<S>(inst.b);
  Mask result = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    auto x = value_of(a[lane]);
    auto y = value_of(b[lane]);
    if constexpr (kFlush) {
      x = flush(x);
      y = flush(y);
    }
    result |= static_cast<Mask>(compare({kOrder, kUnordered}, x, y)) << lane;
  }
  return result;
}

// How a comparison is combined with predicate c: small[0]. small[1] means that c is negated.
enum class Join : std::uint8_t { kNone, kAnd, kOr, kXor };

Mask join(const Warp& warp, const Inst& inst, Mask result) {
  switch (static_cast<Join>(inst.small[0])) {
    case Join::kNone:
      return result;
    case Join::kAnd:
      return result & warp.predicate(inst.c, inst.small[1]);
    case Join::kOr:
      return result | warp.predicate(inst.c, inst.small[1]);
    case Join::kXor:
      return result ^ warp.predicate(inst.c, inst.small[1]);
  }
  return result;
}

// setp p[|q], a, b[, c]. small[2] means that there is a q, which is in aux.
template <typename S, Order kOrder, bool kUnordered, bool kFlush>
void setp(Warp& warp, const Inst& inst, Mask mask) {
  const Mask result = compare_lanes<S, kOrder, kUnordered, kFlush>(warp, inst);
  const Mask first = join(warp, inst, result);
  const Mask second = join(warp, inst, ~result);
  warp.set_predicate(inst.d, first, mask);
  if (inst.small[2]) warp.set_predicate(inst.aux, second, mask);
}

template <typename T>
void put_truth(Warp& warp, const Inst& inst, Mask mask, Mask result) {
  T* d = warp.lanes<T>(inst.d);
  const T yes = static_cast<T>(inst.imm);
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((mask >> lane) & 1) d[lane] = (result >> lane) & 1 ? yes : T{0};
  }
}

// set d, a, b[, c]. The value for true is imm (all ones or 1.0); small[3] means that the result has
// 16 bits.
template <typename S, Order kOrder, bool kUnordered, bool kFlush>
void set(Warp& warp, const Inst& inst, Mask mask) {
  const Mask compared = compare_lanes<S, kOrder, kUnordered, kFlush>(warp, inst);
  const Mask result = join(warp, inst, compared);
  if (inst.small[3]) {
    put_truth<std::uint16_t>(warp, inst, mask, result);
  } else {
    put_truth<std::uint32_t>(warp, inst, mask, result);
  }
}

template <typename S, bool kFlush, bool kSet, bool kUnordered>
Handler pick_order(Order order) {
  return [&]<std::size_t... kOrder>(std::index_sequence<kOrder...>) {
    if constexpr (kSet) {
      return std::array<Handler, kOrders>{
          set<S, static_cast<Order>(kOrder), kUnordered, kFlush>...};
    } else {
      return std::array<Handler, kOrders>{
          setp<S, static_cast<Order>(kOrder), kUnordered, kFlush>...};
    }
  }
  (std::make_index_sequence<kOrders>())[static_cast<std::size_t>(order)];
}

template <typename S, bool kSet, bool kFlush = false>
Handler pick_compare(Comparison how) {
  if constexpr (!std::is_integral_v<S>) {
    if (how.unordered) return pick_order<S, kFlush, kSet, true>(how.order);
  }
  return pick_order<S, kFlush, kSet, false>(how.order);
}

template <bool kSet>
Handler pick_type(Type type, bool ftz, Comparison how) {
  if (type == kF32) {
    return ftz ? pick_compare<float, kSet, true>(how) : pick_compare<float, kSet>(how);
  }
  if (type == kF64) return pick_compare<double, kSet>(how);
  if (type == Type{Type::kFloat, 16}) return pick_compare<Half, kSet>(how);
  if (type == Type{Type::kBrain, 16}) return pick_compare<Brain, kSet>(how);
  if (!type.is_integer()) return nullptr;
  const bool is_signed = type.kind == Type::kSigned;
  switch (type.bits) {
    case 16:
      return is_signed ? pick_compare<std::int16_t, kSet>(how)
                       : pick_compare<std::uint16_t, kSet>(how);
    case 32:
      return is_signed ? pick_compare<std::int32_t, kSet>(how)
                       : pick_compare<std::uint32_t, kSet>(how);
    case 64:
      return is_signed ? pick_compare<std::int64_t, kSet>(how)
                       : pick_compare<std::uint64_t, kSet>(how);
    default:
      return nullptr;
  }
}

// Packed pairs are rare, so the comparison in small[4] is selected for every lane.
constexpr int kUnorderedBit = 16;

template <typename T>
bool compare_stored(const Inst& inst, T a, T b) {
  const Comparison how{static_cast<Order>(inst.small[4] & (kUnorderedBit - 1)),
                       (inst.small[4] & kUnorderedBit) != 0};
  return compare(how, widen(a), widen(b));
}

// setp.f16x2 p|q: p is for the lower halves and q for the upper halves. Both are combined with c.
template <typename T2>
void setp_pair(Warp& warp, const Inst& inst, Mask mask) {
  const T2* a = warp.lanes<T2>(inst.a);
  const T2* b = warp.lanes<T2>(inst.b);
  Mask low = 0;
  Mask high = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    low |= static_cast<Mask>(compare_stored(inst, a[lane].lo, b[lane].lo)) << lane;
    high |= static_cast<Mask>(compare_stored(inst, a[lane].hi, b[lane].hi)) << lane;
  }
  low = join(warp, inst, low);
  high = join(warp, inst, high);
  warp.set_predicate(inst.d, low, mask);
  warp.set_predicate(inst.aux, high, mask);
}

// set.f16x2.f16x2 writes 1.0 of the format into each half that compares true, else 0. set.u32.f16x2
// writes all ones. imm holds the value.
template <typename T2>
void set_pair(Warp& warp, const Inst& inst, Mask mask) {
  const T2* a = warp.lanes<T2>(inst.a);
  const T2* b = warp.lanes<T2>(inst.b);
  const auto yes = static_cast<std::uint16_t>(inst.imm);
  T2* d = warp.lanes<T2>(inst.d);
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    const bool low = compare_stored(inst, a[lane].lo, b[lane].lo);
    const bool high = compare_stored(inst, a[lane].hi, b[lane].hi);
    d[lane] = {{low ? yes : std::uint16_t{0}}, {high ? yes : std::uint16_t{0}}};
  }
}

// Reads the comparison, which is the first modifier: eq, lo, ltu, num, ...
Comparison parse_comparison(const Decoder& decoder, Type type) {
  if (decoder.source().modifiers.empty()) decoder.malformed("no comparison");
  std::string name = decoder.source().modifiers[0];
  Comparison how;
  if (type.is_integer()) {  // unsigned comparisons may have different names
    if (name == "lo") name = "lt";
    if (name == "ls") name = "le";
    if (name == "hi") name = "gt";
    if (name == "hs") name = "ge";
  } else if (name.size() == 3 && name[2] == 'u') {
    how.unordered = true;
    name.pop_back();
  }
  static constexpr std::pair<std::string_view, Order> kNames[] = {
      {"eq", Order::kEq}, {"ne", Order::kNe}, {"lt", Order::kLt},   {"le", Order::kLe},
      {"gt", Order::kGt}, {"ge", Order::kGe}, {"num", Order::kNum}, {"nan", Order::kNan}};
  for (const auto& [known, order] : kNames) {
    if (name != known) continue;
    how.order = order;
    return how;
  }
  decoder.malformed("unknown comparison");
}

// Reads the sources of setp and set. In both they follow the destination.
Comparison take_sources(Decoder& decoder, Type type) {
  Inst& inst = decoder.inst();
  const Comparison how = parse_comparison(decoder, type);
  inst.kind = type.is_integer() ? Class::kInteger : Class::kFloat32;
  inst.a = decoder.in(1, type);
  inst.b = decoder.in(2, type);
  if (decoder.operands() > 3) {
    const Join join = decoder.has("and")   ? Join::kAnd
                      : decoder.has("or")  ? Join::kOr
                      : decoder.has("xor") ? Join::kXor
                                           : Join::kNone;
    if (join == Join::kNone) decoder.malformed("a fourth operand needs .and, .or or .xor");
    inst.small[0] = static_cast<std::uint8_t>(join);
    inst.c = decoder.predicate_in(decoder.operand(3), &inst.small[1]);
  }
  // .ftz exists for f16 too, but subnormals of f16 are not flushed here.
  if (decoder.has("ftz") && type != kF32) decoder.unsupported();
  if (type.count == 2) {
    inst.small[4] = static_cast<std::uint8_t>(static_cast<int>(how.order) |
                                              (how.unordered ? kUnorderedBit : 0));
  }
  return how;
}

// The value that set writes if a comparison is true: 1.0 of the result's type, or all ones.
std::uint32_t truth_of(Type result) {
  if (result.kind == Type::kBrain) return 0x3f80;
  if (result.kind == Type::kFloat) return result.bits == 16 ? 0x3c00 : 0x3f800000;
  return 0xffffffff;
}

}  // namespace

void decode_setp(Decoder& decoder) {
  const Type type = decoder.type();
  Inst& inst = decoder.inst();
  const Comparison how = take_sources(decoder, type);
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
    return decoder.handler(type.kind == Type::kBrain ? setp_pair<Brain2> : setp_pair<Half2>);
  }
  use(decoder, pick_type<false>(type, decoder.has("ftz"), how));
}

void decode_set(Decoder& decoder) {
  const Type type = decoder.type();
  const Type result = decoder.type_from_end(1);
  Inst& inst = decoder.inst();
  const bool mask = result.is_integer() && result.bits == 32 && result.count == 1;
  const bool packed = type.count == 2 && (result == type || mask) && decoder.operands() == 3;
  const bool single = type.count == 1 && result.count == 1 &&
                      (result.bits == 32 || (result.bits == 16 && type.bits == 16));
  if (!packed && !single) decoder.unsupported();
  const Comparison how = take_sources(decoder, type);
  inst.small[3] = result.bits == 16;
  inst.imm = truth_of(result);
  inst.d = decoder.out(0, result);
  if (packed) {
    return decoder.handler(type.kind == Type::kBrain ? set_pair<Brain2> : set_pair<Half2>);
  }
  use(decoder, pick_type<true>(type, decoder.has("ftz"), how));
}

}  // namespace annulus::simulator
