// Bulk tensor copies. The definitions walk over the elements of a box: where an element is in the
// tensor, and where in shared memory, is worked out for each from its coordinates.
//
// In shared memory the elements of a box lie densely, dimension 0 first. A swizzle moves the
// 16-byte chunks of a line within it (PTX ISA 9.0, section 5.5.6): with rows of 128, 64 or 32
// bytes,
//   128 B: chunk c of row r is at c ^ (r % 8)      64 B: at c ^ (r / 2 % 4)      32 B: c ^ (r / 4 %
//   2)

#include <fmt/core.h>

#include <cmath>
#include <cstring>

#include "base/random.h"
#include "sim/golden/bulk.h"

namespace annulus::golden {
namespace {

// CUtensorMapDataType
constexpr int kU8 = 0;
constexpr int kU32 = 2;
constexpr int kS32 = 3;
constexpr int kU64 = 4;
constexpr int kF16 = 6;
constexpr int kF32 = 7;
constexpr int kF64 = 8;
constexpr int kBf16 = 9;

u64 bytes_of_type(int type) {
  return std::array<u64, 10>{1, 2, 4, 4, 8, 8, 2, 4, 8, 2}[static_cast<std::size_t>(type)];
}

struct Box {
  const Tensor& tensor;
  std::vector<i64> start;  // coordinates

  u64 element() const { return bytes_of_type(tensor.type); }
  u64 stride(std::size_t d) const {
    return d == 0 || tensor.element_strides.empty() ? 1 : tensor.element_strides[d];
  }
  u64 extent(std::size_t d) const { return (tensor.box[d] + stride(d) - 1) / stride(d); }
  u64 elements() const {
    u64 count = 1;
    for (std::size_t d = 0; d < tensor.dims.size(); ++d) count *= extent(d);
    return count;
  }
  u64 bytes() const { return elements() * element(); }

  // Visits (byte in shared memory, byte in the tensor, or -1 where the element is outside).
  template <typename Visit>
  void for_elements(Visit visit) const {
    for (u64 i = 0; i < elements(); ++i) {
      u64 rest = i;
      i64 from = 0;
      bool inside = true;
      for (std::size_t d = 0; d < tensor.dims.size(); ++d) {
        const i64 at = start[d] + static_cast<i64>(rest % extent(d) * stride(d));
        rest /= extent(d);
        inside = inside && at >= 0 && at < static_cast<i64>(tensor.dims[d]);
        from += at * static_cast<i64>(d == 0 ? element() : tensor.strides[d - 1]);
      }
      visit(place(i * element()), inside ? from : -1);
    }
  }

  u64 place(u64 byte) const {
    const u64 row_bytes = extent(0) * element();
    const u64 row = byte / row_bytes;
    const u64 chunk = byte % row_bytes / 16;
    const u64 exchanged = tensor.swizzle == 3   ? chunk ^ row % 8
                          : tensor.swizzle == 2 ? chunk ^ row / 2 % 4
                          : tensor.swizzle == 1 ? chunk ^ row / 4 % 2
                                                : chunk;
    return row * row_bytes + exchanged * 16 + byte % 16;
  }
};

Box box_of(const Golden& self) { return {self.tensors[0], {self.facts.begin(), self.facts.end()}}; }

// The words of `expected`, 8 bytes each, as bytes, and back.
std::vector<std::uint8_t> to_bytes(Expected expected) {
  std::vector<std::uint8_t> bytes(expected.size() * 8);
  for (std::size_t i = 0; i < expected.size(); ++i)
    std::memcpy(&bytes[i * 8], &expected[i].bits, 8);
  return bytes;
}
void from_bytes(const std::vector<std::uint8_t>& bytes, Expected expected) {
  for (std::size_t i = 0; i < expected.size(); ++i)
    std::memcpy(&expected[i].bits, &bytes[i * 8], 8);
}

void define_load(const Golden& self, Words in, Expected expected) {
  const Box box = box_of(self);
  const auto* tensor = reinterpret_cast<const std::uint8_t*>(in.data());
  std::vector<std::uint8_t> shared = to_bytes(expected);
  box.for_elements([&](u64 to, i64 from) {
    for (u64 i = 0; i < box.element(); ++i) {
      shared[to + i] = from < 0 ? 0 : tensor[static_cast<u64>(from) + i];
    }
  });
  from_bytes(shared, expected);
}

void define_store(const Golden& self, Words in, Expected expected) {
  const Box box = box_of(self);
  const auto* shared = reinterpret_cast<const std::uint8_t*>(in.data());
  std::vector<std::uint8_t> tensor = to_bytes(expected);
  box.for_elements([&](u64 from, i64 to) {
    for (u64 i = 0; to >= 0 && i < box.element(); ++i)
      tensor[static_cast<u64>(to) + i] = shared[from + i];
  });
  from_bytes(tensor, expected);
}

template <typename T, T (*kCombine)(T, T)>
void define_reduce(const Golden& self, Words in, Expected expected) {
  const Box box = box_of(self);
  const auto* shared = reinterpret_cast<const std::uint8_t*>(in.data());
  std::vector<std::uint8_t> tensor = to_bytes(expected);
  box.for_elements([&](u64 from, i64 to) {
    if (to < 0) return;
    T old, value;
    std::memcpy(&old, &tensor[static_cast<u64>(to)], sizeof(T));
    std::memcpy(&value, &shared[from], sizeof(T));
    const T result = kCombine(old, value);
    std::memcpy(&tensor[static_cast<u64>(to)], &result, sizeof(T));
  });
  from_bytes(tensor, expected);
}

std::string coordinates(const std::vector<int>& start) {
  std::string text;
  for (const int at : start) text += fmt::format("{}{}", text.empty() ? "" : ", ", at);
  return "{" + text + "}";
}

// Where a form differs in spelling but not in meaning.
struct Spelling {
  const char* space = ".shared::cluster";
  const char* hint = "";  // ".L2::cache_hint"
};

Golden& add_load(Set& set, const std::string& name, Tensor tensor, std::vector<int> start,
                 Spelling spelling = {}) {
  const Box box{tensor, {start.begin(), start.end()}};
  const u64 bytes = box.bytes();
  const bool hint = *spelling.hint != 0;
  const std::string text =
      bulk_head(bytes, ", .param .align 64 .b8 map[128]") + bulk_wait_head() +
      fmt::format(
          "  mov.b64 m, map;\n  cvta.param.u64 m, m;\n"
          "  @first prefetch.tensormap [m];\n"
          "  createpolicy.fractional.L2::evict_first.b64 policy, 1.0;\n"
          "  @first mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {};\n"
          "  @first cp.async.bulk.tensor.{}d{}.global.tile.mbarrier::complete_tx::bytes{} "
          "[room], [m, {}], [bar]{};\n",
          bytes, tensor.dims.size(), spelling.space, spelling.hint, coordinates(start),
          hint ? ", policy" : "") +
      bulk_wait() + bulk_dump(bytes);
  Golden& golden = set.text(name, text, {1}, {32}, bytes / 8, define_load);
  u64 span = tensor.dims[0] * bytes_of_type(tensor.type);
  for (std::size_t d = 1; d < tensor.dims.size(); ++d) {
    span += (tensor.dims[d] - 1) * tensor.strides[d - 1];
  }
  golden.in = random_bulk_words((span + 7) / 8, bytes + span);
  golden.tensors = {std::move(tensor)};
  golden.facts = std::move(start);
  golden.hopper = true;
  return golden;
}

// A store, or with `operation` (".add" and its like) a reduction, of a box that lies in `in`.
Golden& add_store(Set& set, const std::string& name, Tensor tensor, std::vector<int> start,
                  const char* operation, void (*define)(const Golden&, Words, Expected)) {
  tensor.of_out = true;
  const Box box{tensor, {start.begin(), start.end()}};
  const u64 bytes = box.bytes();
  const bool reduces = *operation != 0;
  const std::string text =
      bulk_head(bytes, ", .param .align 64 .b8 map[128]") + bulk_fill(bytes) +
      fmt::format(
          "  mov.b64 m, map;\n  cvta.param.u64 m, m;\n"
          "  fence.proxy.async.shared::cta;\n  bar.sync 0;\n"
          "  @first cp{}.async.bulk.tensor.{}d.global.shared::cta{}.tile.bulk_group [m, {}], "
          "[room];\n"
          "  @first cp.async.bulk.commit_group;\n  @first cp.async.bulk.wait_group 0;\n"
          "  ret;\n}}\n",
          reduces ? ".reduce" : "", tensor.dims.size(), operation, coordinates(start));
  u64 span = tensor.dims[0] * bytes_of_type(tensor.type);
  for (std::size_t d = 1; d < tensor.dims.size(); ++d) {
    span += (tensor.dims[d] - 1) * tensor.strides[d - 1];
  }
  Golden& golden = set.text(name, text, {1}, {32}, (span + 7) / 8, define);
  golden.in = random_bulk_words(bytes / 8, bytes + span);
  golden.tensors = {std::move(tensor)};
  golden.facts = std::move(start);
  golden.hopper = true;
  return golden;
}

Tensor tensor(int type, std::vector<u64> dims, std::vector<u64> strides, std::vector<u32> box,
              int swizzle = 0) {
  Tensor made;
  made.type = type;
  made.dims = std::move(dims);
  made.strides = std::move(strides);
  made.box = std::move(box);
  made.swizzle = swizzle;
  return made;
}

void add_loads(Set& set) {
  add_load(set, "cp.async.bulk.tensor.1d", tensor(kU32, {100}, {}, {32}), {7});
  add_load(set, "cp.async.bulk.tensor.1d beyond the end", tensor(kU8, {100}, {}, {64}), {60});
  add_load(set, "cp.async.bulk.tensor.2d", tensor(kU64, {20, 9}, {160}, {8, 5}), {3, 2});
  add_load(set, "cp.async.bulk.tensor.3d", tensor(kU8, {64, 7, 5}, {80, 640}, {48, 4, 3}),
           {5, 1, 2});
  add_load(set, "cp.async.bulk.tensor.4d",
           tensor(kF32, {40, 6, 5, 4}, {160, 960, 4800}, {8, 3, 2, 2}), {12, 2, 3, 1});
  add_load(set, "cp.async.bulk.tensor.5d",
           tensor(kF64, {10, 4, 3, 4, 3}, {80, 320, 960, 3840}, {4, 2, 3, 2, 2}), {2, 1, 0, 1, 1});
  // Rows of one token, heads beside each other: the stride of dimension 2 is the smaller one.
  add_load(set, "cp.async.bulk.tensor.4d with strides that do not nest",
           tensor(kBf16, {64, 20, 3, 2}, {384, 128, 7680}, {64, 16, 1, 1}, 3), {0, 4, 1, 1});
  for (const auto& [swizzle, columns] : {std::pair(1, 16u), std::pair(2, 32u), std::pair(3, 64u)}) {
    const std::string name = fmt::format("cp.async.bulk.tensor.2d swizzle {}", 16 << swizzle);
    add_load(set, name, tensor(kBf16, {128, 40}, {256}, {columns, 24}, swizzle), {64, 8});
    add_load(set, name + " over the edges", tensor(kF16, {120, 40}, {256}, {columns, 24}, swizzle),
             {110, 30});
    add_load(set, name + " before the start",
             tensor(kBf16, {120, 40}, {256}, {columns, 24}, swizzle), {-5, -9});
    add_load(set, name + " wholly outside", tensor(kBf16, {120, 40}, {256}, {columns, 24}, swizzle),
             {0, 1000});
  }
  add_load(set, "cp.async.bulk.tensor.3d of bytes, swizzle 128",
           tensor(kU8, {256, 12, 3}, {256, 3072}, {128, 8, 2}, 3), {128, 4, 1});
  add_load(set, "cp.async.bulk.tensor.5d of panels, swizzle 128",
           tensor(kBf16, {64, 24, 2, 2, 2}, {512, 128, 256, 12288}, {64, 8, 2, 1, 1}, 3),
           {0, 16, 0, 1, 1});
  Tensor skipping = tensor(kU32, {32, 30, 8}, {128, 3840}, {16, 12, 5});
  skipping.element_strides = {1, 3, 2};
  add_load(set, "cp.async.bulk.tensor.3d with element strides", skipping, {4, 20, 2});
  add_load(set, "cp.async.bulk.tensor.2d.shared::cta", tensor(kU32, {20, 9}, {80}, {8, 5}), {3, 2},
           {.space = ".shared::cta"});
  add_load(set, "cp.async.bulk.tensor.2d with a cache hint", tensor(kU32, {20, 9}, {80}, {8, 5}),
           {3, 2}, {.hint = ".L2::cache_hint"});
}

template <typename T>
T add(T a, T b) {
  return static_cast<T>(a + b);
}
template <typename T>
T smaller(T a, T b) {
  return a < b ? a : b;
}
u32 both_bits(u32 a, u32 b) { return a ^ b; }
u32 increment(u32 old, u32 limit) { return old >= limit ? 0 : old + 1; }
u16 add_bf16(u16 a, u16 b) { return to_bf16(Bf16{a}.value() + Bf16{b}.value()).bits; }
u16 max_f16(u16 a, u16 b) { return F16{a}.value() > F16{b}.value() ? a : b; }

u64 twice(u32 word) { return word | static_cast<u64>(word) << 32; }

// Finite numbers that are not tiny, whatever 16-bit format they are read in, or as fp32.
void tame(Golden& golden, bool wide) {
  for (u64& word : golden.in) {
    word = wide ? (word & 0x83ffffff83ffffffull) | 0x3c0000003c000000ull
                : (word & 0x83ff83ff83ff83ffull) | 0x3c003c003c003c00ull;
  }
}

void add_stores(Set& set) {
  add_store(set, "cp.async.bulk.tensor.1d store", tensor(kU32, {100}, {}, {32}), {80}, "",
            define_store);
  add_store(set, "cp.async.bulk.tensor.5d store",
            tensor(kF64, {10, 4, 3, 4, 3}, {80, 320, 960, 3840}, {4, 2, 3, 2, 2}), {8, 3, 0, 1, 2},
            "", define_store);
  for (const auto& [swizzle, columns] :
       {std::pair(0, 32u), std::pair(1, 16u), std::pair(2, 32u), std::pair(3, 64u)}) {
    add_store(set, fmt::format("cp.async.bulk.tensor.2d store, swizzle {}", 16 << swizzle),
              tensor(kBf16, {120, 40}, {256}, {columns, 24}, swizzle), {100, 30}, "", define_store);
    add_store(set, fmt::format("cp.async.bulk.tensor.2d store before 0, swizzle {}", 16 << swizzle),
              tensor(kBf16, {120, 40}, {256}, {columns, 24}, swizzle), {-4, -3}, "", define_store);
  }
  const Tensor words = tensor(kU32, {40, 12}, {160}, {32, 8}, 3);
  Tensor of = words;
  add_store(set, "cp.reduce.async.bulk.tensor add u32", of, {20, 6}, ".add",
            define_reduce<u32, add<u32>>);
  add_store(set, "cp.reduce.async.bulk.tensor xor u32", of, {0, 0}, ".xor",
            define_reduce<u32, both_bits>);
  add_store(set, "cp.reduce.async.bulk.tensor inc u32", of, {0, 0}, ".inc",
            define_reduce<u32, increment>);
  of.type = kS32;
  add_store(set, "cp.reduce.async.bulk.tensor min s32", of, {-1, 0}, ".min",
            define_reduce<i32, smaller<i32>>);
  of.type = kF32;
  Golden& floats = add_store(set, "cp.reduce.async.bulk.tensor add f32", of, {20, 6}, ".add",
                             define_reduce<float, add<float>>);
  floats.filler = twice(std::bit_cast<u32>(3.0f));
  tame(floats, true);
  Golden& halves = add_store(set, "cp.reduce.async.bulk.tensor max f16",
                             tensor(kF16, {80, 12}, {160}, {64, 8}, 3), {40, 6}, ".max",
                             define_reduce<u16, max_f16>);
  halves.filler = twice(0x3d003d00);
  tame(halves, false);
  Golden& brains = add_store(set, "cp.reduce.async.bulk.tensor add bf16",
                             tensor(kBf16, {80, 12}, {160}, {64, 8}, 3), {40, 6}, ".add",
                             define_reduce<u16, add_bf16>);
  brains.filler = twice(0x3f803f80);
  tame(brains, false);
}

}  // namespace

void add_tensor(Set& set) {
  add_loads(set);
  add_stores(set);
}

}  // namespace annulus::golden
