// Bulk tensor copies out of shared memory, and reductions. box.h describes the bytes that they
// move.

#include <fmt/core.h>

#include <cstring>

#include "golden/box.h"
#include "golden/reductions.h"

namespace annulus::golden {
namespace {

void define_store(const Golden& self, Words in, Expected expected) {
  const Box box = box_of(self);
  const auto* shared = reinterpret_cast<const std::uint8_t*>(in.data());
  std::vector<std::uint8_t> tensor = to_bytes(self, expected);
  box.for_elements([&](u64 from, i64 to) {
    for (u64 i = 0; to >= 0 && i < box.element(); ++i)
      tensor[static_cast<u64>(to) + i] = shared[from + i];
  });
  from_bytes(self, tensor, expected);
}

template <typename T, T (*kCombine)(T, T)>
void define_reduce(const Golden& self, Words in, Expected expected) {
  const Box box = box_of(self);
  const auto* shared = reinterpret_cast<const std::uint8_t*>(in.data());
  std::vector<std::uint8_t> tensor = to_bytes(self, expected);
  box.for_elements([&](u64 from, i64 to) {
    if (to < 0) return;
    T old, value;
    std::memcpy(&old, &tensor[static_cast<u64>(to)], sizeof(T));
    std::memcpy(&value, &shared[from], sizeof(T));
    const T result = kCombine(old, value);
    std::memcpy(&tensor[static_cast<u64>(to)], &result, sizeof(T));
  });
  from_bytes(self, tensor, expected);
}

// Adds a store or, with `operation` (".add" or the like), a reduction, of a box in `in`.
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
  const u64 span = span_of(tensor);
  Golden& golden = set.text(name, text, {1}, {32}, (span + 7) / 8, define);
  golden.in = random_bulk_words(bytes / 8, bytes + span);
  golden.tensors = {std::move(tensor)};
  golden.facts = std::move(start);
  golden.hopper = true;
  return golden;
}

void add_plain_stores(Set& set) {
  add_store(set, "cp.async.bulk.tensor.1d store", tensor(kU32, {100}, {}, {32}), {80}, "",
            define_store);
  add_store(set, "cp.async.bulk.tensor.5d store",
            tensor(kF64, {10, 4, 3, 4, 3}, {80, 320, 960, 3840}, {4, 2, 3, 2, 2}), {8, 3, 0, 1, 2},
            "", define_store);
  for (const auto& [swizzle, columns] :
       {std::pair(0, 32u), std::pair(1, 16u), std::pair(2, 32u), std::pair(3, 64u)}) {
    add_store(set, fmt::format("cp.async.bulk.tensor.2d store, swizzle {}", 16 << swizzle),
              tensor(kBf16, {120, 40}, {256}, {columns, 24}, swizzle), {112, 30}, "", define_store);
  }
}

// Adds a reduction over the edges of a tensor with rows of 160 bytes, with a swizzle of 128 bytes.
template <typename T, T (*kCombine)(T, T)>
Golden& add_reduction(Set& set, const char* operation, int type, const char* type_name) {
  const auto size = static_cast<int>(sizeof(T));
  const auto row = static_cast<u64>(160 / size);
  return add_store(set, fmt::format("cp.reduce.async.bulk.tensor {} {}", operation, type_name),
                   tensor(type, {row, 12}, {160}, {static_cast<u32>(128 / size), 8}, 3),
                   {80 / size, 6}, fmt::format(".{}", operation).c_str(),
                   define_reduce<T, kCombine>);
}

template <typename T>
void add_extremes(Set& set, int type, const char* name) {
  add_reduction<T, smaller<T>>(set, "min", type, name);
  add_reduction<T, larger<T>>(set, "max", type, name);
}

template <typename T>
void add_integer_reductions(Set& set, int type, const char* name) {
  add_reduction<T, add<T>>(set, "add", type, name);
  add_extremes<T>(set, type, name);
  add_reduction<T, bit_and<T>>(set, "and", type, name);
  add_reduction<T, bit_or<T>>(set, "or", type, name);
  add_reduction<T, bit_xor<T>>(set, "xor", type, name);
}

template <typename Wrapped>
void add_half_reductions(Set& set, int type, const char* name) {
  constexpr u64 kThree = std::is_same_v<Wrapped, F16> ? 0x4200420042004200 : 0x4040404040404040;
  tame(add_reduction<u16, add_halves<Wrapped>>(set, "add", type, name), kThree, 0x83ff83ff83ff83ff);
  tame(add_reduction<u16, smaller_half<Wrapped>>(set, "min", type, name), kThree,
       0x83ff83ff83ff83ff);
  tame(add_reduction<u16, larger_half<Wrapped>>(set, "max", type, name), kThree,
       0x83ff83ff83ff83ff);
}

void add_reductions(Set& set) {
  add_integer_reductions<u32>(set, kU32, "u32");
  add_integer_reductions<i32>(set, kS32, "s32");
  add_integer_reductions<u64>(set, kU64, "u64");
  add_extremes<i64>(set, kS64, "s64");
  add_reduction<u32, increment<u32>>(set, "inc", kU32, "u32");
  add_reduction<u32, decrement<u32>>(set, "dec", kU32, "u32");
  add_half_reductions<F16>(set, kF16, "f16");
  add_half_reductions<Bf16>(set, kBf16, "bf16");
  tame(add_reduction<float, add<float>>(set, "add", kF32, "f32"), 0x4040000040400000,
       0x83ffffff83ffffff);
}

}  // namespace

void add_tensor_stores(Set& set) {
  add_plain_stores(set);
  add_reductions(set);
}

}  // namespace annulus::golden
