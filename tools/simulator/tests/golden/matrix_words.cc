// mma.sync of 8-bit integers, 8-bit floats and tf32. The definitions build whole matrices from the
// fragments of the lanes, by the manual's figures, as in matrix.cc.
//
//   g = lane / 4, t = lane % 4
//   8 bits, k32  a0 (g, 4t)  a1 (g+8, 4t)  a2 (g, 4t+16)  a3 (g+8, 4t+16)  b0 (4t, g) b1 (4t+16, g)
//   8 bits, k16  a0 (g, 4t)  a1 (g+8, 4t), of m8 a0 alone                  b0 (4t, g)
//   tf32, k8     a0 (g, t)   a1 (g+8, t)   a2 (g, t+4)    a3 (g+8, t+4)    b0 (t, g)  b1 (t+4, g)
//   tf32, k4     a0 (g, t)   a1 (g+8, t)                                   b0 (t, g)
//   C, D         c0 (g, 2t)  c1 (g, 2t+1)  c2 (g+8, 2t)   c3 (g+8, 2t+1)
// A register of 8-bit elements holds four columns of A, or four rows of B, lowest byte first.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "golden/fragments.h"

namespace annulus::golden {
namespace {

enum class Element : u32 { kS8, kU8, kE4m3, kE5m2, kTf32 };
constexpr const char* kElementNames[] = {"s8", "u8", "e4m3", "e5m2", "tf32"};
constexpr bool integer(Element element) { return element <= Element::kU8; }

struct Form {
  int m, k;
  Element a, b;
  bool saturated = false;

  int bytes() const { return a == Element::kTf32 ? 4 : 1; }
  FragmentRegisters registers() const { return {m * k * bytes() / 128, k * bytes() / 16, m / 4}; }
  std::string name() const {
    const char* sum = integer(a) ? "s32" : "f32";
    return fmt::format("m{}n8k{}.row.col{}.{}.{}.{}.{}", m, k, saturated ? ".satfinite" : "", sum,
                       kElementNames[static_cast<u32>(a)], kElementNames[static_cast<u32>(b)], sum);
  }
};

// The value of an 8-bit float with this number of exponent bits. e4m3 has a NaN in place of
// infinities, and e5m2 has both (OCP 8-bit floating point specification 1.0).
double small_float(u32 bits, int exponent_bits) {
  const int fraction_bits = 7 - exponent_bits;
  const int exponent = static_cast<int>(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const int fraction = static_cast<int>(bits) & ((1 << fraction_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double sign = bits & 0x80 ? -1 : 1;
  if (exponent_bits == 4 && (bits & 0x7f) == 0x7f) return std::nan("");
  if (exponent_bits == 5 && exponent == 31) return fraction ? std::nan("") : sign * HUGE_VAL;
  const double scale = std::ldexp(1.0, (exponent ? exponent : 1) - bias - fraction_bits);
  return sign * scale * (fraction + (exponent ? 1 << fraction_bits : 0));
}

double element_value(Element element, u32 word, int i) {
  const u32 byte = word >> 8 * i & 0xff;
  switch (element) {
    case Element::kS8:
      return static_cast<std::int8_t>(byte);
    case Element::kU8:
      return byte;
    case Element::kE4m3:
      return small_float(byte, 4);
    case Element::kE5m2:
      return small_float(byte, 5);
    default:
      return static_cast<double>(std::bit_cast<float>(word & 0xffffe000u));
  }
}

template <int kM, int kK, Element kA, Element kB, bool kSaturated>
void define(const Golden&, Words in, Expected expected) {
  constexpr Form form{kM, kK, kA, kB, kSaturated};
  const FragmentRegisters registers = form.registers();
  const int elements = 4 / form.bytes();
  double a[16][32] = {};
  double b[32][8] = {};
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4;
    const int first = lane % 4 * elements;
    for (int i = 0; i < elements; ++i) {
      for (int r = 0; r < registers.a; ++r) {
        a[g + r % 2 * 8][first + i + r / 2 * elements * 4] =
            element_value(kA, record_word(in, lane, r), i);
      }
      for (int r = 0; r < registers.b; ++r) {
        b[first + i + r * elements * 4][g] = element_value(kB, record_word(in, lane, 4 + r), i);
      }
    }
  }
  for (int lane = 0; lane < 32; ++lane) {
    for (int r = 0; r < registers.c; ++r) {
      const int row = lane / 4 + r / 2 * 8;
      const int column = lane % 4 * 2 + r % 2;
      const u32 c = record_word(in, lane, 8 + r);
      double sum =
          integer(kA) ? static_cast<std::int32_t>(c) : static_cast<double>(std::bit_cast<float>(c));
      double size = std::fabs(sum);
      for (int k = 0; k < kK; ++k) {
        const double product = a[row][k] * b[k][column];
        sum += product;
        size += std::fabs(product);
      }
      Word& to = expected[static_cast<std::size_t>(lane * 4 + r)];
      if constexpr (integer(kA)) {
        if (kSaturated) sum = std::clamp(sum, -0x1p31, 0x1p31 - 1);
        to = to_word(static_cast<std::int32_t>(static_cast<std::int64_t>(sum)));
      } else {
        // An H200 computes products of e4m3 and e5m2 as f16. Other GPUs may keep 13 bits of the
        // fraction in a sum.
        const double share = kA == Element::kTf32 ? 0x1p-20 : 0x1p-11;
        to = to_word(Near<float>{sum, std::isfinite(size) ? size * share : 0.0});
      }
    }
  }
}

std::vector<u64> operands(const Form& form) {
  base::Random random(static_cast<u64>(form.k) * 16 + static_cast<u64>(form.a) * 4 +
                      static_cast<u64>(form.b));
  std::vector<u64> in(32 * kRecord / 2, 0);
  const auto draw = [&](Element element) -> u32 {
    if (element == Element::kTf32) return std::bit_cast<u32>(static_cast<float>(random.normal()));
    u32 word = 0;
    for (int i = 0; i < 4; ++i) {
      // Floats are drawn without infinities and NaN.
      const u32 below = integer(element) ? 256 : element == Element::kE4m3 ? 0x7f : 0x7c;
      const u32 sign = integer(element) ? 0 : static_cast<u32>(random.below(2)) << 7;
      word |= (static_cast<u32>(random.below(below)) | sign) << 8 * i;
    }
    return word;
  };
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i) set_record_word(in, lane, i, draw(form.a));
    for (int i = 4; i < 6; ++i) set_record_word(in, lane, i, draw(form.b));
    for (int i = 8; i < 12; ++i) {
      // Integers at the limits of their range, so that sums exceed it.
      const u32 c = integer(form.a)
                        ? (random.below(2) ? 0x7fffffffu : 0x80000000u) ^ random.below(1u << 16)
                        : std::bit_cast<u32>(static_cast<float>(random.normal()));
      set_record_word(in, lane, i, c);
    }
  }
  return in;
}

template <int kM, int kK, Element kA, Element kB, bool kSaturated = false>
void add(Set& set) {
  constexpr Form form{kM, kK, kA, kB, kSaturated};
  const bool floats = kA == Element::kE4m3 || kA == Element::kE5m2;
  Golden& golden = set.text("mma." + form.name(),
                            mma_program(!floats    ? "7.8"
                                        : kK == 16 ? "8.7"
                                                   : "8.4",
                                        floats ? "sm_89" : "sm_80", form.name(), form.registers()),
                            {1}, {32}, 32 * 2, define<kM, kK, kA, kB, kSaturated>);
  golden.hopper = floats;
  golden.in = operands(form);
  golden.word_bytes = 4;
}

}  // namespace

void add_matrix_words(Set& set) {
  using enum Element;
  add<8, 16, kS8, kS8>(set);
  add<8, 16, kU8, kS8, true>(set);
  add<16, 16, kS8, kS8>(set);
  add<16, 16, kS8, kU8, true>(set);
  add<16, 32, kS8, kS8>(set);
  add<16, 32, kS8, kS8, true>(set);
  add<16, 32, kU8, kS8>(set);
  add<16, 32, kS8, kU8>(set);
  add<16, 32, kU8, kU8>(set);
  add<16, 4, kTf32, kTf32>(set);
  add<16, 8, kTf32, kTf32>(set);
  add<16, 16, kE4m3, kE4m3>(set);
  add<16, 16, kE5m2, kE4m3>(set);
  add<16, 32, kE4m3, kE4m3>(set);
  add<16, 32, kE4m3, kE5m2>(set);
  add<16, 32, kE5m2, kE4m3>(set);
  add<16, 32, kE5m2, kE5m2>(set);
}

}  // namespace annulus::golden
