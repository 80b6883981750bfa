// Moves, packing, and addresses of the state spaces (PTX ISA 9.0, sections 9.7.9.1 to 9.7.9.4 and
// 9.7.9.20).

#include "simulator/ops/handlers.h"

namespace annulus::simulator {
namespace {

template <typename T>
void move(Warp& warp, const Inst& inst, Mask mask) {
  each_lane(
      mask, warp.lanes<T>(inst.d), [](T a) { return a; }, warp.lanes<T>(inst.a));
}

void move_predicate(Warp& warp, const Inst& inst, Mask mask) {
  const Mask a = warp.predicate(inst.a, inst.small[0]);
  warp.set_predicate(inst.d, a, mask);
}

// mov {a, b}, d splits a register into parts, and mov d, {a, b} joins parts, the lowest part first.
template <typename Whole, typename Part>
void unpack(Warp& warp, const Inst& inst, Mask mask) {
  const Whole* a = warp.lanes<Whole>(inst.a);
  constexpr std::size_t kParts = sizeof(Whole) / sizeof(Part);
  Whole copy[kLanes];
  std::copy_n(a, kLanes, copy);
  for (std::size_t i = 0; i < kParts; ++i) {
    each_lane(
        mask, warp.lanes<Part>(warp.cta->program->slots[inst.aux + i]),
        [i](Whole whole) { return static_cast<Part>(whole >> (8 * sizeof(Part) * i)); }, copy);
  }
}
template <typename Whole, typename Part>
void pack(Warp& warp, const Inst& inst, Mask mask) {
  constexpr std::size_t kParts = sizeof(Whole) / sizeof(Part);
  Whole result[kLanes] = {};
  for (std::size_t i = 0; i < kParts; ++i) {
    const Part* part = warp.lanes<Part>(warp.cta->program->slots[inst.aux + i]);
    for (int lane = 0; lane < kLanes; ++lane) {
      result[lane] |= static_cast<Whole>(static_cast<Whole>(part[lane]) << (8 * sizeof(Part) * i));
    }
  }
  each_lane(
      mask, warp.lanes<Whole>(inst.d), [](Whole a) { return a; }, result);
}

template <typename Whole>
Handler pick_parts(bool packing, std::size_t parts) {
  if constexpr (sizeof(Whole) == 8) {
    if (parts == 4) return packing ? pack<Whole, std::uint16_t> : unpack<Whole, std::uint16_t>;
    if (parts == 2) return packing ? pack<Whole, std::uint32_t> : unpack<Whole, std::uint32_t>;
  } else if constexpr (sizeof(Whole) == 4) {
    if (parts == 2) return packing ? pack<Whole, std::uint16_t> : unpack<Whole, std::uint16_t>;
  }
  return nullptr;
}

template <std::uint64_t (*kRead)(const Warp&)>
void read_counter32(Warp& warp, const Inst& inst, Mask mask) {
  const auto value = static_cast<std::uint32_t>(kRead(warp));
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((mask >> lane) & 1) warp.lanes<std::uint32_t>(inst.d)[lane] = value;
  }
}
template <std::uint64_t (*kRead)(const Warp&)>
void read_counter64(Warp& warp, const Inst& inst, Mask mask) {
  const std::uint64_t value = kRead(warp);
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((mask >> lane) & 1) warp.lanes<std::uint64_t>(inst.d)[lane] = value;
  }
}

// The simulator has no cycles. The clock counts the CTA's instructions, so it never decreases.
std::uint64_t clock_value(const Warp& warp) {
  const Cta& cta = *warp.cta;
  return cta.executed + cta.counts.by_class[static_cast<std::size_t>(Class::kOther)];
}
void clock32(Warp& warp, const Inst& inst, Mask mask) {
  ++warp.cta->executed;
  read_counter32<clock_value>(warp, inst, mask);
}
void clock64(Warp& warp, const Inst& inst, Mask mask) {
  ++warp.cta->executed;
  read_counter64<clock_value>(warp, inst, mask);
}

// --- Addresses ---
template <bool kToSpace>
void move_window(Warp& warp, const Inst& inst, Mask mask) {
  const auto window = static_cast<std::uint64_t>(inst.imm);
  each_lane(
      mask, warp.lanes<std::uint64_t>(inst.d),
      [window](std::uint64_t a) { return kToSpace ? a - window : a + window; },
      warp.lanes<std::uint64_t>(inst.a));
}

void is_space(Warp& warp, const Inst& inst, Mask mask) {
  const auto window = static_cast<std::uint64_t>(inst.imm);
  const auto* a = warp.lanes<std::uint64_t>(inst.a);
  Mask result = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    const bool inside = window == 0 ? a[lane] < kSharedWindow : a[lane] - window < kWindowBytes;
    result |= static_cast<Mask>(inside) << lane;
  }
  warp.set_predicate(inst.d, result, mask);
}

// The start of the address window of the space among the modifiers. It is 0 for global and const,
// whose generic addresses are the addresses themselves.
std::uint64_t window_of(Decoder& decoder) {
  if (decoder.has("shared") || decoder.has("shared::cta") || decoder.has("shared::cluster")) {
    return kSharedWindow;
  }
  if (decoder.has("local")) return kLocalWindow;
  if (decoder.has("param") || decoder.has("param::entry")) return kParamWindow;
  if (decoder.has("global") || decoder.has("const")) return 0;
  decoder.unsupported("this state space is not modelled");
}

}  // namespace

// mov has four forms: of predicates, of the parts of a register, of a special register, and of
// anything else, including addresses and immediates. Clocks change while a kernel runs and so have
// a handler. Other special registers are slots that were filled in before.
void decode_mov(Decoder& decoder) {
  const Type type = decoder.type();
  Inst& inst = decoder.inst();
  inst.kind = Class::kInteger;
  if (type.kind == Type::kPredicate) {
    inst.a = decoder.predicate_in(decoder.operand(1), &inst.small[0]);
    inst.d = decoder.predicate_out(decoder.operand(0));
    return decoder.handler(move_predicate);
  }
  const ptx::Operand& to = decoder.operand(0);
  const ptx::Operand& from = decoder.operand(1);
  const bool unpacking = to.kind == ptx::OperandKind::kVector;
  const bool packing = from.kind == ptx::OperandKind::kVector;
  if (packing || unpacking) {
    const std::vector<ptx::Operand>& parts = unpacking ? to.elements : from.elements;
    if (packing && unpacking) decoder.unsupported();
    if (parts.empty() || type.bits % static_cast<int>(parts.size()) != 0)
      decoder.malformed("parts");
    const Type part{Type::kBits, type.bits / static_cast<int>(parts.size())};
    std::vector<std::uint32_t> slots;
    if (unpacking) inst.a = decoder.in(from, type);
    for (const ptx::Operand& element : parts) {
      slots.push_back(unpacking ? decoder.out(element, part) : decoder.in(element, part));
    }
    inst.aux = decoder.list(slots);
    if (packing) inst.d = decoder.out(to, type);
    if (type.bits == 16) decoder.unsupported("registers of 8 bits are not modelled");
    return use(decoder, type.bits == 64 ? pick_parts<std::uint64_t>(packing, parts.size())
                                        : pick_parts<std::uint32_t>(packing, parts.size()));
  }
  if (from.kind == ptx::OperandKind::kSpecial) {
    if (from.text == "%clock" || from.text == "%clock_hi" || from.text == "%clock64" ||
        from.text == "%globaltimer" || from.text == "%globaltimer_lo") {
      inst.d = decoder.out(0, type);
      decoder.program().reads_clock = true;
      return decoder.handler(type.bits == 64 ? clock64 : clock32);
    }
    if (type.bits != 32) {  // e.g. mov.u16 of %tid.x
      decoder.unsupported("special registers are read as 32 bits");
    }
  }
  inst.a = decoder.in(1, type);
  inst.d = decoder.out(0, type);
  use(decoder, type.bits * type.count == 16   ? move<std::uint16_t>
               : type.bits * type.count == 32 ? move<std::uint32_t>
                                              : move<std::uint64_t>);
}

void decode_cvta(Decoder& decoder) {
  Inst& inst = decoder.inst();
  inst.kind = Class::kInteger;
  const Type type = decoder.type();
  if (type.bits != 64) decoder.unsupported("only 64-bit addresses are modelled");
  inst.imm = static_cast<std::int64_t>(window_of(decoder));
  inst.a = decoder.in(1, type);
  inst.d = decoder.out(0, type);
  decoder.handler(decoder.has("to") ? move_window<true> : move_window<false>);
}

void decode_isspacep(Decoder& decoder) {
  Inst& inst = decoder.inst();
  inst.kind = Class::kInteger;
  inst.imm = static_cast<std::int64_t>(window_of(decoder));
  inst.a = decoder.in(1, Type{Type::kUnsigned, 64});
  inst.d = decoder.predicate_out(decoder.operand(0));
  decoder.handler(is_space);
}

}  // namespace annulus::simulator
