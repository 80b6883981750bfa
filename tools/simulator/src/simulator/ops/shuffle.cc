// Exchange between the lanes of a warp (PTX ISA 9.0, sections 9.7.9.6 and 9.7.13.7 to 9.7.13.10).

#include "simulator/ops/handlers.h"

namespace annulus::simulator {
namespace {

enum class Shuffle : std::uint8_t { kUp, kDown, kBfly, kIdx };

// shfl: d[|p] = a of another lane. b is the lane or the distance. c holds the clamp in its low bits
// and the segment mask above them. `highest` is maxLane of the manual: the highest lane that may be
// read, or, for .up, whose clamp is 0, the lowest. A lane that would read beyond it gets its own
// value and a false p.
template <Shuffle kMode>
void shuffle(Warp& warp, const Inst& inst, Mask mask) {
  const auto* a = warp.lanes<std::uint32_t>(inst.a);
  const auto* b = warp.lanes<std::uint32_t>(inst.b);
  const auto* c = warp.lanes<std::uint32_t>(inst.c);
  std::uint32_t result[kLanes];
  Mask inside = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    const std::uint32_t self = static_cast<std::uint32_t>(lane);
    const std::uint32_t by = b[lane] & 31u;
    const std::uint32_t clamp = c[lane] & 31u;
    const std::uint32_t segment = (c[lane] >> 8) & 31u;
    const std::uint32_t highest = (self & segment) | (clamp & ~segment);
    const std::uint32_t lowest = self & segment;
    std::uint32_t source = self;
    bool valid = false;
    switch (kMode) {
      case Shuffle::kUp:
        source = self - by;
        // The comparison is signed, because lane - by may be below zero.
        valid = static_cast<std::int32_t>(source) >= static_cast<std::int32_t>(highest);
        break;
      case Shuffle::kDown:
        source = self + by;
        valid = source <= highest;
        break;
      case Shuffle::kBfly:
        source = self ^ by;
        valid = source <= highest;
        break;
      case Shuffle::kIdx:
        source = lowest | (by & ~segment);
        valid = source <= highest;
        break;
    }
    if (!valid) source = self;
    inside |= static_cast<Mask>(valid) << lane;
    result[lane] = a[source & 31u];
    const bool reads_absent = ((mask >> lane) & 1) != 0 && ((mask >> (source & 31u)) & 1) == 0;
    if (reads_absent && warp.cta->checked) {
      raise_at(FaultKind::kInvalidOperand, lane,
               "the shuffle reads lane {}, which does not take part", source & 31u);
    }
  }
  auto* d = warp.lanes<std::uint32_t>(inst.d);
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((mask >> lane) & 1) d[lane] = result[lane];
  }
  if (inst.small[0]) {
    warp.set_predicate(inst.aux, inside, mask);
  }
}

// The lanes that take part together with `lane`: the lanes that its member mask names and that have
// not exited. Lanes of one instruction may name different masks, which form separate groups.
Mask peers(const Warp& warp, const Inst& inst, int lane) {
  return warp.lanes<std::uint32_t>(inst.members)[lane] & warp.live;
}

enum class Vote : std::uint8_t { kAll, kAny, kUni, kBallot };

template <Vote kMode>
void vote(Warp& warp, const Inst& inst, Mask mask) {
  const Mask values = warp.predicate(inst.a, inst.small[0]);
  Mask result = 0;
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    const Mask members = peers(warp, inst, lane);
    const Mask yes = values & members;
    if constexpr (kMode == Vote::kBallot) {
      warp.lanes<std::uint32_t>(inst.d)[lane] = yes;
    } else {
      const bool answer = kMode == Vote::kAll   ? yes == members
                          : kMode == Vote::kAny ? yes != 0
                                                : yes == members || yes == 0;
      result |= static_cast<Mask>(answer) << lane;
    }
  }
  if constexpr (kMode != Vote::kBallot) {
    warp.set_predicate(inst.d, result, mask);
  }
}

template <typename T, bool kAll>
void match(Warp& warp, const Inst& inst, Mask mask) {
  const T* a = warp.lanes<T>(inst.a);
  std::uint32_t result[kLanes] = {};
  Mask same = 0;
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    const Mask members = peers(warp, inst, lane);
    Mask equal = 0;
    for (Mask others = members; others != 0; others &= others - 1) {
      const int other = lowest_lane(others);
      if (a[other] == a[lane]) equal |= 1u << other;
    }
    result[lane] = kAll ? (equal == members ? members : 0) : equal;
    same |= static_cast<Mask>(equal == members) << lane;
  }
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    warp.lanes<std::uint32_t>(inst.d)[lane] = result[lane];
  }
  if (kAll && inst.small[0]) {
    warp.set_predicate(inst.aux, same, mask);
  }
}

enum class Reduce : std::uint8_t { kAdd, kMin, kMax, kAnd, kOr, kXor };

template <typename T>
void redux(Warp& warp, const Inst& inst, Mask mask) {
  const T* a = warp.lanes<T>(inst.a);
  T result[kLanes] = {};
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    T total = a[lane];
    for (Mask others = peers(warp, inst, lane) & ~(1u << lane); others != 0; others &= others - 1) {
      const T value = a[lowest_lane(others)];
      switch (static_cast<Reduce>(inst.small[0])) {
        case Reduce::kAdd:
          total =
              static_cast<T>(static_cast<std::uint32_t>(total) + static_cast<std::uint32_t>(value));
          break;
        case Reduce::kMin:
          total = std::min(total, value);
          break;
        case Reduce::kMax:
          total = std::max(total, value);
          break;
        case Reduce::kAnd:
          total = static_cast<T>(total & value);
          break;
        case Reduce::kOr:
          total = static_cast<T>(total | value);
          break;
        case Reduce::kXor:
          total = static_cast<T>(total ^ value);
          break;
      }
    }
    result[lane] = total;
  }
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    warp.lanes<T>(inst.d)[lane] = result[lane];
  }
}

void active_mask(Warp& warp, const Inst& inst, Mask mask) {
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    warp.lanes<std::uint32_t>(inst.d)[lowest_lane(rest)] = mask;
  }
}

void take_members(Decoder& decoder, std::size_t index) {
  if (!decoder.has("sync")) decoder.unsupported("only the .sync form is modelled");
  decoder.inst().convergence = Convergence::kMembers;
  decoder.inst().members = decoder.in(index, kU32);
}

}  // namespace

void decode_shfl(Decoder& decoder) {
  Inst& inst = decoder.inst();
  inst.kind = Class::kShuffle;
  take_members(decoder, 4);
  const Type bits{Type::kBits, 32};
  inst.a = decoder.in(1, bits);
  inst.b = decoder.in(2, kU32);
  inst.c = decoder.in(3, kU32);
  const ptx::Operand& destination = decoder.operand(0);
  if (destination.kind == ptx::OperandKind::kPair) {
    inst.d = decoder.out(destination.elements[0], bits);
    inst.aux = decoder.predicate_out(destination.elements[1]);
    inst.small[0] = 1;
  } else {
    inst.d = decoder.out(destination, bits);
  }
  decoder.handler(decoder.has("up")     ? shuffle<Shuffle::kUp>
                  : decoder.has("down") ? shuffle<Shuffle::kDown>
                  : decoder.has("bfly") ? shuffle<Shuffle::kBfly>
                                        : shuffle<Shuffle::kIdx>);
}

void decode_vote(Decoder& decoder) {
  Inst& inst = decoder.inst();
  inst.kind = Class::kShuffle;
  take_members(decoder, 2);
  inst.a = decoder.predicate_in(decoder.operand(1), &inst.small[0]);
  if (decoder.has("ballot")) {
    inst.d = decoder.out(0, Type{Type::kBits, 32});
    return decoder.handler(vote<Vote::kBallot>);
  }
  inst.d = decoder.predicate_out(decoder.operand(0));
  decoder.handler(decoder.has("all")   ? vote<Vote::kAll>
                  : decoder.has("any") ? vote<Vote::kAny>
                                       : vote<Vote::kUni>);
}

void decode_match(Decoder& decoder) {
  Inst& inst = decoder.inst();
  inst.kind = Class::kShuffle;
  take_members(decoder, 2);
  const Type type = decoder.type();
  inst.a = decoder.in(1, type);
  const ptx::Operand& destination = decoder.operand(0);
  if (destination.kind == ptx::OperandKind::kPair) {
    inst.d = decoder.out(destination.elements[0], Type{Type::kBits, 32});
    inst.aux = decoder.predicate_out(destination.elements[1]);
    inst.small[0] = 1;
  } else {
    inst.d = decoder.out(destination, Type{Type::kBits, 32});
  }
  const bool all = decoder.has("all");
  decoder.handler(type.bits == 64
                      ? (all ? match<std::uint64_t, true> : match<std::uint64_t, false>)
                      : (all ? match<std::uint32_t, true> : match<std::uint32_t, false>));
}

void decode_redux(Decoder& decoder) {
  Inst& inst = decoder.inst();
  inst.kind = Class::kShuffle;
  take_members(decoder, 2);
  const Type type = decoder.type();
  if (!type.is_integer()) decoder.unsupported();
  inst.a = decoder.in(1, type);
  inst.d = decoder.out(0, type);
  const std::pair<const char*, Reduce> names[] = {{"add", Reduce::kAdd}, {"min", Reduce::kMin},
                                                  {"max", Reduce::kMax}, {"and", Reduce::kAnd},
                                                  {"or", Reduce::kOr},   {"xor", Reduce::kXor}};
  for (const auto& [name, operation] : names) {
    if (decoder.has(name)) inst.small[0] = static_cast<std::uint8_t>(operation);
  }
  decoder.handler(type.kind == Type::kSigned ? redux<std::int32_t> : redux<std::uint32_t>);
}

void decode_activemask(Decoder& decoder) {
  Inst& inst = decoder.inst();
  inst.kind = Class::kShuffle;
  inst.d = decoder.out(0, Type{Type::kBits, 32});
  decoder.handler(active_mask);
}

}  // namespace annulus::simulator
