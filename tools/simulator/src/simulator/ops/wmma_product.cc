// wmma.mma.

#include <bit>
#include <cstring>
#include <string>
#include <type_traits>

#include "simulator/ops/small_product.h"
#include "simulator/ops/wmma.h"

namespace annulus::simulator {
namespace {

struct Tensor32 {};  // tf32

// Reads `count` elements of a fragment, widened to the type in which they are multiplied.
template <typename T, typename To>
void read_fragment(const Warp& warp, const std::uint32_t* slots, std::size_t count, To* to) {
  constexpr std::size_t kRun = std::is_same_v<T, double> ? 256 : 128;
  using Element = std::conditional_t<std::is_same_v<T, Tensor32>, std::uint32_t, T>;
  constexpr std::size_t kPerRun = kRun / sizeof(Element);
  for (std::size_t first = 0; first < count; first += kPerRun) {
    Element elements[kPerRun];
    std::memcpy(elements, warp.registers + *slots++, kRun);
    for (std::size_t i = 0; i < kPerRun; ++i) {
      if constexpr (std::is_same_v<T, Tensor32>) {
        to[first + i] = std::bit_cast<float>(elements[i] & 0xffffe000u);
      } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Brain>) {
        to[first + i] = widen(elements[i]);
      } else {
        to[first + i] = static_cast<To>(elements[i]);
      }
    }
  }
}

// Writes elements in the layout that read_fragment reads.
template <typename T>
void write_fragment(const Warp& warp, const std::uint32_t* slots, std::size_t count,
                    const T* from) {
  constexpr std::size_t kRun = std::is_same_v<T, double> ? 256 : 128;
  for (std::size_t done = 0; done < count * sizeof(T); done += kRun) {
    std::memcpy(warp.registers + *slots++, reinterpret_cast<const std::byte*>(from) + done, kRun);
  }
}

// sum += a b, in ascending order of k.
template <typename T>
void add_fragment_product(const T* a, const T* b, T* sum, int m, int n, int k) {
  switch (n) {
    case 8:
      return add_product<8>(a, b, sum, m, k);
    case 16:
      return add_product<16>(a, b, sum, m, k);
    default:
      return add_product<32>(a, b, sum, m, k);
  }
}

// The number of registers of a fragment of A or B.
template <typename T>
constexpr std::size_t registers_of(std::size_t elements) {
  if (std::is_same_v<T, Half>) return 8;
  if (std::is_same_v<T, double>) return elements / kLanes;
  return elements * (std::is_same_v<T, Tensor32> ? 4 : sizeof(T)) / 128;
}

// The Inst of a product: aux the slots of d, a, b and c; small[0] to [2] m, n and k; small[3]
// flags.
enum MmaFlag : std::uint8_t { kNarrowD = 1, kNarrowC = 2, kSaturated = 4 };

// Sources are read before d is written, so they may be the same registers.
template <typename T>
void multiply_fragments(Warp& warp, const Inst& inst, Mask mask) {
  constexpr bool kInteger = std::is_integral_v<T>;
  constexpr bool kDouble = std::is_same_v<T, double>;
  using Sum = std::conditional_t<kInteger, std::int32_t, std::conditional_t<kDouble, T, float>>;
  require_wmma_warp(mask);
  const int m = inst.small[0];
  const int n = inst.small[1];
  const int k = inst.small[2];
  const auto count = static_cast<std::size_t>(m * n);
  const auto count_a = static_cast<std::size_t>(m * k);
  const auto count_b = static_cast<std::size_t>(k * n);
  const std::uint32_t* d = &warp.cta->program->slots[inst.aux];
  const std::uint32_t* a = d + ((inst.small[3] & kNarrowD) ? count / 64 : count / 32);
  const std::uint32_t* b = a + registers_of<T>(count_a);
  const std::uint32_t* c = b + registers_of<T>(count_b);
  Sum elements_a[512];
  Sum elements_b[512];
  Sum sum[256];
  read_fragment<T>(warp, a, count_a, elements_a);
  read_fragment<T>(warp, b, count_b, elements_b);
  if (inst.small[3] & kNarrowC) {
    read_fragment<Half>(warp, c, count, sum);
  } else {
    read_fragment<Sum>(warp, c, count, sum);
  }
  warp.cta->counts.matrix_flop += std::uint64_t{2} * count * static_cast<std::uint64_t>(k);
  if constexpr (kInteger) {
    // A sum of 16 products does not overflow, but with c added it may.
    std::int32_t products[256] = {};
    add_fragment_product(elements_a, elements_b, products, m, n, k);
    accumulate(products, sum, count, (inst.small[3] & kSaturated) != 0);
  } else {
    add_fragment_product(elements_a, elements_b, sum, m, n, k);
  }
  if constexpr (std::is_same_v<T, Half>) {
    if (inst.small[3] & kNarrowD) {
      Half narrowed[256];
      for (std::size_t i = 0; i < count; ++i) narrowed[i] = narrow<Half>(sum[i]);
      return write_fragment(warp, d, count, narrowed);
    }
  }
  write_fragment(warp, d, count, sum);
}

}  // namespace

// The types come last. If A and B are of f16, they are the types of d and c, else the types of d,
// a, b and c.
void decode_wmma_product(Decoder& decoder) {
  Inst& inst = decoder.inst();
  inst.kind = Class::kMatrix;
  const WmmaShape& shape = wmma_shape(decoder);
  std::vector<std::string_view> types;
  bool past_shape = false;
  bool saturated = false;
  for (const std::string& modifier : decoder.source().modifiers) {
    if (modifier == "satfinite") {
      saturated = true;
    } else if (past_shape && modifier != "rn") {
      types.emplace_back(modifier);
    }
    past_shape = past_shape || modifier == shape.name;
  }
  if (types.size() == 2) types = {types[0], "f16", "f16", types[1]};
  if (types.size() != 4) decoder.unsupported("these types are not modelled");
  const std::string_view d = types[0];
  const std::string_view a = types[1];
  const std::string_view c = types[3];
  const bool integers = a == "s8" || a == "u8";
  const bool halves = a == "f16";
  const std::string_view sum = integers ? "s32" : a == "f64" ? "f64" : "f32";
  const auto sums = [&](std::string_view type) { return type == sum || (halves && type == "f16"); };
  if (a != types[2] || !wmma_multiplicand_has(a, shape) || !sums(d) || !sums(c) ||
      (saturated && !integers)) {
    decoder.unsupported("these types are not modelled");
  }
  std::vector<std::uint32_t> slots;
  const auto take = [&](std::size_t index, std::string_view type, int elements) {
    const bool multiplicand = index == 1 || index == 2;
    take_wmma_fragment(decoder, decoder.operand(index), type,
                       wmma_registers(type, elements, multiplicand), index == 0, slots);
  };
  take(0, d, shape.m * shape.n);
  take(1, a, shape.m * shape.k);
  take(2, a, shape.k * shape.n);
  take(3, c, shape.m * shape.n);
  inst.aux = decoder.list(slots);
  inst.small[0] = static_cast<std::uint8_t>(shape.m);
  inst.small[1] = static_cast<std::uint8_t>(shape.n);
  inst.small[2] = static_cast<std::uint8_t>(shape.k);
  inst.small[3] = static_cast<std::uint8_t>(
      (d == "f16" ? kNarrowD : 0) | (c == "f16" ? kNarrowC : 0) | (saturated ? kSaturated : 0));
  decoder.handler(a == "f16"    ? multiply_fragments<Half>
                  : a == "bf16" ? multiply_fragments<Brain>
                  : a == "tf32" ? multiply_fragments<Tensor32>
                  : a == "f64"  ? multiply_fragments<double>
                  : a == "s8"   ? multiply_fragments<std::int8_t>
                                : multiply_fragments<std::uint8_t>);
}

}  // namespace annulus::simulator
