// Logic (PTX ISA 9.0, section 9.7.8).

#include "simulator/ops/handlers.h"

namespace annulus::simulator {
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

// Predicates are lane masks, so logic on them is logic on a single word.
template <typename F>
void predicate_binary(Warp& warp, const Inst& inst, Mask mask) {
  const Mask a = warp.predicate(inst.a, inst.small[0]);
  const Mask b = warp.predicate(inst.b, inst.small[1]);
  warp.set_predicate(inst.d, F{}(a, b), mask);
}
void predicate_not(Warp& warp, const Inst& inst, Mask mask) {
  const Mask a = warp.predicate(inst.a, inst.small[0]);
  warp.set_predicate(inst.d, ~a, mask);
}

template <typename F>
void decode_logic(Decoder& decoder) {
  const Type type = decoder.type();
  Inst& inst = decoder.inst();
  if (type.kind == Type::kPredicate) {
    inst.kind = Class::kInteger;
    inst.a = decoder.predicate_in(decoder.operand(1), &inst.small[0]);
    inst.b = decoder.predicate_in(decoder.operand(2), &inst.small[1]);
    inst.d = decoder.predicate_out(decoder.operand(0));
    return decoder.handler(predicate_binary<F>);
  }
  take_binary(decoder, type, Class::kInteger);
  use(decoder, ANNULUS_BITS_HANDLER(type.bits, binary, F));
}

template <typename T>
void lop3(Warp& warp, const Inst& inst, Mask mask) {
  const std::uint32_t table = inst.small[0];
  each_lane(
      mask, warp.lanes<T>(inst.d),
      [table](T a, T b, T c) {
        T result = 0;
        for (std::uint32_t i = 0; i < 8; ++i) {
          if (((table >> i) & 1) == 0) continue;
          result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
        }
        return result;
      },
      warp.lanes<T>(inst.a), warp.lanes<T>(inst.b), warp.lanes<T>(inst.c));
}

}  // namespace

void decode_and(Decoder& decoder) { decode_logic<And>(decoder); }
void decode_or(Decoder& decoder) { decode_logic<Or>(decoder); }
void decode_xor(Decoder& decoder) { decode_logic<Xor>(decoder); }

void decode_not(Decoder& decoder) {
  const Type type = decoder.type();
  Inst& inst = decoder.inst();
  if (type.kind == Type::kPredicate) {
    inst.kind = Class::kInteger;
    inst.a = decoder.predicate_in(decoder.operand(1), &inst.small[0]);
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

}  // namespace annulus::simulator
