#include "attention/kernels/kernel_config.h"
#include "attention/kernels/mma/config.h"
#include "attention/kernels/wgmma/config.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

namespace annulus::attention {
namespace {

constexpr jit::Arch kSm80 = {80, '\0'};
constexpr jit::Arch kSm90a = {90, 'a'};

std::string sentence(const KernelConfig& config, const Dims& dims, jit::Arch arch = kSm80) {
  return why_illegal(config, dims, arch).value_or("legal");
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("every pair of head dims has two tiles on every architecture") {
  for (const Dims& dims : supported_dims()) {
    for (const int number : {80, 86, 89, 90, 100, 120}) {
      std::set<std::pair<int, int>> tiles;
      for (const ShippedConfig& shipped : shipped_configs()) {
        if (shipped.dims.qk != dims.qk || shipped.dims.v != dims.v) continue;
        if (why_illegal(shipped.config, dims, {number, '\0'})) continue;
        if (why_spills(shipped.config, dims, {number, '\0'})) continue;
        tiles.insert({shipped.config.tile_rows, shipped.config.tile_columns});
      }
      CAPTURE(dims.qk);
      CAPTURE(dims.v);
      CAPTURE(number);
      CHECK(tiles.size() >= 2);
    }
  }
}

TEST_CASE("every shipped configuration is legal where it is marked and only there") {
  std::set<std::string> seen;
  for (const ShippedConfig& shipped : shipped_configs()) {
    const std::string name = to_string(shipped.config);
    CAPTURE(name);
    CAPTURE(shipped.dims.qk);
    CHECK(seen.insert(name + std::to_string(shipped.dims.qk) + "/" + std::to_string(shipped.dims.v))
              .second);
    const bool hopper = shipped.reach == Reach::kHopper;
    CHECK(sentence(shipped.config, shipped.dims, kSm90a) == "legal");
    for (const int number : {80, 87, 90, 100}) {
      CHECK((sentence(shipped.config, shipped.dims, {number, '\0'}) == "legal") == !hopper);
    }
    for (const int number : {86, 89}) {
      const bool legal = sentence(shipped.config, shipped.dims, {number, '\0'}) == "legal";
      CHECK(legal == (shipped.reach == Reach::kEvery));
    }
    CHECK(std::ranges::any_of(supported_dims(), [&](const Dims& dims) {
      return dims.qk == shipped.dims.qk && dims.v == shipped.dims.v;
    }));
  }
}

TEST_CASE("a configuration prints itself and reads what it prints") {
  CHECK(to_string(MmaConfig{128, 64, 4, 2, false, 1}) == "mma m128 n64 w4 s2");
  CHECK(to_string(MmaConfig{64, 32, 4, 1, true, 3}) == "mma m64 n32 w4 s1 q x3");
  CHECK(to_string(WgmmaConfig{64, 64, 8, 2, false, 2, 2}.of(wgmma_family)) ==
        "wgmma m64 n64 w8 s2 b2 h2");
  CHECK(to_string(WgmmaConfig{128, 128, 8, 2}.of(wgmma8_family)) == "wgmma8 m128 n128 w8 s2");
  for (const ShippedConfig& shipped : shipped_configs()) {
    const auto parsed = parse_config(to_string(shipped.config));
    REQUIRE(parsed);
    CHECK(*parsed == shipped.config);
  }
  for (const char* text : {"",
                           "mma",
                           "mma m64",
                           "mma m64 n64 w4",
                           "mma m n64 w4 s2",
                           "mma m64 n64 w4 s2 ",
                           "mma m64 n64 w4 s2 y",
                           "mma m64 n64 w4 s2 x",
                           "wgmma m64 n64 w4",
                           "gmma m64 n64 w4 s2",
                           "wgmma m64 n64 w4 s2 x2 c2",
                           "wgmma8",
                           "wgmma8m64 n64 w4 s2",
                           "wgmma8 m64 n64 w4 s2 f x2",
                           "wgmma m64 n64 w4 s2 h2 b2",
                           "wgmma m64 n64 w4 s2 b",
                           "mma m64 n64 w4 s2 x2z",
                           "mma m99999999999 n64 w4 s2",
                           " mma m64 n64 w4 s2",
                           "mma m64 n64 w4 s2 x1 q"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_config(text));
  }
}

TEST_CASE("shared memory is Q and the stages of K and V") {
  CHECK(shared_bytes(MmaConfig{64, 64, 4, 2, false, 1}, {128, 128}) == 80 * 1024);
  CHECK(shared_bytes(MmaConfig{128, 32, 4, 1, false, 1}, {192, 128}) == 2 * (128 * 192 + 32 * 320));
  CHECK(shared_limit({80, '\0'}) == 166912);
  CHECK(shared_limit({86, '\0'}) == 101376);
  CHECK(shared_limit({90, 'a'}) == 232448);
}

TEST_CASE("what is illegal is refused with the reason") {
  const Dims d128 = {128, 128};
  CHECK(sentence(MmaConfig{}, d128) == "legal");
  CHECK(says(sentence(MmaConfig{}, d128, {75, '\0'}), "sm_75 has no cp.async"));
  CHECK(says(sentence(MmaConfig{}, {80, 80}), "head dims 80/80 are not one of"));
  CHECK(says(sentence(MmaConfig{}, {128, 192}), "head dims 128/192 are not one of"));
  CHECK(says(sentence(MmaConfig{.warps = 3}, d128), "3 warps"));
  CHECK(says(sentence(MmaConfig{.tile_rows = 96}, d128), "each warp owns 16 or 32 rows"));
  CHECK(says(sentence(MmaConfig{.tile_rows = 0}, d128), "0 rows"));
  CHECK(says(sentence(MmaConfig{.tile_columns = 72}, d128), "72 columns"));
  CHECK(says(sentence(MmaConfig{.tile_columns = 144}, d128), "144 columns"));
  CHECK(says(sentence(MmaConfig{.tile_columns = 0}, d128), "0 columns"));
  CHECK(says(sentence(MmaConfig{.stages = 0}, d128), "0 stages"));
  CHECK(says(sentence(MmaConfig{.stages = 5}, d128), "5 stages"));
  CHECK(says(sentence(MmaConfig{.resident = 0}, d128), "0 resident"));
  CHECK(says(sentence(MmaConfig{.tile_rows = 128, .tile_columns = 32, .warps = 8}, {96, 96}),
             "256 threads copy 64 rows of head dim 96"));
  CHECK(says(sentence(MmaConfig{.stages = 4}, {256, 256}),
             "294912 bytes of shared memory, but sm_80"));
  CHECK(says(
      sentence(MmaConfig{.tile_rows = 128, .tile_columns = 64, .query_in_registers = true}, d128),
      "256 registers of a thread, and beyond 224"));
}

TEST_CASE("only configurations of mma that ship nowhere may spill") {
  const Dims d128 = {128, 128};
  const MmaConfig wide = {128, 64, 4, 1, false, 2};
  CHECK(sentence(wide, d128) == "legal");
  CHECK(says(why_spills(wide, d128, kSm80).value_or(""), "192 registers of a thread"));
  CHECK_FALSE(why_spills(wide, {64, 64}, kSm80));
  // Two buffers and an architecture 8.x leave more registers for a band.
  CHECK_FALSE(why_spills(MmaConfig{128, 48, 4, 2, false, 2}, d128, kSm80));
  CHECK(why_spills(MmaConfig{128, 48, 4, 1, false, 2}, d128, kSm80));
  CHECK(why_spills(MmaConfig{128, 48, 4, 2, false, 2}, d128, {90, '\0'}));
  CHECK_FALSE(why_spills(MmaConfig{}, d128, kSm80));
  // On a newer architecture it spills earlier.
  CHECK_FALSE(why_spills(MmaConfig{128, 32, 4, 2, false, 2}, d128, {100, '\0'}));
  CHECK(why_spills(MmaConfig{128, 32, 4, 2, false, 2}, d128, {120, '\0'}));
  for (const ShippedConfig& shipped : shipped_configs()) {
    const jit::Arch arch = shipped.reach == Reach::kHopper ? kSm90a : kSm80;
    CHECK_FALSE(why_spills(shipped.config, shipped.dims, arch));
  }
}

TEST_CASE("what the wgmma family does not take is refused with the reason") {
  const Dims d128 = {128, 128};
  const KernelConfig good = WgmmaConfig{128, 128, 8, 2}.of(wgmma_family);
  const auto with = [&](auto change) {
    WgmmaConfig config = wgmma_config(good);
    change(config);
    return sentence(config.of(wgmma_family), d128, kSm90a);
  };
  CHECK(with([](WgmmaConfig&) {}) == "legal");
  CHECK(says(sentence(good, d128, {90, '\0'}), "sm_90 has no wgmma"));
  CHECK(says(sentence(good, d128, {100, 'a'}), "sm_100a has no wgmma"));
  CHECK(says(sentence(good, {32, 32}, kSm90a), "from 64 on"));
  CHECK(says(with([](WgmmaConfig& c) { c.warps = 6; }), "6 warps"));
  CHECK(says(with([](WgmmaConfig& c) { c.tile_rows = 64; }), "64 rows of 1 heads for 8 warps"));
  CHECK(says(with([](WgmmaConfig& c) { c.heads = 3; }), "3 heads for 2 warpgroups"));
  CHECK(says(with([](WgmmaConfig& c) { c.blocks = 3; }), "3 tiles to a step"));
  CHECK(says(with([](WgmmaConfig& c) { c.blocks = 2; }), "2 x 128 columns"));
  CHECK(says(with([](WgmmaConfig& c) { c.tile_columns = 32; }), "1 x 32 columns"));
  CHECK(says(with([](WgmmaConfig& c) { c.tile_columns = 72; }), "1 x 72 columns"));
  CHECK(says(with([](WgmmaConfig& c) { c.stages = 0; }), "0 stages"));
  CHECK(says(with([](WgmmaConfig& c) { c.stages = 4; }), "bytes of shared memory"));
  CHECK(says(with([](WgmmaConfig& c) { c.query_in_registers = true; }), "192 registers"));
  CHECK(says(with([](WgmmaConfig& c) { c.cluster = 3; }), "3 CTAs to a cluster"));
  CHECK(says(sentence(WgmmaConfig{192, 128, 12, 1}.of(wgmma_family), d128, kSm90a), "it spills"));
}

TEST_CASE("8-bit elements take half the room, and V a second time") {
  const Dims d128 = {128, 128}, d256 = {256, 256};
  const KernelConfig good = WgmmaConfig{128, 128, 8, 2}.of(wgmma8_family);
  CHECK(sentence(good, d128, kSm90a) == "legal");
  // Q, two stages of K and of V (V also transposed), the promoted sums in fp32, and barriers. O is
  // staged in the memory of the sums.
  CHECK(shared_bytes(good, d128) == 16384 + 2 * 3 * 16384 + 65536 + 2048 + 8 * 20);
  // Panels of 128 columns, which head dim 64 fills by half; transposed V has 64 rows.
  CHECK(shared_bytes(good, {64, 64}) == 16384 + 2 * (2 * 16384 + 8192) + 32768 + 2048 + 8 * 20);
  CHECK(promote_steps(good, d128) == 4);
  CHECK(promote_steps(good, {192, 128}) == 4);
  CHECK(promote_steps(good, d256) == 0);  // there is no room, so products are made in parts
  CHECK(shared_bytes(WgmmaConfig{128, 64, 8, 2}.of(wgmma8_family), d256) ==
        32768 + 2 * (2 * 16384 + 32768) + 65536 + 8 * 20);
  CHECK(says(sentence(WgmmaConfig{128, 80, 8, 2}.of(wgmma8_family), d128, kSm90a),
             "1 x 80 columns: a product of 8-bit elements has 32 keys"));
  CHECK(says(sentence(good, d128, {90, '\0'}), "sm_90 has no wgmma"));
  CHECK(says(sentence(good, {32, 32}, kSm90a), "from 64 on"));
  // Two tiles per step leave fewer registers.
  CHECK(sentence(WgmmaConfig{64, 96, 4, 2}.of(wgmma8_family), d256, kSm90a) == "legal");
  CHECK(says(sentence(WgmmaConfig{64, 48, 4, 2, false, 2}.of(wgmma8_family), d256, kSm90a),
             "188 registers of a thread, and beyond 180 it spills"));
  CHECK(sentence(WgmmaConfig{128, 64, 8, 2}.of(wgmma8_family), d256, kSm90a) == "legal");
  CHECK(says(sentence(WgmmaConfig{128, 32, 8, 2, false, 2}.of(wgmma8_family), d256, kSm90a),
             "168 registers of a thread, and beyond 156 it spills"));
}

}  // namespace
}  // namespace annulus::attention
