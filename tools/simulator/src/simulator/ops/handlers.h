#ifndef ANNULUS_SIMULATOR_OPS_HANDLERS_H_
#define ANNULUS_SIMULATOR_OPS_HANDLERS_H_

// Handlers that apply a function to each lane, and functions by which the families read their
// operands.

#include <cstdint>

#include "simulator/decode/decoder.h"
#include "simulator/machine/cta.h"
#include "simulator/machine/numbers.h"
#include "simulator/ops/each_lane.h"

namespace annulus::simulator {

constexpr Type kU32{Type::kUnsigned, 32};
constexpr Type kF32{Type::kFloat, 32};
constexpr Type kF64{Type::kFloat, 64};

// d = f(a), f(a, b), f(a, b, c) for each lane. F is a stateless function object, S the source
// type, D the destination type.
template <typename D, typename S, typename F>
void unary(Warp& warp, const Inst& inst, Mask mask) {
  each_lane(
      mask, warp.lanes<D>(inst.d), [](S a) { return static_cast<D>(F{}(a)); },
      warp.lanes<S>(inst.a));
}
template <typename D, typename S, typename F>
void binary(Warp& warp, const Inst& inst, Mask mask) {
  each_lane(
      mask, warp.lanes<D>(inst.d), [](S a, S b) { return static_cast<D>(F{}(a, b)); },
      warp.lanes<S>(inst.a), warp.lanes<S>(inst.b));
}
template <typename D, typename S, typename F>
void ternary(Warp& warp, const Inst& inst, Mask mask) {
  each_lane(
      mask, warp.lanes<D>(inst.d), [](S a, S b, S c) { return static_cast<D>(F{}(a, b, c)); },
      warp.lanes<S>(inst.a), warp.lanes<S>(inst.b), warp.lanes<S>(inst.c));
}

// These read operands of the usual form: d, a, b, c, all of one type.
inline void take_unary(Decoder& decoder, Type type, Class kind) {
  Inst& inst = decoder.inst();
  inst.kind = kind;
  inst.a = decoder.in(1, type);
  inst.d = decoder.out(0, type);
}
inline void take_binary(Decoder& decoder, Type type, Class kind) {
  Inst& inst = decoder.inst();
  inst.kind = kind;
  inst.a = decoder.in(1, type);
  inst.b = decoder.in(2, type);
  inst.d = decoder.out(0, type);
}
inline void take_ternary(Decoder& decoder, Type type, Class kind) {
  Inst& inst = decoder.inst();
  inst.kind = kind;
  inst.a = decoder.in(1, type);
  inst.b = decoder.in(2, type);
  inst.c = decoder.in(3, type);
  inst.d = decoder.out(0, type);
}

// The handler for an integer type, from a template over that type; null for other types.
#define ANNULUS_INTEGER_HANDLER(type, shape, functor)                                   \
  ((type) == Type{Type::kUnsigned, 16}   ? shape<std::uint16_t, std::uint16_t, functor> \
   : (type) == Type{Type::kSigned, 16}   ? shape<std::int16_t, std::int16_t, functor>   \
   : (type) == Type{Type::kUnsigned, 32} ? shape<std::uint32_t, std::uint32_t, functor> \
   : (type) == Type{Type::kSigned, 32}   ? shape<std::int32_t, std::int32_t, functor>   \
   : (type) == Type{Type::kUnsigned, 64} ? shape<std::uint64_t, std::uint64_t, functor> \
   : (type) == Type{Type::kSigned, 64}   ? shape<std::int64_t, std::int64_t, functor>   \
                                         : static_cast<Handler>(nullptr))

#define ANNULUS_BITS_HANDLER(bits, shape, functor)               \
  ((bits) == 16   ? shape<std::uint16_t, std::uint16_t, functor> \
   : (bits) == 32 ? shape<std::uint32_t, std::uint32_t, functor> \
   : (bits) == 64 ? shape<std::uint64_t, std::uint64_t, functor> \
                  : static_cast<Handler>(nullptr))

// Installs the selected handler. Null means that there is no handler for this type.
inline void use(Decoder& decoder, Handler handler) {
  if (handler == nullptr) decoder.unsupported("this type is not modelled");
  decoder.handler(handler);
}

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_OPS_HANDLERS_H_
