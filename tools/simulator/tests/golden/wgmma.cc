// wgmma. A program fills shared memory in the layout of the descriptors, multiplies once, and
// writes the accumulators. Its definition has the matrices, the places of their elements in shared
// memory, and the thread of each element of D.
//
// The layouts of an operand of R rows (of A, or columns of B) by 32 bytes of K (PTX ISA 9.0,
// section 9.7.15.5.1), in units of 16-byte chunks of T elements. A row of the swizzle has W = 1, 2,
// 4, 8 chunks:
//   K-major, no swizzle    ((8, r), 2) : ((1, stride), leading)
//   K-major, swizzled      ((8, r), 2) : ((W, stride), 1)
//   MN-major, no swizzle   ((1, r), (8, 2)) : ((-, stride), (1, leading))
//   MN-major, swizzled     ((W, r), (8, 2)) : ((1, leading), (W, stride))
// Then the chunks of the swizzle's rows are exchanged as by a bulk tensor copy. If that pattern
// does not start at a multiple of its size, the descriptor has a base offset, start / 128 % 8
// (section 9.7.15.5.1.2).
//
// D: register i of thread 32 w + 4 g + t has row 16 w + g + 8 (i / 2 % 2), column 8 (i / 4) + 2 t +
// i % 2; of 16-bit accumulators a register has two columns. A in registers: register i has rows g +
// 8 (i % 2) of the warp's 16 rows, bytes 16 (i / 2) + 4 t to + 3.

#include <fmt/core.h>

#include <cmath>
#include <cstring>

#include "base/random.h"
#include "golden/golden.h"

namespace annulus::golden {
namespace {

enum Input : int { kF16, kBf16, kTf32, kE4m3, kE5m2 };
constexpr const char* kNames[] = {"f16", "bf16", "tf32", "e4m3", "e5m2"};

// The layout of one operand, which is part of the facts of the program.
struct Layout {
  bool mn_major = false;
  int swizzle = 0;  // 0 none, 1, 2, 3: rows of 32, 64, 128 bytes
  int step = 0;     // the step of K within a row of the swizzle, in chunks of 32 bytes
  int leading = 0;  // in chunks
  int stride = 0;
  int base = 0;  // rows of 128 bytes before the pattern, if its start is not a multiple of its size
};

struct Form {
  int n = 8;
  Input a_type = kBf16;
  Input b_type = kBf16;
  bool half = false;       // f16 accumulators
  bool fragments = false;  // A is in registers
  Layout a = {};
  Layout b = {};
  bool accumulate = true;
  int a_sign = 1;
  int b_sign = 1;
  // small integers, otherwise normally distributed numbers, or any finite numbers of 8 bits
  bool exact = true;

  int element_bytes() const { return a_type == kTf32 ? 4 : a_type <= kBf16 ? 2 : 1; }
  int k() const { return 32 / element_bytes(); }
  int registers() const { return half ? n / 4 : n / 2; }
  bool cut() const { return !exact && element_bytes() == 1; }  // sums follow the rule of cut_sum
};

// --- Numbers ---

u32 encode(Input type, double value) {
  switch (type) {
    case kF16:
      return encode16(kHalfFormat, round_to(kHalfFormat, value));
    case kBf16:
      return encode16(kBfloatFormat, round_to(kBfloatFormat, value));
    case kTf32:
      return std::bit_cast<u32>(static_cast<float>(value));
    default:
      break;
  }
  // The bits of a small integer are its exponent and the bits after the leading one.
  if (value == 0) return 0;
  const int fraction_bits = type == kE4m3 ? 3 : 2;
  const int exponent = std::ilogb(value);
  const double fraction = std::fabs(value) / std::ldexp(1.0, exponent) - 1.0;
  return (value < 0 ? 0x80u : 0u) |
         static_cast<u32>(exponent + (type == kE4m3 ? 7 : 15)) << fraction_bits |
         static_cast<u32>(std::ldexp(fraction, fraction_bits));
}

double decode(Input type, u32 bits) {
  switch (type) {
    case kF16:
      return decode16(kHalfFormat, static_cast<u16>(bits));
    case kBf16:
      return decode16(kBfloatFormat, static_cast<u16>(bits));
    case kTf32:
      return static_cast<double>(std::bit_cast<float>(bits & ~0x1fffu));
    default:
      break;
  }
  const int fraction_bits = type == kE4m3 ? 3 : 2;
  const int exponent = static_cast<int>(bits >> fraction_bits & (type == kE4m3 ? 15u : 31u));
  const double fraction = std::ldexp(bits & ((1u << fraction_bits) - 1), -fraction_bits);
  const int bias = type == kE4m3 ? 7 : 15;
  const double size =
      exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1.0 + fraction, exponent - bias);
  return (bits & 0x80u) != 0 ? -size : size;
}

// The sum of an accumulator and the products of 8-bit floats, as an H200 computes it: e is the
// largest exponent among the terms, where the exponent of a product is the sum of its factors'
// exponents and a subnormal factor has the exponent of the smallest normal number. Every term is
// cut toward zero to a multiple of 2^(e - 13), and the sum to 14 significant bits.
float cut_sum(const Form& form, const std::vector<double>& a, const std::vector<double>& b,
              double accumulator) {
  const auto exponent = [](Input type, double value) {
    return std::max(std::ilogb(value), type == kE4m3 ? -6 : -14);
  };
  int largest = accumulator == 0 ? std::numeric_limits<int>::min() : std::ilogb(accumulator);
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (a[k] * b[k] == 0) continue;
    largest = std::max(largest, exponent(form.a_type, a[k]) + exponent(form.b_type, b[k]));
  }
  if (largest == std::numeric_limits<int>::min()) return 0;
  double sum = std::trunc(std::ldexp(accumulator, 13 - largest));
  for (std::size_t k = 0; k < a.size(); ++k) {
    sum += std::trunc(std::ldexp(a[k] * b[k], 13 - largest));
  }
  if (sum == 0) return 0;
  const int top = std::ilogb(sum);
  const double kept = std::trunc(std::ldexp(sum, 13 - top));
  return static_cast<float>(std::ldexp(kept, top - 13 + largest - 13));
}

// --- Places of elements ---

std::size_t place(const Layout& layout, int element_bytes, int row, int k) {
  const int width = 1 << layout.swizzle;  // chunks in a row of the swizzle
  const int per_chunk = 16 / element_bytes;
  int chunk = 0;
  int inside = 0;
  if (!layout.mn_major) {
    const int half = k / per_chunk;
    chunk = row % 8 * width + row / 8 * layout.stride + 2 * layout.step +
            (layout.swizzle == 0 ? half * layout.leading : half);
    inside = k % per_chunk * element_bytes;
  } else if (layout.swizzle == 0) {
    chunk = row / per_chunk * layout.stride + k % 8 + k / 8 * layout.leading;
    inside = row % per_chunk * element_bytes;
  } else {
    const int along = row / per_chunk;
    chunk = along % width + along / width * layout.leading + k % 8 * width + k / 8 * layout.stride;
    inside = row % per_chunk * element_bytes;
  }
  const int line = chunk / 8;  // the line of 128 bytes
  return static_cast<std::size_t>(layout.base * 128 + (chunk ^ (line & (width - 1))) * 16 + inside);
}

std::size_t image_bytes(const Layout& layout, int element_bytes, int rows, int k_count) {
  std::size_t end = 0;
  for (int row = 0; row < rows; ++row) {
    for (int k = 0; k < k_count; ++k) {
      end = std::max(end, place(layout, element_bytes, row, k) + 16);
    }
  }
  return (end + 1023) / 1024 * 1024;
}

u64 descriptor(const Layout& layout, std::size_t start) {
  constexpr u64 kSwizzles[] = {0, 3, 2, 1};
  return (start + static_cast<std::size_t>(128 * layout.base + 32 * layout.step)) >> 4 |
         static_cast<u64>(layout.leading) << 16 | static_cast<u64>(layout.stride) << 32 |
         static_cast<u64>(layout.base) << 49 | kSwizzles[layout.swizzle] << 62;
}

struct Case {
  Form form;
  std::size_t a_bytes = 0;  // bytes of A in the image
  std::size_t b_bytes = 0;
  // rounded up to 16 bytes for each thread
  std::size_t image() const { return (a_bytes + b_bytes + 2047) / 2048 * 2048; }
  std::size_t fragments() const { return image(); }
  std::size_t accumulators() const { return fragments() + (form.fragments ? 128 * 16 : 0); }
  std::size_t bytes() const {
    return accumulators() + static_cast<std::size_t>(128 * 4 * form.registers());
  }
};

Case make_case(const Form& form) {
  Case made{.form = form};
  if (!form.fragments) made.a_bytes = image_bytes(form.a, form.element_bytes(), 64, form.k());
  made.b_bytes = image_bytes(form.b, form.element_bytes(), form.n, form.k());
  return made;
}

// --- The program ---

std::string list(const char* name, int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) text += fmt::format("{}{}{}", i ? ", " : "", name, i);
  return text + "}";
}

std::string mma_text(const Form& form, const char* a_operand) {
  const bool transposable = form.a_type <= kBf16;
  std::string bits;
  if (transposable && !form.fragments) bits += fmt::format(", {}", form.a.mn_major ? 1 : 0);
  if (transposable) bits += fmt::format(", {}", form.b.mn_major ? 1 : 0);
  return fmt::format("  wgmma.mma_async.sync.aligned.m64n{}k{}.{}.{}.{} {}, {}, db, p, {}, {}{};\n",
                     form.n, form.k(), form.half ? "f16" : "f32", kNames[form.a_type],
                     kNames[form.b_type], list("d", form.registers()), a_operand, form.a_sign,
                     form.b_sign, bits);
}

std::string program(const Case& made) {
  const Form& form = made.form;
  std::string text = fmt::format(
      ".version 8.0\n.target sm_90a\n.address_size 64\n\n"
      ".visible .entry golden(.param .u64 in, .param .u64 out)\n.reqntid 128\n{{\n"
      "  .shared .align 1024 .b8 image[{}];\n"
      "  .reg .b64 src, dst, at, base, da, db;\n  .reg .b32 t, i, s, x<4>, a<4>, d<128>;\n"
      "  .reg .pred p, more;\n"
      "  ld.param.u64 src, [in];\n  ld.param.u64 dst, [out];\n  mov.u32 t, %tid.x;\n"
      "  mov.u32 s, image;\n  cvt.u64.u32 base, s;\n  shr.u64 base, base, 4;\n"
      "  mad.lo.u32 s, t, 16, s;\n  mad.wide.u32 at, t, 16, src;\n  mov.u32 i, t;\n"
      "COPY:\n  ld.global.v4.b32 {{x0, x1, x2, x3}}, [at];\n"
      "  st.shared.v4.b32 [s], {{x0, x1, x2, x3}};\n"
      "  add.s64 at, at, 2048;\n  add.u32 s, s, 2048;\n  add.u32 i, i, 128;\n"
      "  setp.lt.u32 more, i, {};\n  @more bra COPY;\n"
      "  fence.proxy.async.shared::cta;\n  bar.sync 0;\n",
      made.image(), made.image() / 16);
  text += fmt::format("  add.u64 da, base, {};\n  add.u64 db, base, {};\n", descriptor(form.a, 0),
                      descriptor(form.b, made.a_bytes));
  if (form.fragments) {
    text += fmt::format(
        "  mad.wide.u32 at, t, 16, src;\n"
        "  ld.global.v4.b32 {{a0, a1, a2, a3}}, [at+{}];\n",
        made.fragments());
  }
  text += fmt::format("  mad.wide.u32 at, t, {}, src;\n", 4 * form.registers());
  for (int i = 0; i < form.registers(); ++i) {
    text += fmt::format("  ld.global.b32 d{}, [at+{}];\n", i,
                        made.accumulators() + static_cast<std::size_t>(4 * i));
  }
  text += fmt::format("  setp.eq.u32 p, {}, 1;\n  wgmma.fence.sync.aligned;\n",
                      form.accumulate ? 1 : 0);
  text += mma_text(form, form.fragments ? "{a0, a1, a2, a3}" : "da");
  text += "  wgmma.commit_group.sync.aligned;\n  wgmma.wait_group.sync.aligned 0;\n";
  text += fmt::format("  mad.wide.u32 dst, t, {}, dst;\n", 4 * form.registers());
  for (int i = 0; i < form.registers(); ++i) {
    text += fmt::format("  st.global.b32 [dst+{}], d{};\n", 4 * i, i);
  }
  return text + "  ret;\n}\n";
}

// --- Its operands and its definition ---

double draw(const Form& form, base::Random& random) {
  return form.exact ? static_cast<double>(static_cast<int>(random.below(9)) - 4)
                    : static_cast<double>(random.normal());
}

std::vector<u64> operands(const Case& made, u64 seed) {
  const Form& form = made.form;
  base::Random random(seed);
  std::vector<u64> words((made.bytes() + 7) / 8);
  auto* bytes = reinterpret_cast<std::uint8_t*>(words.data());
  for (std::size_t i = 0; i < made.image(); ++i) bytes[i] = 0x7f;  // a NaN, or a large number
  const auto size = static_cast<std::size_t>(form.element_bytes());
  const auto put = [&](std::size_t at, Input type) {
    u32 bits = form.cut() ? random.below(256) : encode(type, draw(form, random));
    const u32 endless = type == kE4m3 ? 0x7f : 0x7c;  // NaN, or infinite
    if (form.cut() && (bits & endless) == endless) bits ^= 0x40;
    std::memcpy(bytes + at, &bits, size);
  };
  for (int k = 0; k < form.k(); ++k) {
    for (int row = 0; row < 64 && !form.fragments; ++row) {
      put(place(form.a, form.element_bytes(), row, k), form.a_type);
    }
    for (int column = 0; column < form.n; ++column) {
      put(made.a_bytes + place(form.b, form.element_bytes(), column, k), form.b_type);
    }
  }
  for (std::size_t at = made.fragments(); at < made.accumulators(); at += size) {
    put(at, form.a_type);
  }
  for (std::size_t at = made.accumulators(); at < made.bytes(); at += form.half ? 2 : 4) {
    double value = draw(form, random);
    if (form.cut()) value = std::ldexp(value, static_cast<int>(random.below(32)) - 8);
    if (form.half) {
      const u16 bits = to_f16(value).bits;
      std::memcpy(bytes + at, &bits, 2);
    } else {
      const auto single = static_cast<float>(value);
      std::memcpy(bytes + at, &single, 4);
    }
  }
  return words;
}

Form form_of(const Golden& self) {
  Form form;
  std::size_t at = 0;
  const auto next = [&] { return self.facts[at++]; };
  form.n = next();
  form.a_type = static_cast<Input>(next());
  form.b_type = static_cast<Input>(next());
  form.half = next() != 0;
  form.fragments = next() != 0;
  for (Layout* layout : {&form.a, &form.b}) {
    layout->mn_major = next() != 0;
    layout->swizzle = next();
    layout->step = next();
    layout->leading = next();
    layout->stride = next();
    layout->base = next();
  }
  form.accumulate = next() != 0;
  form.a_sign = next();
  form.b_sign = next();
  form.exact = next() != 0;
  return form;
}

std::vector<int> facts_of(const Form& form) {
  std::vector<int> facts = {form.n, form.a_type, form.b_type, form.half, form.fragments};
  for (const Layout& layout : {form.a, form.b}) {
    facts.insert(facts.end(), {layout.mn_major, layout.swizzle, layout.step, layout.leading,
                               layout.stride, layout.base});
  }
  facts.insert(facts.end(), {form.accumulate, form.a_sign, form.b_sign, form.exact});
  return facts;
}

void define(const Golden& self, Words in, Expected expected) {
  const Case made = make_case(form_of(self));
  const Form& form = made.form;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(in.data());
  const auto get = [&](std::size_t at, Input type) {
    u32 bits = 0;
    std::memcpy(&bits, bytes + at, static_cast<std::size_t>(form.element_bytes()));
    return decode(type, bits);
  };
  const auto a = [&](int row, int k) {
    if (!form.fragments) return get(place(form.a, form.element_bytes(), row, k), form.a_type);
    const int byte = k * form.element_bytes();
    const int thread = row / 16 * 32 + row % 8 * 4 + byte % 16 / 4;
    const int reg = byte / 16 * 2 + row % 16 / 8;
    return get(made.fragments() + static_cast<std::size_t>(thread * 16 + reg * 4 + byte % 4),
               form.a_type);
  };
  const auto b = [&](int column, int k) {
    return get(made.a_bytes + place(form.b, form.element_bytes(), column, k), form.b_type);
  };
  std::vector<double> rows;
  std::vector<double> columns;
  for (int k = 0; k < form.k(); ++k) {
    for (int row = 0; row < 64; ++row) rows.push_back(a(row, k) * form.a_sign * form.b_sign);
    for (int column = 0; column < form.n; ++column) columns.push_back(b(column, k));
  }
  const auto value = [&](int thread, int i) -> Near<float> {
    const int row = thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8;
    const int column = i / 4 * 8 + thread % 4 * 2 + i % 2;
    double sum = 0;
    if (form.accumulate) {
      const std::size_t at =
          made.accumulators() +
          static_cast<std::size_t>(thread * 4 * form.registers() + i * (form.half ? 2 : 4));
      if (form.half) {
        u16 bits;
        std::memcpy(&bits, bytes + at, 2);
        sum = F16{bits}.value();
      } else {
        float single;
        std::memcpy(&single, bytes + at, 4);
        sum = static_cast<double>(single);
      }
    }
    if (form.cut()) {
      std::vector<double> a_row;
      std::vector<double> b_column;
      for (int k = 0; k < form.k(); ++k) {
        a_row.push_back(rows[static_cast<std::size_t>(k * 64 + row)]);
        b_column.push_back(columns[static_cast<std::size_t>(k * form.n + column)]);
      }
      return {static_cast<double>(cut_sum(form, a_row, b_column, sum)), 0};
    }
    double size = std::fabs(sum);
    for (int k = 0; k < form.k(); ++k) {
      const double product = rows[static_cast<std::size_t>(k * 64 + row)] *
                             columns[static_cast<std::size_t>(k * form.n + column)];
      sum += product;
      size += std::fabs(product);
    }
    return {sum, size * 0x1p-20};
  };
  for (int thread = 0; thread < 128; ++thread) {
    for (int r = 0; r < form.registers(); ++r) {
      Word& word = expected[static_cast<std::size_t>(thread * form.registers() + r)];
      if (form.half) {
        word = to_word(
            F16x2{to_f16(value(thread, 2 * r).value), to_f16(value(thread, 2 * r + 1).value)});
      } else {
        const Near<float> d = value(thread, r);
        const bool bits = form.exact || form.cut();
        word = bits ? to_word(static_cast<float>(d.value)) : to_word(d);
      }
    }
  }
}

void add(Set& set, const std::string& name, const Form& form) {
  const Case made = make_case(form);
  const auto words = static_cast<std::size_t>(64 * form.registers());
  Golden& golden = set.text(name, program(made), {1}, {128}, words, define);
  golden.in = operands(made, static_cast<u64>(form.n) + name.size());
  golden.word_bytes = 4;
  golden.facts = facts_of(form);
  golden.hopper = true;
}

// The layout of a tile of this number of rows, stored by panels as bulk copies do it.
Layout layout(int swizzle, bool mn_major, int rows, int step = 0) {
  const int width = 1 << swizzle;
  Layout made{.mn_major = mn_major, .swizzle = swizzle, .step = step};
  if (!mn_major) {
    // There is a gap between the groups of eight rows, but patterns are complete.
    made.stride = swizzle == 0 ? 16 : 8 * width;
    made.leading = swizzle == 0 ? 8 : 1;
  } else if (swizzle == 0) {
    made.stride = 8;                   // to the next 8 rows
    made.leading = rows / 8 * 8 + 16;  // to the next 8 of K
  } else {
    made.stride = 8 * width;       // to the next 8 of K
    made.leading = 2 * 8 * width;  // to the next panel
  }
  return made;
}

std::string type_name(const Form& form) {
  return fmt::format("m64n{}k{}.{}.{}.{}{}", form.n, form.k(), form.half ? "f16" : "f32",
                     kNames[form.a_type], kNames[form.b_type], form.fragments ? ".rs" : ".ss");
}

// Adds every N for every type. The layouts alternate, and so do combinations of 8-bit types.
void add_sizes(Set& set) {
  for (const Input type : {kBf16, kF16, kTf32, kE4m3, kE5m2}) {
    for (int n = 8; n <= 256; n += 8) {
      for (const bool fragments : {false, true}) {
        const int turn = n / 8 + (fragments ? 1 : 0);
        Form form{.n = n, .a_type = type, .b_type = type, .fragments = fragments};
        if (type >= kE4m3 && turn % 4 >= 2) form.b_type = type == kE4m3 ? kE5m2 : kE4m3;
        const bool n_major = turn % 2 == 0 && type <= kBf16;
        form.a = layout(3, false, 64, turn % 4);
        form.b = layout(3, n_major, n, n_major ? 0 : turn / 2 % 4);
        form.accumulate = turn % 3 != 0;
        add(set, "wgmma " + type_name(form), form);
      }
    }
  }
}

// Adds patterns that start at any multiple of 128 bytes.
void add_base_offsets(Set& set) {
  for (int swizzle = 1; swizzle <= 3; ++swizzle) {
    for (const bool mn_major : {false, true}) {
      for (const int base : {1, 2, 5, 7}) {
        Form form{.n = 40};
        form.a = layout(swizzle, mn_major, 64, swizzle == 3 && !mn_major ? base % 4 : 0);
        form.b = layout(swizzle, mn_major, form.n);
        form.a.base = base;
        form.b.base = (base * 3 + 1) % 8;
        add(set,
            fmt::format("wgmma {}-major swizzle {}, base offset {}", mn_major ? "MN" : "K", swizzle,
                        base),
            form);
      }
    }
  }
}

void add_layouts(Set& set) {
  for (int a = 0; a < 8; ++a) {
    for (int b = 0; b < 8; ++b) {
      Form form{.n = 72};
      form.a = layout(a % 4, a / 4 != 0, 64, a == 2 ? 1 : 0);
      form.b = layout(b % 4, b / 4 != 0, form.n, b == 2 ? 1 : 0);
      add(set,
          fmt::format("wgmma A {}-major swizzle {}, B {}-major swizzle {}", a / 4 ? "M" : "K",
                      a % 4, b / 4 ? "N" : "K", b % 4),
          form);
    }
  }
}

// Adds operands of whole panels with every swizzle: V with common head dims.
void add_whole_panels(Set& set) {
  for (int swizzle = 1; swizzle <= 3; ++swizzle) {
    for (const int n : {64, 96, 160, 192}) {
      const int columns = 8 << swizzle;  // columns of 16-bit elements in a panel
      if (n % columns != 0) continue;
      for (const Input type : {kBf16, kF16}) {
        Form form{.n = n, .a_type = type, .b_type = type, .fragments = true};
        form.b = layout(swizzle, true, n);
        add(set,
            fmt::format("wgmma {}, N-major, {} panels of {} columns", type_name(form), n / columns,
                        columns),
            form);
      }
    }
  }
}

void add_types(Set& set) {
  const std::pair<Input, Input> kInputs[] = {{kF16, kF16},   {kBf16, kBf16}, {kTf32, kTf32},
                                             {kE4m3, kE4m3}, {kE4m3, kE5m2}, {kE5m2, kE4m3},
                                             {kE5m2, kE5m2}};
  for (const auto& [a, b] : kInputs) {
    for (const bool fragments : {false, true}) {
      for (const int n : {16, 176}) {
        Form form{.n = n, .a_type = a, .b_type = b, .fragments = fragments};
        form.a = layout(3, false, 64, 2);
        form.b = layout(3, false, n, 3);
        form.a_sign = n == 16 ? -1 : 1;
        form.b_sign = fragments ? -1 : 1;
        const std::string name = "wgmma signs " + type_name(form);
        add(set, name, form);
        form.exact = false;
        add(set,
            (form.cut() ? "wgmma of any numbers " : "wgmma of normal numbers ") + type_name(form),
            form);
        form.exact = true;
        if (a == kBf16 || a == kTf32) continue;
        form.half = true;
        add(set, "wgmma signs " + type_name(form), form);
      }
    }
  }
}

}  // namespace

void add_wgmma(Set& set) {
  add_sizes(set);
  add_base_offsets(set);
  add_layouts(set);
  add_whole_panels(set);
  add_types(set);
}

}  // namespace annulus::golden
