// Bulk tensor copies into shared memory. box.h describes the bytes that they move.

#include <fmt/core.h>

#include <cstring>

#include "golden/box.h"

namespace annulus::golden {

std::string coordinates(const std::vector<int>& start) {
  std::string text;
  for (const int at : start) text += fmt::format("{}{}", text.empty() ? "" : ", ", at);
  return "{" + text + "}";
}

std::vector<std::uint8_t> to_bytes(const Golden& self, Expected expected) {
  const auto size = static_cast<std::size_t>(self.word_bytes);
  std::vector<std::uint8_t> bytes(expected.size() * size);
  for (std::size_t i = 0; i < expected.size(); ++i)
    std::memcpy(&bytes[i * size], &expected[i].bits, size);
  return bytes;
}

void from_bytes(const Golden& self, const std::vector<std::uint8_t>& bytes, Expected expected) {
  const auto size = static_cast<std::size_t>(self.word_bytes);
  for (std::size_t i = 0; i < expected.size(); ++i)
    std::memcpy(&expected[i].bits, &bytes[i * size], size);
}

namespace {

// The value of one byte of an element outside the tensor. The manual does not give the payload of a
// NaN, so this is one of many.
std::uint8_t outside(const Tensor& tensor, u64 byte) {
  if (tensor.fill == 0) return 0;
  return byte + 1 == bytes_of_type(tensor.type) ? 0x7f : 0xff;
}

// Words of the element's own kind accept any NaN.
Kind kind_of(const Tensor& tensor) {
  if (tensor.type == kF64) return Kind::kF64;
  if (tensor.type == kF32) return Kind::kF32;
  return tensor.type == kF16 ? Kind::kF16x2 : Kind::kBf16x2;
}

void define_load(const Golden& self, Words in, Expected expected) {
  const Box box = box_of(self);
  const auto* tensor = reinterpret_cast<const std::uint8_t*>(in.data());
  std::vector<std::uint8_t> shared = to_bytes(self, expected);
  box.for_elements([&](u64 to, i64 from) {
    for (u64 i = 0; i < box.element(); ++i) {
      shared[to + i] = from < 0 ? outside(box.tensor, i) : tensor[static_cast<u64>(from) + i];
    }
  });
  from_bytes(self, shared, expected);
  for (Word& word : expected) {
    if (box.tensor.fill != 0) word.kind = kind_of(box.tensor);
  }
}

// Parts of a form that have several spellings with the same meaning.
struct Spelling {
  const char* space = ".shared::cluster";
  const char* hint = "";  // ".L2::cache_hint"
  bool prefetch = false;  // a prefetch comes first
};

Golden& add_load(Set& set, const std::string& name, Tensor tensor, std::vector<int> start,
                 Spelling spelling = {}) {
  const Box box{tensor, {start.begin(), start.end()}};
  const u64 bytes = box.bytes();
  const bool hint = *spelling.hint != 0;
  std::string prefetch;
  if (spelling.prefetch) {
    prefetch = fmt::format("  @first cp.async.bulk.prefetch.tensor.{}d.L2.global.tile [m, {}];\n",
                           tensor.dims.size(), coordinates(start));
  }
  const std::string text =
      bulk_head(bytes, ", .param .align 64 .b8 map[128]") + bulk_wait_head() +
      fmt::format(
          "  mov.b64 m, map;\n  cvta.param.u64 m, m;\n"
          "  @first prefetch.tensormap [m];\n"
          "  createpolicy.fractional.L2::evict_first.b64 policy, 1.0;\n"
          "{}  @first mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {};\n"
          "  @first cp.async.bulk.tensor.{}d{}.global.tile.mbarrier::complete_tx::bytes{} "
          "[room], [m, {}], [bar]{};\n",
          prefetch, bytes, tensor.dims.size(), spelling.space, spelling.hint, coordinates(start),
          hint ? ", policy" : "") +
      bulk_wait() + bulk_dump(bytes);
  Golden& golden = set.text(name, text, {1}, {32}, bytes / 8, define_load);
  const u64 span = span_of(tensor);
  golden.in = random_bulk_words((span + 7) / 8, bytes + span);
  if (tensor.fill != 0 && tensor.type != kF64) golden.word_bytes = 4;
  golden.tensors = {std::move(tensor)};
  golden.facts = std::move(start);
  golden.hopper = true;
  return golden;
}

void add_loads(Set& set) {
  add_load(set, "cp.async.bulk.tensor.1d", tensor(kU32, {100}, {}, {32}), {8});
  add_load(set, "cp.async.bulk.tensor.1d beyond the end", tensor(kU8, {100}, {}, {64}), {64});
  add_load(set, "cp.async.bulk.tensor.2d", tensor(kU64, {20, 9}, {160}, {8, 5}), {4, 2});
  add_load(set, "cp.async.bulk.tensor.3d", tensor(kU8, {64, 7, 5}, {80, 640}, {48, 4, 3}),
           {32, 1, 2});
  add_load(set, "cp.async.bulk.tensor.4d",
           tensor(kF32, {40, 6, 5, 4}, {160, 960, 4800}, {8, 3, 2, 2}), {12, 2, 3, 1});
  add_load(set, "cp.async.bulk.tensor.5d",
           tensor(kF64, {10, 4, 3, 4, 3}, {80, 320, 960, 3840}, {4, 2, 3, 2, 2}), {2, 1, 0, 1, 1});
  // The heads of a token are adjacent, so the stride of dimension 2 is the smaller one.
  add_load(set, "cp.async.bulk.tensor.4d with strides that do not nest",
           tensor(kBf16, {64, 20, 3, 2}, {384, 128, 7680}, {64, 16, 1, 1}, 3), {0, 4, 1, 1});
  for (const auto& [swizzle, columns] : {std::pair(1, 16u), std::pair(2, 32u), std::pair(3, 64u)}) {
    const std::string name = fmt::format("cp.async.bulk.tensor.2d swizzle {}", 16 << swizzle);
    add_load(set, name, tensor(kBf16, {128, 40}, {256}, {columns, 24}, swizzle), {64, 8});
    add_load(set, name + " over the edges", tensor(kF16, {120, 40}, {256}, {columns, 24}, swizzle),
             {112, 30});
    add_load(set, name + " before the start",
             tensor(kBf16, {120, 40}, {256}, {columns, 24}, swizzle), {-8, -9});
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
  add_load(set, "cp.async.bulk.tensor.2d.shared::cta", tensor(kU32, {20, 9}, {80}, {8, 5}), {4, 2},
           {.space = ".shared::cta"});
  add_load(set, "cp.async.bulk.tensor.2d with a cache hint", tensor(kU32, {20, 9}, {80}, {8, 5}),
           {4, 2}, {.hint = ".L2::cache_hint"});
  add_load(set, "cp.async.bulk.prefetch.tensor.2d", tensor(kU32, {20, 9}, {80}, {8, 5}), {4, 2},
           {.prefetch = true});
}

// Adds every number of dimensions with every swizzle, with boxes over an edge of each dimension.
void add_ranks(Set& set) {
  const std::vector<u64> dims = {100, 9, 5, 4, 3};
  const std::vector<u64> strides = {208, 208 * 9, 208 * 9 * 5, 208 * 9 * 5 * 4};
  const std::vector<int> start = {80, 6, 3, -1, 2};
  for (int swizzle = 0; swizzle <= 3; ++swizzle) {
    const std::vector<u32> box = {swizzle == 0 ? 24 : 8u << swizzle, 4, 3, 2, 2};
    for (std::size_t rank = 1; rank <= 5; ++rank) {
      const auto at = [rank](const auto& all, std::size_t less = 0) {
        return std::vector(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(rank - less));
      };
      add_load(set,
               fmt::format("cp.async.bulk.tensor.{}d swizzle {} over every edge", rank,
                           swizzle == 0 ? 0 : 16 << swizzle),
               tensor(kBf16, at(dims), at(strides, 1), at(box), swizzle), at(start));
    }
  }
}

void add_fills(Set& set) {
  for (const auto& [type, name] : {std::pair(kF16, "f16"), std::pair(kBf16, "bf16"),
                                   std::pair(kF32, "f32"), std::pair(kF64, "f64")}) {
    const u64 size = bytes_of_type(type);
    Tensor filled = tensor(type, {160 / size, 12}, {160}, {static_cast<u32>(128 / size), 16}, 3);
    filled.fill = 1;
    add_load(set, fmt::format("cp.async.bulk.tensor.2d filled with NaN of {}", name), filled,
             {static_cast<int>(80 / size), -2});
  }
}

// Each of two CTAs copies half of a box for both.
void define_multicast(const Golden& self, Words in, Expected expected) {
  const auto* tensor = reinterpret_cast<const std::uint8_t*>(in.data());
  std::vector<std::uint8_t> shared = to_bytes(self, expected);
  const u64 bytes = shared.size() / 4;  // bytes of a box
  for (int half = 0; half < 2; ++half) {
    const Box box{self.tensors[0], {self.facts[0], self.facts[1] + 8 * half}};
    box.for_elements([&](u64 to, i64 from) {
      for (u64 i = 0; i < box.element(); ++i) {
        const std::uint8_t byte = from < 0 ? 0 : tensor[static_cast<u64>(from) + i];
        for (u64 cta = 0; cta < 2; ++cta)
          shared[(cta * 2 + static_cast<u64>(half)) * bytes + to + i] = byte;
      }
    });
  }
  from_bytes(self, shared, expected);
}

void add_multicast(Set& set) {
  const Tensor halves = tensor(kBf16, {128, 40}, {256}, {64, 8}, 3);
  const u64 bytes = 1024;
  std::string text =
      bulk_head(2 * bytes, ", .param .align 64 .b8 map[128]") +
      "  .reg .b16 mask;\n  .reg .b32 place, y;\n  mov.u32 rank, %cluster_ctarank;\n" +
      bulk_wait_head() +
      fmt::format(
          "  mov.b64 m, map;\n  cvta.param.u64 m, m;\n  mov.u16 mask, 3;\n"
          "  @first mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {0};\n"
          "  barrier.cluster.arrive.release.aligned;\n  barrier.cluster.wait.acquire.aligned;\n"
          "  mad.lo.u32 place, rank, {1}, room;\n  mad.lo.u32 y, rank, 8, 28;\n"
          "  @first cp.async.bulk.tensor.2d.shared::cluster.global.tile"
          ".mbarrier::complete_tx::bytes.multicast::cluster [place], [m, {{64, y}}], [bar], "
          "mask;\n",
          2 * bytes, bytes) +
      bulk_wait() + fmt::format("  mad.wide.u32 dst, rank, {}, dst;\n", 2 * bytes) +
      bulk_dump(2 * bytes);
  text.insert(text.find("\n{\n"), "\n.reqnctapercluster 2, 1, 1");
  Golden& golden = set.text("cp.async.bulk.tensor.2d multicast", text, {2}, {32}, 4 * bytes / 8,
                            define_multicast);
  golden.in = random_bulk_words((span_of(halves) + 7) / 8, 31);
  golden.tensors = {halves};
  golden.facts = {64, 28};
  golden.hopper = true;
}

}  // namespace

void add_tensor(Set& set) {
  add_loads(set);
  add_ranks(set);
  add_fills(set);
  add_multicast(set);
  add_tensor_stores(set);
}

}  // namespace annulus::golden
