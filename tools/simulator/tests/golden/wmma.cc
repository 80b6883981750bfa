// wmma.load, wmma.mma and wmma.store. The manual does not define which lane holds which element. So
// a program loads A, B and C, multiplies them and stores D, and the definition uses only the
// matrices in memory. A, B and C are in global memory. In some forms the warp copies B to shared
// memory first.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/random.h"
#include "golden/golden.h"

namespace annulus::golden {
namespace {

enum Type { kTypeF16, kTypeBf16, kTypeTf32, kTypeF64, kTypeS8, kTypeU8, kTypeF32, kTypeS32 };
constexpr const char* kNames[] = {"f16", "bf16", "tf32", "f64", "s8", "u8", "f32", "s32"};
constexpr int kBytes[] = {2, 2, 4, 8, 1, 1, 4, 4};

struct Form {
  int m, n, k;
  Type type, c, d;
  bool rows_a, rows_b, rows_d;
  bool shared;  // B is in shared memory
  int skip;     // bytes between the lines of each matrix
  bool saturated;
  bool exact;  // small integers, otherwise normally distributed numbers

  std::string shape() const { return fmt::format("m{}n{}k{}", m, n, k); }
};
constexpr int kMatrixBytes = 4096;  // bytes of each of A, B and C in `in`, and of D in `out`

// The place of element (row, column) of a matrix.
std::size_t place(const Form& form, Type type, bool by_rows, int rows, int columns, int row,
                  int column) {
  const int line = by_rows ? row : column;
  const int at = by_rows ? column : row;
  const int stride = (by_rows ? columns : rows) * kBytes[type] + form.skip;
  return static_cast<std::size_t>(line * stride + at * kBytes[type]);
}
std::string stride(const Form& form, Type type, int line) {
  return form.skip == 0 ? std::string() : fmt::format(", {}", line + form.skip / kBytes[type]);
}

double read(Type type, Words words, std::size_t at) {
  const u64 word = words[at / 8] >> at % 8 * 8;
  switch (type) {
    case kTypeF16:
      return decode16(kHalfFormat, static_cast<u16>(word));
    case kTypeBf16:
      return decode16(kBfloatFormat, static_cast<u16>(word));
    case kTypeTf32:
    case kTypeF32:
      return static_cast<double>(std::bit_cast<float>(static_cast<u32>(word)));
    case kTypeF64:
      return std::bit_cast<double>(word);
    case kTypeS8:
      return static_cast<std::int8_t>(word);
    case kTypeU8:
      return static_cast<std::uint8_t>(word);
    default:
      return static_cast<std::int32_t>(word);
  }
}

u64 encode(Type type, double value) {
  switch (type) {
    case kTypeF16:
      return encode16(kHalfFormat, round_to(kHalfFormat, value));
    case kTypeBf16:
      return encode16(kBfloatFormat, round_to(kBfloatFormat, value));
    case kTypeTf32:
      return std::bit_cast<u32>(static_cast<float>(value)) & 0xffffe000u;
    case kTypeF32:
      return std::bit_cast<u32>(static_cast<float>(value));
    case kTypeF64:
      return std::bit_cast<u64>(value);
    case kTypeS8:
    case kTypeU8:
      return static_cast<std::uint8_t>(static_cast<int>(value));
    default:
      return static_cast<u32>(static_cast<std::int64_t>(value));
  }
}

int registers(const Form& form, Type type, int elements, bool multiplicand) {
  if (multiplicand && form.type == kTypeF16) return 8;
  return elements * kBytes[type] / (type == kTypeF64 ? 256 : 128);
}

std::string list(char name, int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) text += fmt::format("{}{}{}", i ? ", " : "", name, i);
  return text + "}";
}

std::string text_of(const Form& form) {
  const auto [m, n, k] = std::array{form.m, form.n, form.k};
  const auto kind = [](Type type) {
    return type == kTypeF64 ? "f64" : type == kTypeF32 ? "f32" : "b32";
  };
  const std::string a = list('a', registers(form, form.type, m * k, true));
  const std::string b = list('b', registers(form, form.type, k * n, true));
  const std::string c = list('c', registers(form, form.c, m * n, false));
  const std::string d = list('d', registers(form, form.d, m * n, false));
  const std::string shape = form.shape();
  const char* layout_a = form.rows_a ? "row" : "col";
  const char* layout_b = form.rows_b ? "row" : "col";
  const char* layout_d = form.rows_d ? "row" : "col";
  const char* type = kNames[form.type];
  std::string types = fmt::format("{}.{}", kNames[form.d], kNames[form.c]);
  if (form.type != kTypeF16) {
    types = fmt::format("{}.{}.{}.{}", kNames[form.d], type, type, kNames[form.c]);
  }
  if (form.saturated) types += ".satfinite";
  const std::string stride_a = stride(form, form.type, form.rows_a ? k : m);
  const std::string stride_b = stride(form, form.type, form.rows_b ? n : k);
  const std::string stride_c = stride(form, form.c, form.rows_d ? n : m);
  const std::string stride_d = stride(form, form.d, form.rows_d ? n : m);
  std::string copy;
  if (form.shared) {
    copy = "  mad.wide.u32 from, t, 16, pb;\n  mad.lo.u32 to, t, 16, tile;\n";
    for (int at = 0; at < kMatrixBytes; at += 512) {
      copy += fmt::format(
          "  ld.global.v4.b32 {{x0, x1, x2, x3}}, [from+{0}];\n"
          "  st.shared.v4.b32 [to+{0}], {{x0, x1, x2, x3}};\n",
          at);
    }
    copy += "  bar.warp.sync 0xffffffff;\n";
  }
  return ".version 8.0\n.target sm_80\n.address_size 64\n\n"
         ".visible .entry golden(.param .u64 in, .param .u64 out)\n{\n" +
         fmt::format("  .shared .align 32 .b8 tiles[{}];\n", form.shared ? kMatrixBytes : 32) +
         "  .reg .b64 pa, pb, pc, pd, from;\n  .reg .b32 t, to, tile, x<4>;\n" +
         fmt::format("  .reg .{} a<8>, b<8>;\n  .reg .{} c<8>;\n  .reg .{} d<8>;\n",
                     form.type == kTypeF64 ? "f64" : "b32", kind(form.c), kind(form.d)) +
         fmt::format(
             "  ld.param.u64 pa, [in];\n  ld.param.u64 pd, [out];\n"
             "  add.u64 pb, pa, {};\n  add.u64 pc, pa, {};\n"
             "  mov.u32 t, %tid.x;\n  mov.u32 tile, tiles;\n",
             kMatrixBytes, 2 * kMatrixBytes) +
         copy +
         // A has a generic address; C and D have addresses of global memory.
         fmt::format("  wmma.load.a.sync.aligned.{}.{}.{} {}, [pa]{};\n", layout_a, shape, type, a,
                     stride_a) +
         fmt::format("  wmma.load.b.sync.aligned.{}.{}.{}.{} {}, [{}]{};\n", layout_b, shape,
                     form.shared ? "shared" : "global", type, b, form.shared ? "tile" : "pb",
                     stride_b) +
         fmt::format("  wmma.load.c.sync.aligned.{}.{}.global.{} {}, [pc]{};\n", layout_d, shape,
                     kNames[form.c], c, stride_c) +
         fmt::format("  wmma.mma.sync.aligned.{}.{}.{}.{} {}, {}, {}, {};\n", layout_a, layout_b,
                     shape, types, d, a, b, c) +
         fmt::format("  wmma.store.d.sync.aligned.{}.{}.global.{} [pd], {}{};\n", layout_d, shape,
                     kNames[form.d], d, stride_d) +
         "  ret;\n}\n";
}

constexpr Form kForms[] = {
#define SHAPES(type, c, d, rows_a, rows_b, rows_d, shared, skip, saturated, exact)       \
  {16, 16, 16, type, c, d, rows_a, rows_b, rows_d, shared, skip, saturated, exact},      \
      {8, 32, 16, type, c, d, rows_a, rows_b, rows_d, shared, skip, saturated, exact}, { \
    32, 8, 16, type, c, d, rows_a, rows_b, rows_d, shared, skip, saturated, exact        \
  }
    SHAPES(kTypeF16, kTypeF32, kTypeF32, true, false, true, false, 32, false, true),
    SHAPES(kTypeF16, kTypeF32, kTypeF32, true, true, false, true, 32, false, false),
    SHAPES(kTypeF16, kTypeF16, kTypeF16, false, true, true, true, 32, false, true),
    SHAPES(kTypeF16, kTypeF16, kTypeF32, false, false, false, false, 32, false, true),
    SHAPES(kTypeF16, kTypeF32, kTypeF16, true, false, false, false, 64, false, true),
    SHAPES(kTypeBf16, kTypeF32, kTypeF32, true, false, true, true, 32, false, true),
    SHAPES(kTypeBf16, kTypeF32, kTypeF32, false, true, false, false, 0, false, false),
    SHAPES(kTypeS8, kTypeS32, kTypeS32, true, false, true, true, 32, false, true),
    SHAPES(kTypeS8, kTypeS32, kTypeS32, false, true, false, false, 0, true, true),
    SHAPES(kTypeU8, kTypeS32, kTypeS32, true, false, false, false, 32, false, true),
    SHAPES(kTypeU8, kTypeS32, kTypeS32, false, true, true, true, 0, true, true),
#undef SHAPES
    {16, 16, 16, kTypeF16, kTypeF32, kTypeF32, true, false, true, false, 0, false, true},
    {16, 16, 8, kTypeTf32, kTypeF32, kTypeF32, true, false, true, true, 32, false, true},
    {16, 16, 8, kTypeTf32, kTypeF32, kTypeF32, false, true, false, false, 0, false, false},
    {8, 8, 4, kTypeF64, kTypeF64, kTypeF64, true, false, true, true, 32, false, true},
    {8, 8, 4, kTypeF64, kTypeF64, kTypeF64, false, true, false, false, 0, false, false},
};

// An element of D, with the error that a tensor core may make by adding in another order.
Word element(const Form& form, Words in, int row, int column) {
  const Words b = in.subspan(kMatrixBytes / 8);
  const Words c = in.subspan(2 * kMatrixBytes / 8);
  double sum = read(form.c, c, place(form, form.c, form.rows_d, form.m, form.n, row, column));
  double size = std::fabs(sum);
  for (int i = 0; i < form.k; ++i) {
    const double product =
        read(form.type, in, place(form, form.type, form.rows_a, form.m, form.k, row, i)) *
        read(form.type, b, place(form, form.type, form.rows_b, form.k, form.n, i, column));
    sum += product;
    size += std::fabs(product);
  }
  switch (form.d) {
    case kTypeF16:
      return to_word(to_f16(sum));
    case kTypeF32:
      return form.exact ? to_word(static_cast<float>(sum))
                        : to_word(Near<float>{sum, size * 0x1p-20});
    case kTypeF64:
      return form.exact ? to_word(sum) : to_word(Near<double>{sum, size * 0x1p-49});
    default:
      if (form.saturated) sum = std::clamp(sum, -0x1p31, 0x1p31 - 1);
      return to_word(static_cast<std::int32_t>(static_cast<std::int64_t>(sum)));
  }
}

// `out` holds words of 4 bytes, or of 8 for f64. A word of two f16 holds both.
void define(const Golden& golden, Words in, Expected expected) {
  const Form& form = kForms[golden.facts[0]];
  for (int row = 0; row < form.m; ++row) {
    for (int column = 0; column < form.n; ++column) {
      const std::size_t at = place(form, form.d, form.rows_d, form.m, form.n, row, column);
      const Word word = element(form, in, row, column);
      Word& to = expected[at / static_cast<std::size_t>(golden.word_bytes)];
      if (form.d == kTypeF16) {
        const std::size_t shift = at % 4 * 8;
        to.bits = (to.bits & ~(u64{0xffff} << shift)) | word.bits << shift;
        to.kind = Kind::kF16x2;
      } else {
        to = word;
      }
    }
  }
}

std::vector<u64> operands(const Form& form, u64 seed) {
  base::Random random(seed);
  std::vector<u64> in(3 * kMatrixBytes / 8, 0);
  const auto fill = [&](int matrix, Type type, bool by_rows, int rows, int columns) {
    for (int row = 0; row < rows; ++row) {
      for (int column = 0; column < columns; ++column) {
        double value = static_cast<double>(random.normal());
        if (form.exact) value = static_cast<int>(random.below(9)) - 4;
        if (type == kTypeS8) value = static_cast<int>(random.below(256)) - 128;
        if (type == kTypeU8) value = static_cast<int>(random.below(256));
        // For a third of the columns C is near the largest int, and for a third near the smallest,
        // so that many sums overflow or saturate.
        if (type == kTypeS32 && column % 3 == 1) value = 0x1p31 - 1 - random.below(1000);
        if (type == kTypeS32 && column % 3 == 2) value = -0x1p31 + random.below(1000);
        const std::size_t at = static_cast<std::size_t>(matrix * kMatrixBytes) +
                               place(form, type, by_rows, rows, columns, row, column);
        in[at / 8] |= encode(type, value) << at % 8 * 8;
      }
    }
  };
  fill(0, form.type, form.rows_a, form.m, form.k);
  fill(1, form.type, form.rows_b, form.k, form.n);
  fill(2, form.c, form.rows_d, form.m, form.n);
  return in;
}

}  // namespace

void add_wmma(Set& set) {
  int index = 0;
  for (const Form& form : kForms) {
    const std::string name =
        fmt::format("wmma.{}.{}.{}.{}.{}.{}{}{}{}", form.rows_a ? "row" : "col",
                    form.rows_b ? "row" : "col", form.shape(), kNames[form.d], kNames[form.type],
                    kNames[form.c], form.saturated ? ".satfinite" : "",
                    form.skip != 0 ? " with stride" : "", form.exact ? "" : " of normal numbers");
    Golden& golden = set.text(name, text_of(form), {1}, {32}, kMatrixBytes / 8, define);
    golden.in = operands(form, static_cast<u64>(index));
    golden.word_bytes = form.d == kTypeF64 ? 8 : 4;
    golden.facts = {index++};
  }
}

}  // namespace annulus::golden
