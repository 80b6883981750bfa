// mma.sync of 8-bit integers, 8-bit floats and tf32 (PTX ISA 9.0, section 9.7.14.5). A register
// holds E elements: four of 8 bits, or one of tf32. A lane's registers hold these elements:
//
//   A: register r of lane 4 g + t    row g + 8 (r mod 2), k = E t + i + 4 E (r / 2)
//   B: register r of lane 4 g + t    k = E t + i + 4 E r, column g
//   C: register r of lane 4 g + t    row g + 8 (r / 2), column 2 t + r mod 2

#include <algorithm>
#include <bit>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/float8.h"
#include "simulator/ops/mma.h"
#include "simulator/ops/small_product.h"

namespace annulus::simulator {
namespace {

constexpr int kColumns = 8;
constexpr int kMaxRows = 16;
constexpr int kMaxK = 32;

struct Signed {
  static constexpr int kElements = 4;
  static std::int32_t value(std::uint32_t word, int i) {
    return static_cast<std::int8_t>(word >> (8 * i));
  }
};
struct Unsigned {
  static constexpr int kElements = 4;
  static std::int32_t value(std::uint32_t word, int i) {
    return static_cast<std::uint8_t>(word >> (8 * i));
  }
};
struct E4m3 {
  static constexpr int kElements = 4;
  static float value(std::uint32_t word, int i) {
    return base::e4m3_to_float(static_cast<std::uint8_t>(word >> (8 * i)));
  }
};
struct E5m2 {  // the upper half of an fp16
  static constexpr int kElements = 4;
  static float value(std::uint32_t word, int i) {
    return base::fp16_to_float(static_cast<std::uint16_t>((word >> (8 * i)) << 8));
  }
};
struct Tensor32 {  // the lower 13 bits are ignored
  static constexpr int kElements = 1;
  static float value(std::uint32_t word, int) { return std::bit_cast<float>(word & 0xffffe000u); }
};

// The Inst: aux the slots of d, a, b and c; small[0] the number of registers of A; small[1] the
// number of rows; small[2] whether integers are saturated. Sources are read before d is written, so
// they may be the same registers.
template <typename A, typename B>
void multiply_words(Warp& warp, const Inst& inst, Mask mask) {
  constexpr int kElements = A::kElements;
  using Sum = decltype(A::value(0, 0));
  require_mma_warp(mask);
  const int rows = inst.small[1];
  const int registers_a = inst.small[0];
  const int registers_b = registers_a < 2 ? 1 : registers_a / 2;
  const int sums = rows * kColumns / kLanes;
  const int depth = 4 * kElements * registers_b;
  const std::uint32_t* d = &warp.cta->program->slots[inst.aux];
  const std::uint32_t* a = d + sums;
  const std::uint32_t* b = a + registers_a;
  const std::uint32_t* c = b + registers_b;
  Sum elements_a[kMaxRows * kMaxK];
  Sum elements_b[kMaxK * kColumns];
  Sum sum[kMaxRows * kColumns];
  for (int lane = 0; lane < kLanes; ++lane) {
    const int g = lane / 4;
    const int t = lane % 4;
    for (int r = 0; r < registers_a; ++r) {
      Sum* to = elements_a + (g + 8 * (r % 2)) * depth + kElements * (t + 4 * (r / 2));
      const std::uint32_t word = warp.lanes<std::uint32_t>(a[r])[lane];
      for (int i = 0; i < kElements; ++i) to[i] = A::value(word, i);
    }
    for (int r = 0; r < registers_b; ++r) {
      Sum* to = elements_b + kElements * (t + 4 * r) * kColumns + g;
      const std::uint32_t word = warp.lanes<std::uint32_t>(b[r])[lane];
      for (int i = 0; i < kElements; ++i) to[i * kColumns] = B::value(word, i);
    }
    for (int r = 0; r < sums; ++r) {
      sum[(g + 8 * (r / 2)) * kColumns + 2 * t + r % 2] = warp.lanes<Sum>(c[r])[lane];
    }
  }
  warp.cta->counts.matrix_flop += std::uint64_t{2} * static_cast<std::uint64_t>(rows) * kColumns *
                                  static_cast<std::uint64_t>(depth);
  if constexpr (std::is_integral_v<Sum>) {
    // A sum of 32 products does not overflow, but with c added it may.
    std::int32_t products[kMaxRows * kColumns] = {};
    add_product<kColumns>(elements_a, elements_b, products, rows, depth);
    accumulate(products, sum, static_cast<std::size_t>(rows * kColumns), inst.small[2] != 0);
  } else {
    add_product<kColumns>(elements_a, elements_b, sum, rows, depth);
  }
  for (int r = 0; r < sums; ++r) {
    Sum* to = warp.lanes<Sum>(d[r]);
    for (int lane = 0; lane < kLanes; ++lane) {
      to[lane] = sum[(lane / 4 + 8 * (r / 2)) * kColumns + 2 * (lane % 4) + r % 2];
    }
  }
}

struct Form {
  const char* a;
  const char* b;
  const char* sum;
  Handler handler;
};
constexpr Form kForms[] = {{"s8", "s8", "s32", multiply_words<Signed, Signed>},
                           {"s8", "u8", "s32", multiply_words<Signed, Unsigned>},
                           {"u8", "s8", "s32", multiply_words<Unsigned, Signed>},
                           {"u8", "u8", "s32", multiply_words<Unsigned, Unsigned>},
                           {"e4m3", "e4m3", "f32", multiply_words<E4m3, E4m3>},
                           {"e4m3", "e5m2", "f32", multiply_words<E4m3, E5m2>},
                           {"e5m2", "e4m3", "f32", multiply_words<E5m2, E4m3>},
                           {"e5m2", "e5m2", "f32", multiply_words<E5m2, E5m2>},
                           {"tf32", "tf32", "f32", multiply_words<Tensor32, Tensor32>}};

struct Shape {
  const char* name;
  int rows;
  int registers_a;
  const char* elements;  // "integers", "floats" (of 8 bits), or "tf32"
};
constexpr Shape kShapes[] = {{"m8n8k16", 8, 1, "integers"},   {"m16n8k16", 16, 2, "integers"},
                             {"m16n8k32", 16, 4, "integers"}, {"m16n8k16", 16, 2, "floats"},
                             {"m16n8k32", 16, 4, "floats"},   {"m16n8k4", 16, 2, "tf32"},
                             {"m16n8k8", 16, 4, "tf32"}};

}  // namespace

bool decode_mma_of_words(Decoder& decoder) {
  // the types are .dtype.atype.btype.ctype
  const std::vector<std::string>& modifiers = decoder.source().modifiers;
  if (modifiers.size() < 4) return false;
  const auto* types = &modifiers[modifiers.size() - 4];
  const auto* form = std::ranges::find_if(kForms, [&](const Form& one) {
    return types[0] == one.sum && types[1] == one.a && types[2] == one.b && types[3] == one.sum;
  });
  if (form == std::end(kForms)) return false;
  const std::string_view elements = types[0] == "s32"    ? "integers"
                                    : types[1] == "tf32" ? "tf32"
                                                         : "floats";
  const auto* shape = std::ranges::find_if(
      kShapes, [&](const Shape& one) { return elements == one.elements && decoder.has(one.name); });
  const bool saturated = decoder.has("satfinite");
  if (shape == std::end(kShapes) || !decoder.has("row") || !decoder.has("col") ||
      (saturated && elements != "integers")) {
    return false;
  }
  const int registers_b = shape->registers_a < 2 ? 1 : shape->registers_a / 2;
  std::vector<std::uint32_t> slots;
  take_mma_fragment(decoder, 0, shape->rows / 4, slots);
  take_mma_fragment(decoder, 1, shape->registers_a, slots);
  take_mma_fragment(decoder, 2, registers_b, slots);
  take_mma_fragment(decoder, 3, shape->rows / 4, slots);
  Inst& inst = decoder.inst();
  inst.aux = decoder.list(slots);
  inst.small[0] = static_cast<std::uint8_t>(shape->registers_a);
  inst.small[1] = static_cast<std::uint8_t>(shape->rows);
  inst.small[2] = saturated ? 1 : 0;
  decoder.handler(form->handler);
  return true;
}

}  // namespace annulus::simulator
