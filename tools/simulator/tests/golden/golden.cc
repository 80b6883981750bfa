#include "golden/golden.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "base/random.h"

namespace annulus::golden {
namespace {

constexpr std::uint32_t kBlock = 128;
constexpr std::uint32_t kGrid = 6;

std::uint64_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }
std::uint64_t bits(double value) { return std::bit_cast<std::uint64_t>(value); }

// Values at which the result of a rule changes: limits, zeros, and their neighbours.
std::vector<std::uint64_t> edges(Kind kind) {
  switch (kind) {
    case Kind::kBits8:
      return {0, 1, 2, 0x7f, 0x80, 0x81, 0xff, 0xfe};
    case Kind::kBits16:
      return {0, 1, 2, 7, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0x8001, 0xffff, 0xfffe};
    case Kind::kBits32:
      return {0,          1,          2,          3,          31,         32,
              0x7f,       0x80,       0xff,       0x7fff,     0x8000,     0xffff,
              0x10000,    0x7fffff,   0x800000,   0xffffff,   0x7ffffffe, 0x7fffffff,
              0x80000000, 0x80000001, 0xfffffffe, 0xffffffff, 0xffff8000, 0x55555555};
    case Kind::kBits64:
      return {0,
              1,
              2,
              0x7fff,
              0x80,
              0xff,
              0x7fffffff,
              0x80000000,
              0xffffffff,
              0x100000000,
              0x7fffffffffffffff,
              0x8000000000000000,
              0x8000000000000001,
              0x8080000000000001,  // just above a tie in bf16
              0xffffffffffffffff,
              0xfffffffffffffffe,
              0xffffffff80000000,
              0xffffffff7fffffff,
              0x7fffffff00000000};
    case Kind::kF16:
    case Kind::kF16x2:
      return {0x0000, 0x8000, 0x3c00, 0xbc00, 0x3c01, 0x3bff, 0x7bff, 0xfbff,
              0x7c00, 0xfc00, 0x7e00, 0xfe01, 0x0001, 0x8001, 0x03ff, 0x0400,
              0x8400, 0x3800, 0x3e00, 0xbe00, 0x4100, 0x5bff};
    case Kind::kBf16:
    case Kind::kBf16x2:
      return {0x0000, 0x8000, 0x3f80, 0xbf80, 0x3f81, 0x3f7f, 0x7f7f, 0xff7f,
              0x7f80, 0xff80, 0x7fc0, 0xffc1, 0x0001, 0x8001, 0x007f, 0x0080,
              0x8080, 0x3f00, 0x3fc0, 0xbfc0, 0x4020, 0x4300};
    case Kind::kF32:
      return {bits(0.0f),          bits(-0.0f),         bits(1.0f),           bits(-1.0f),
              0x3f800001,          0x3f7fffff,          bits(0.5f),           bits(-0.5f),
              bits(1.5f),          bits(2.5f),          bits(-2.5f),          bits(3.0f),
              0x7f7fffff,          0xff7fffff,          0x7f800000,           0xff800000,
              0x7fc00000,          0xffc00001,          0x00000001,           0x80000001,
              0x007fffff,          0x807fffff,          0x00800000,           0x80800000,
              0x00800001,          bits(2147483648.0f), bits(-2147483648.0f), bits(2147483520.0f),
              bits(4294967296.0f), bits(65504.0f),      bits(65520.0f),       bits(65519.996f),
              bits(5.9604645e-8f), bits(2.9802322e-8f), bits(9.2233720e18f),  bits(1.0e-20f),
              bits(-150.0f),       bits(-126.5f),       bits(128.0f)};
    case Kind::kF64:
      return {bits(0.0),
              bits(-0.0),
              bits(1.0),
              bits(-1.0),
              bits(0.5),
              bits(-0.5),
              bits(1.5),
              bits(2.5),
              bits(-2.5),
              0x7fefffffffffffff,
              0xffefffffffffffff,
              0x7ff0000000000000,
              0xfff0000000000000,
              0x7ff8000000000000,
              0xfff8000000000001,
              1,
              0x8000000000000001,
              0x000fffffffffffff,
              0x0010000000000000,
              bits(2147483647.5),
              bits(2147483648.0),
              bits(-2147483648.5),
              bits(-2147483649.0),
              bits(4294967295.5),
              bits(4294967296.0),
              bits(9223372036854775808.0),
              bits(18446744073709551616.0),
              bits(1.0e-40),
              bits(3.5e38),
              bits(65520.0),
              0x3ff0000010000000,
              0x3ff0000030000000};
    case Kind::kPredicate:
      return {0, 1};
    case Kind::kShift:
      return {0, 1, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 0x80000000, 0xffffffff};
  }
  return {};
}

std::uint64_t random_value(Kind kind, base::Random& random) {
  const std::uint64_t word = random.next() | static_cast<std::uint64_t>(random.next()) << 32;
  switch (kind) {
    case Kind::kShift:
      return random.below(70);
    case Kind::kPredicate:
      return random.below(2);
    case Kind::kF32:
      switch (random.below(4)) {
        case 0:
          return word;
        case 1:
          return bits(static_cast<float>(static_cast<int>(random.below(4096)) - 2048) * 0.25f);
        case 2:
          return bits(random.normal() * 1.0e6f);
        default:
          return bits(random.normal());
      }
    case Kind::kF64:
      switch (random.below(3)) {
        case 0:
          return word;
        case 1:
          return bits(static_cast<double>(random.normal()) * 1.0e9 + random.uniform());
        default:
          return bits(static_cast<double>(random.normal()) + random.uniform() * 1e-9);
      }
    default:
      return word;
  }
}

// There are no 8-bit registers. ld and st of .b8 use a 16-bit register.
int register_bits(Kind kind) { return std::max(16, bytes_of(kind) * 8); }

}  // namespace

int bytes_of(Kind kind) {
  switch (kind) {
    case Kind::kBits8:
      return 1;
    case Kind::kBits16:
    case Kind::kF16:
    case Kind::kBf16:
      return 2;
    case Kind::kBits64:
    case Kind::kF64:
      return 8;
    default:
      return 4;
  }
}

void generate_operands(Golden& self, std::size_t elements) {
  const std::size_t count = self.operands.size();
  std::uint64_t seed = 0x9e3779b97f4a7c15ull;
  for (const char letter : self.name) seed = seed * 31 + static_cast<unsigned char>(letter);
  base::Random random(seed);
  std::vector<std::vector<std::uint64_t>> special;
  for (const Kind kind : self.operands) special.push_back(edges(kind));

  self.in.assign(elements * count, 0);
  for (std::size_t i = 0; i < elements; ++i) {
    std::size_t combination = i;
    for (std::size_t k = 0; k < count; ++k) {
      const Kind kind = self.operands[k];
      const bool packed = kind == Kind::kF16x2 || kind == Kind::kBf16x2;
      const auto draw = [&](std::size_t index) {
        if (i < elements * 2 / 3) return special[k][index % special[k].size()];
        return random.below(4) == 0
                   ? special[k][random.below(static_cast<std::uint32_t>(special[k].size()))]
                   : random_value(kind, random);
      };
      std::uint64_t value = draw(combination);
      if (packed) value = (value & 0xffff) | (draw(combination + i / 7 + k) & 0xffff) << 16;
      combination /= special[k].size();
      // Without this, later operands would keep their first edge value if the edge values of the
      // first operands fill all elements.
      if (count > 1 && k > 0 && i % 2 == 1) value = packed ? value : draw(random.next());
      // Bytes above the operand hold garbage, so that a load that is too wide is found.
      const int width = bytes_of(kind) * 8;
      const std::uint64_t keep = width == 64 ? ~0ull : (1ull << width) - 1;
      self.in[i * count + k] = (value & keep) | (0xa5a5a5a5a5a5a5a5ull & ~keep);
    }
  }
}

constexpr std::string_view kHeader = ".version 7.8\n.target sm_80\n.address_size 64\n\n";

std::string form_text(std::span<const Kind> operands, Kind result, std::string_view statement) {
  static constexpr std::array<char, 4> kNames = {'a', 'b', 'c', 'e'};
  std::string text(kHeader);
  text +=
      ".visible .entry golden(.param .u64 in, .param .u64 out)\n{\n"
      "  .reg .b64 src, dst;\n  .reg .b32 tid, lane, cta, size;\n";
  std::string loads;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const char name = kNames.at(k);
    if (operands[k] == Kind::kPredicate) {
      text += fmt::format("  .reg .b32 {0}_word;\n  .reg .pred {0};\n", name);
      loads += fmt::format(
          "  ld.global.b32 {0}_word, [src+{1}];\n  setp.ne.b32 {0}, {0}_word, 0;\n", name, k * 8);
    } else {
      text += fmt::format("  .reg .b{} {};\n", register_bits(operands[k]), name);
      loads +=
          fmt::format("  ld.global.b{} {}, [src+{}];\n", bytes_of(operands[k]) * 8, name, k * 8);
    }
  }
  text += result == Kind::kPredicate ? std::string("  .reg .pred d;\n  .reg .b32 d_word;\n")
                                     : fmt::format("  .reg .b{} d;\n", register_bits(result));
  text += fmt::format(
      "  ld.param.u64 src, [in];\n  ld.param.u64 dst, [out];\n"
      "  cvta.to.global.u64 src, src;\n  cvta.to.global.u64 dst, dst;\n"
      "  mov.u32 tid, %tid.x;\n  mov.u32 cta, %ctaid.x;\n  mov.u32 size, %ntid.x;\n"
      "  mov.u32 lane, %laneid;\n  mad.lo.s32 tid, cta, size, tid;\n"
      "  mad.wide.u32 src, tid, {}, src;\n  mad.wide.u32 dst, tid, 8, dst;\n",
      operands.size() * 8);
  text += loads;
  text += fmt::format("  {}\n", statement);
  text += result == Kind::kPredicate
              ? std::string("  selp.b32 d_word, 1, 0, d;\n  st.global.b32 [dst], d_word;\n")
              : fmt::format("  st.global.b{} [dst], d;\n", bytes_of(result) * 8);
  return text + "  ret;\n}\n";
}

Golden& Set::add(std::string name) {
  Golden& golden = all_.emplace_back();
  golden.name = std::move(name);
  return golden;
}

void Set::finish(Golden& golden, Kind result, std::string_view statement) {
  golden.grid = {kGrid};
  golden.block = {kBlock};
  golden.out_words = kGrid * kBlock;
  golden.text = form_text(golden.operands, result, statement);
  generate_operands(golden, golden.out_words);
}

void Set::move_to_hopper(Golden& golden) {
  golden.hopper = true;
  golden.text.replace(0, kHeader.size(), ".version 8.1\n.target sm_90a\n.address_size 64\n\n");
}

Golden& Set::file(const std::string& name, Extent grid, Extent block, std::size_t out_words,
                  void (*define)(const Golden&, Words, Expected)) {
  return text(name, {}, grid, block, out_words, define);
}

Golden& Set::text(const std::string& name, std::string ptx, Extent grid, Extent block,
                  std::size_t out_words, void (*define)(const Golden&, Words, Expected)) {
  Golden& golden = add(name);
  golden.text = std::move(ptx);
  golden.grid = grid;
  golden.block = block;
  golden.out_words = out_words;
  golden.define = define;
  return golden;
}

// Forms that the simulator does not support. They are in the set because a GPU supports them. When
// the simulator gets one, its name has to be removed from this list.
constexpr std::string_view kNotModelled[] = {
    "mov.b32 expression",
};

std::vector<Golden> all_programs() {
  Set set;
  add_integer(set);
  add_bits(set);
  add_compare(set);
  add_float32(set);
  add_float64(set);
  add_half(set);
  add_convert(set);
  add_move(set);
  add_warp(set);
  add_memory(set);
  add_atomic(set);
  add_matrix(set);
  add_matrix_words(set);
  add_control(set);
  add_async(set);
  add_mbarrier(set);
  add_bulk(set);
  add_wgmma(set);
  add_wmma(set);
  add_cluster(set);
  for (Golden& golden : set.all()) {
    golden.modelled = std::find(std::begin(kNotModelled), std::end(kNotModelled), golden.name) ==
                      std::end(kNotModelled);
  }
  return std::move(set.all());
}

}  // namespace annulus::golden
