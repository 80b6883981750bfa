// mma.sync and ldmatrix. The definitions build whole matrices from the fragments of the lanes, by
// the manual's figures. They multiply the matrices in double precision, and distribute the result
// to the lanes.
//
//   g = lane / 4, p = 2 (lane % 4)          rows of A and C: g and g + 8; columns p, p + 1 (, + 8)
//   m16n8k16   a0 (g, p)  a1 (g+8, p)  a2 (g, p+8)  a3 (g+8, p+8)    b0 (p, g)  b1 (p+8, g)
//   m16n8k8    a0 (g, p)  a1 (g+8, p)                                b0 (p, g)
//   C, D       f32: c0 (g, p)  c1 (g, p+1)  c2 (g+8, p)  c3 (g+8, p+1)
//              f16: c0 = {(g, p), (g, p+1)}  c1 = {(g+8, p), (g+8, p+1)}
//   each 32-bit register of A holds columns (p, p+1), of B rows (p, p+1); low half first

#include <fmt/core.h>

#include <array>
#include <cmath>

#include "base/random.h"
#include "golden/fragments.h"

namespace annulus::golden {
namespace {

struct Shape {
  int k;        // 16 or 8
  bool bfloat;  // operands
  bool half;    // accumulators
  const Format& format() const { return bfloat ? kBfloatFormat : kHalfFormat; }
  int a() const { return k / 4; }  // registers of a lane
  int b() const { return k / 8; }
  int c() const { return half ? 2 : 4; }
};
std::string mma_text(const Shape& shape) {
  const char* operand = shape.bfloat ? "bf16" : "f16";
  const char* sum = shape.half ? "f16" : "f32";
  return mma_program(
      "7.8", "sm_80",
      fmt::format("m16n8k{}.row.col.{}.{}.{}.{}", shape.k, sum, operand, operand, sum),
      {shape.a(), shape.b(), shape.c()});
}

struct Matrices {
  double a[16][16] = {};
  double b[16][8] = {};
  double c[16][8] = {};
};

Matrices gather(const Shape& shape, Words in) {
  Matrices m;
  const auto half = [&](const Format& format, u32 pair, int which) {
    return decode16(format, static_cast<u16>(pair >> 16 * which));
  };
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4;
    const int p = lane % 4 * 2;
    for (int i = 0; i < 2; ++i) {
      for (int r = 0; r < shape.a(); ++r) {
        m.a[g + r % 2 * 8][p + i + r / 2 * 8] = half(shape.format(), record_word(in, lane, r), i);
      }
      for (int r = 0; r < shape.b(); ++r) {
        m.b[p + i + r * 8][g] = half(shape.format(), record_word(in, lane, 4 + r), i);
      }
      for (int r = 0; r < 2; ++r) {
        m.c[g + r * 8][p + i] =
            shape.half
                ? half(kHalfFormat, record_word(in, lane, 8 + r), i)
                : static_cast<double>(std::bit_cast<float>(record_word(in, lane, 8 + r * 2 + i)));
      }
    }
  }
  return m;
}

// One element of D, and the error that a tensor core may make. A tensor core adds k products and c
// in one step. They are aligned to the largest of them, and cut off a few bits below the last bit
// of fp32.
Near<float> element(const Shape& shape, const Matrices& m, int row, int column) {
  double sum = m.c[row][column];
  double size = std::fabs(sum);
  for (int k = 0; k < shape.k; ++k) {
    const double product = m.a[row][k] * m.b[k][column];
    sum += product;
    size += std::fabs(product);
  }
  return {sum, std::isfinite(size) ? size * 0x1p-20 : 0.0};
}

template <int kK, bool kBfloat, bool kHalf, bool kExact>
void define_mma(const Golden&, Words in, Expected expected) {
  const Shape shape{kK, kBfloat, kHalf};
  const Matrices m = gather(shape, in);
  for (int lane = 0; lane < 32; ++lane) {
    const Expected to = expected.subspan(static_cast<std::size_t>(lane) * 4, 4);
    const auto value = [&](int r, int i) {
      return element(shape, m, lane / 4 + r * 8, lane % 4 * 2 + i);
    };
    for (int r = 0; r < 2; ++r) {
      if constexpr (kHalf) {
        to[static_cast<std::size_t>(r)] =
            to_word(F16x2{to_f16(value(r, 0).value), to_f16(value(r, 1).value)});
      } else {
        for (int i = 0; i < 2; ++i) {
          const Near<float> d = value(r, i);
          to[static_cast<std::size_t>(r * 2 + i)] =
              kExact ? to_word(static_cast<float>(d.value)) : to_word(d);
        }
      }
    }
  }
}

// Operands that are small integers, whose products and sums are exact in every format, or normally
// distributed numbers.
std::vector<u64> operands(const Shape& shape, bool exact, bool special, u64 seed) {
  base::Random random(seed);
  std::vector<u64> in(32 * kRecord / 2, 0);
  const auto draw = [&] {
    return exact ? static_cast<double>(static_cast<int>(random.below(9)) - 4)
                 : static_cast<double>(random.normal());
  };
  const auto pack = [&](const Format& format) {
    const u32 low = encode16(format, round_to(format, draw()));
    const u32 high = encode16(format, round_to(format, draw()));
    return low | high << 16;
  };
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i) set_record_word(in, lane, i, pack(shape.format()));
    for (int i = 4; i < 6; ++i) set_record_word(in, lane, i, pack(shape.format()));
    for (int i = 8; i < 12; ++i) {
      set_record_word(
          in, lane, i,
          shape.half ? pack(kHalfFormat) : std::bit_cast<u32>(static_cast<float>(draw())));
    }
  }
  if (special) {  // an infinity in row 0 of A, a NaN in column 1 of B, an infinite accumulator
    set_record_word(in, 0, 0, encode16(shape.format(), HUGE_VAL));
    set_record_word(in, 5, 4, encode16(shape.format(), std::nan("")));
    set_record_word(in, 31, 11, std::bit_cast<u32>(-HUGE_VALF));
  }
  return in;
}

template <int kK, bool kBfloat, bool kHalf>
void add_mma(Set& set) {
  const Shape shape{kK, kBfloat, kHalf};
  const char* operand = kBfloat ? "bf16" : "f16";
  const std::string name = fmt::format("mma.m16n8k{}.{}.{}", kK, operand, kHalf ? "f16" : "f32");
  const auto add = [&](const char* what, bool exact, bool special, auto define) {
    Golden& golden =
        set.text(fmt::format("{} {}", name, what), mma_text(shape), {1}, {32}, 32 * 2, define);
    golden.in = operands(shape, exact, special, static_cast<u64>(kK) + (kBfloat ? 100 : 0));
    golden.word_bytes = 4;
  };
  add("of integers", true, false, define_mma<kK, kBfloat, kHalf, true>);
  if (!kHalf) {
    add("of normal numbers", false, false, define_mma<kK, kBfloat, kHalf, false>);
    add("with infinities and NaN", true, true, define_mma<kK, kBfloat, kHalf, true>);
  }
}

// Lane l copies row l of 16 bytes to shared memory. Then lane l has the address of row (5 l + 3)
// mod 32, so a matrix consists of scattered rows.
std::string ldmatrix_text(int count, bool transposed) {
  std::string registers;
  std::string stores;
  for (int i = 0; i < count; ++i) {
    registers += fmt::format("{}r{}", i ? ", " : "", i);
    stores += fmt::format("  st.global.b32 [dst+{}], r{};\n", i * 4, i);
  }
  return fmt::format(
      ".version 7.8\n.target sm_80\n.address_size 64\n\n"
      ".visible .entry golden(.param .u64 in, .param .u64 out)\n{{\n"
      "  .shared .align 16 .b8 rows[512];\n"
      "  .reg .b64 src, dst;\n  .reg .b32 t, base, a, r<4>;\n"
      "  ld.param.u64 src, [in];\n  ld.param.u64 dst, [out];\n  mov.u32 t, %tid.x;\n"
      "  mad.wide.u32 src, t, 16, src;\n  mad.wide.u32 dst, t, 16, dst;\n"
      "  mov.u32 base, rows;\n  mad.lo.u32 a, t, 16, base;\n"
      "  ld.global.v4.b32 {{r0, r1, r2, r3}}, [src];\n  st.shared.v4.b32 [a], {{r0, r1, r2, r3}};\n"
      "  bar.sync 0;\n"
      "  mad.lo.u32 a, t, 5, 3;\n  and.b32 a, a, 31;\n  mad.lo.u32 a, a, 16, base;\n"
      "  ldmatrix.sync.aligned.m8n8.x{}{}.shared.b16 {{{}}}, [a];\n{}  ret;\n}}\n",
      count, transposed ? ".trans" : "", registers, stores);
}

template <int kCount, bool kTransposed>
void define_ldmatrix(const Golden&, Words in, Expected expected) {
  const auto half = [&](int matrix, int row, int column) -> u32 {
    const int address_lane = matrix * 8 + row;
    const int from = (address_lane * 5 + 3) % 32;
    const u64 four = in[static_cast<std::size_t>(from) * 2 + static_cast<std::size_t>(column) / 4];
    return static_cast<u16>(four >> column % 4 * 16);
  };
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4;
    const int p = lane % 4 * 2;
    for (int i = 0; i < kCount; ++i) {
      const u32 low = kTransposed ? half(i, p, g) : half(i, g, p);
      const u32 high = kTransposed ? half(i, p + 1, g) : half(i, g, p + 1);
      expected[static_cast<std::size_t>(lane * 4 + i)] = to_word(low | high << 16);
    }
  }
}

template <int kCount, bool kTransposed>
void add_ldmatrix(Set& set) {
  Golden& golden = set.text(fmt::format("ldmatrix.x{}{}", kCount, kTransposed ? ".trans" : ""),
                            ldmatrix_text(kCount, kTransposed), {1}, {32}, 32 * 2,
                            define_ldmatrix<kCount, kTransposed>);
  golden.word_bytes = 4;
  base::Random random(77);
  golden.in.resize(64);
  for (u64& pair : golden.in) pair = random.next() | static_cast<u64>(random.next()) << 32;
}

// Lane l holds element (l / 4, 2 (l % 4)) and the element to its right, and receives the same
// elements of the transpose.
u32 transposed(const Warp& warp, int lane) {
  const auto at = [&](int row, int column) -> u32 {
    return warp.in<u32>(0, row * 4 + column / 2) >> column % 2 * 16 & 0xffff;
  };
  const int row = lane / 4;
  const int column = lane % 4 * 2;
  return at(column, row) | at(column + 1, row) << 16;
}

}  // namespace

void add_matrix(Set& set) {
  add_mma<16, false, false>(set);
  add_mma<16, true, false>(set);
  add_mma<16, false, true>(set);
  add_mma<8, false, false>(set);
  add_mma<8, true, false>(set);
  add_mma<8, false, true>(set);
  add_ldmatrix<1, false>(set);
  add_ldmatrix<2, false>(set);
  add_ldmatrix<4, false>(set);
  add_ldmatrix<1, true>(set);
  add_ldmatrix<2, true>(set);
  add_ldmatrix<4, true>(set);
  set.warp_form<u32>("movmatrix.trans", {Kind::kBits32},
                     "movmatrix.sync.aligned.m8n8.trans.b16 d, a;", transposed);
}

}  // namespace annulus::golden
