// Selection, and tests of one operand (PTX ISA 9.0, sections 9.7.6 and 9.7.3).

#include "simulator/ops/handlers.h"

namespace annulus::simulator {
namespace {

template <typename T>
void selp(Warp& warp, const Inst& inst, Mask mask) {
  const Mask chosen = warp.predicate(inst.c, inst.small[0]);
  const T* a = warp.lanes<T>(inst.a);
  const T* b = warp.lanes<T>(inst.b);
  T* d = warp.lanes<T>(inst.d);
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
void slct(Warp& warp, const Inst& inst, Mask mask) {
  each_lane(
      mask, warp.lanes<T>(inst.d), [](T a, T b, C c) { return c >= 0 ? a : b; },
      warp.lanes<T>(inst.a), warp.lanes<T>(inst.b), warp.lanes<C>(inst.c));
}

enum class Test : std::uint8_t { kFinite, kInfinite, kNumber, kNan, kNormal, kSubnormal };

template <typename T>
void testp(Warp& warp, const Inst& inst, Mask mask) {
  const T* a = warp.lanes<T>(inst.a);
  Mask result = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    bool yes = false;
    switch (static_cast<Test>(inst.small[0])) {
      case Test::kFinite:
        yes = std::isfinite(a[lane]);
        break;
      case Test::kInfinite:
        yes = std::isinf(a[lane]);
        break;
      case Test::kNumber:
        yes = !std::isnan(a[lane]);
        break;
      case Test::kNan:
        yes = std::isnan(a[lane]);
        break;
      case Test::kNormal:
        yes = std::isnormal(a[lane]) || a[lane] == 0;  // zero counts as a normal number here
        break;
      case Test::kSubnormal:
        yes = std::fpclassify(a[lane]) == FP_SUBNORMAL;
        break;
    }
    result |= static_cast<Mask>(yes) << lane;
  }
  warp.set_predicate(inst.d, result, mask);
}

}  // namespace

void decode_selp(Decoder& decoder) {
  const Type type = decoder.type();
  Inst& inst = decoder.inst();
  inst.kind = Class::kInteger;
  inst.a = decoder.in(1, type);
  inst.b = decoder.in(2, type);
  inst.c = decoder.predicate_in(decoder.operand(3), &inst.small[0]);
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
  const Test test = decoder.has("finite")       ? Test::kFinite
                    : decoder.has("infinite")   ? Test::kInfinite
                    : decoder.has("number")     ? Test::kNumber
                    : decoder.has("notanumber") ? Test::kNan
                    : decoder.has("normal")     ? Test::kNormal
                                                : Test::kSubnormal;
  inst.small[0] = static_cast<std::uint8_t>(test);
  use(decoder, type.bits == 64 ? testp<double> : testp<float>);
}

}  // namespace annulus::simulator
