// cuTensorMapEncodeTiled with arguments that a driver refuses, one at a time, reductions into
// tensors, and launches of clusters.

#include <fmt/core.h>

#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "on_device.h"
#include "simulator/driver/entries/entries.h"

namespace annulus::simulator {
namespace {

// The values of CUtensorMapDataType and of other CUDA enums that these tests need.
enum : int { kU8 = 0, kF32 = 7, kBf16 = 9, kTf32 = 11 };
enum : int { kSwizzleNone = 0, kSwizzle32 = 1, kSwizzle64 = 2, kSwizzle128 = 3 };

struct Arguments {
  int type = kBf16;
  std::uint32_t rank = 3;
  std::uint64_t address = 4096;
  std::vector<std::uint64_t> dims = {128, 100, 4};
  std::vector<std::uint64_t> strides = {256, 25600};
  std::vector<std::uint32_t> box = {64, 16, 1};
  std::vector<std::uint32_t> element_strides = {1, 1, 1};
  int interleave = 0;
  int swizzle = kSwizzle128;
  int promotion = 2;
  int fill = 0;
};

CUresult encode(const CudaTable& cuda, const Arguments& a, CUtensorMap* map) {
  return cuda.tensor_map_encode_tiled(
      map, a.type, a.rank, reinterpret_cast<void*>(a.address), a.dims.data(), a.strides.data(),
      a.box.data(), a.element_strides.data(), a.interleave, a.swizzle, a.promotion, a.fill);
}

// The code for valid arguments after one change.
CUresult changed(const std::function<void(Arguments&)>& change) {
  const OnDevice on;
  Arguments arguments;
  change(arguments);
  CUtensorMap map;
  return encode(on.cuda, arguments, &map);
}

TEST_CASE("tensor maps: what is good is taken") {
  const auto taken = [](const std::function<void(Arguments&)>& change) {
    return changed(change) == kCudaSuccess;
  };
  CHECK(taken([](Arguments&) {}));
  CHECK(taken([](Arguments& a) { a.rank = 1; }));
  CHECK(taken([](Arguments& a) { a.strides = {25600, 256}; }));  // strides need not nest
  CHECK(taken([](Arguments& a) { a.dims[1] = std::uint64_t{1} << 32; }));
  CHECK(taken([](Arguments& a) { a.box[1] = 256; }));
  CHECK(taken([](Arguments& a) { a.element_strides[1] = 8; }));
  CHECK(taken([](Arguments& a) { a.swizzle = kSwizzleNone, a.box[0] = 128; }));
  CHECK(taken([](Arguments& a) { a.type = kU8, a.box[0] = 128; }));
  CHECK(taken([](Arguments& a) { a.type = kTf32, a.box[0] = 32; }));
  CHECK(taken([](Arguments& a) { a.swizzle = kSwizzle32, a.box[0] = 16; }));
  CHECK(taken([](Arguments& a) { a.fill = 1; }));
  CHECK(taken([](Arguments& a) {
    a.rank = 5;
    a.dims = {64, 2, 2, 2, 2};
    a.strides = {128, 256, 512, 1024};
    a.box = {64, 2, 2, 2, 2};
    a.element_strides = {1, 1, 1, 1, 1};
  }));
}

TEST_CASE("tensor maps: a thread needs a context") {
  const OnDevice on;
  CUtensorMap map;
  CHECK(encode(on.cuda, {}, &map) == kCudaSuccess);
  CUresult elsewhere = kCudaSuccess;
  std::thread([&] { elsewhere = encode(on.cuda, {}, &map); }).join();
  CHECK(elsewhere == kCudaInvalidContext);
}

TEST_CASE("tensor maps: what is bad is refused") {
  const auto refused = [](const std::function<void(Arguments&)>& change) {
    return changed(change) == kCudaInvalidValue;
  };
  CHECK(refused([](Arguments& a) { a.type = -1; }));
  CHECK(refused([](Arguments& a) { a.type = 40; }));
  CHECK(refused([](Arguments& a) { a.rank = 0; }));
  CHECK(refused([](Arguments& a) { a.rank = 6; }));
  CHECK(refused([](Arguments& a) { a.address = 0; }));
  CHECK(refused([](Arguments& a) { a.address = 4096 + 8; }));
  CHECK(refused([](Arguments& a) { a.dims[2] = 0; }));
  CHECK(refused([](Arguments& a) { a.dims[0] = (std::uint64_t{1} << 32) + 1; }));
  CHECK(refused([](Arguments& a) { a.strides[0] = 264; }));
  CHECK(refused([](Arguments& a) { a.strides[1] = std::uint64_t{1} << 40; }));
  CHECK(refused([](Arguments& a) { a.box[1] = 0; }));
  CHECK(refused([](Arguments& a) { a.box[1] = 257; }));
  CHECK(refused([](Arguments& a) { a.element_strides[1] = 0; }));
  CHECK(refused([](Arguments& a) { a.element_strides[2] = 9; }));
  CHECK(refused([](Arguments& a) { a.box[0] = 4; }));   // 8 bytes
  CHECK(refused([](Arguments& a) { a.box[0] = 72; }));  // more than the 128 bytes of the swizzle
  CHECK(refused([](Arguments& a) { a.swizzle = kSwizzle64; }));
  CHECK(refused([](Arguments& a) { a.swizzle = kSwizzle32; }));
  CHECK(refused([](Arguments& a) { a.swizzle = 9; }));
  CHECK(refused([](Arguments& a) { a.promotion = 4; }));
  CHECK(refused([](Arguments& a) { a.fill = 2; }));
  CHECK(refused([](Arguments& a) { a.fill = 1, a.type = kU8, a.box[0] = 128; }));
  CHECK(refused([](Arguments& a) { a.interleave = 3; }));
  CHECK(refused([](Arguments& a) { a.interleave = 1, a.rank = 2; }));
  // Slices of 32 bytes are swizzled by 32 bytes, and everything is aligned to 32 bytes.
  const auto sliced = [](Arguments& a) { a.interleave = 2, a.swizzle = kSwizzle32; };
  CHECK(changed(sliced) == kCudaNotSupported);
  CHECK(refused([&](Arguments& a) { sliced(a), a.swizzle = kSwizzle64; }));
  CHECK(refused([&](Arguments& a) { sliced(a), a.address = 4096 + 16; }));
  CHECK(refused([&](Arguments& a) { sliced(a), a.strides[0] = 272; }));
  // Types and swizzles of later devices.
  CHECK(refused([](Arguments& a) { a.type = 13; }));
  CHECK(refused([](Arguments& a) { a.swizzle = 4; }));
}

TEST_CASE("tensor maps: what a driver takes and the simulator does not model has its own code") {
  CHECK(changed([](Arguments& a) { a.interleave = 1; }) == kCudaNotSupported);
}

TEST_CASE("tensor maps: pointers") {
  const OnDevice on;
  const Arguments good;
  CHECK(encode(on.cuda, good, nullptr) == kCudaInvalidValue);
  CUtensorMap maps[2];
  auto* crooked = reinterpret_cast<CUtensorMap*>(reinterpret_cast<char*>(maps) + 16);
  CHECK(encode(on.cuda, good, crooked) == kCudaInvalidValue);
  // Even a tensor of one dimension needs a pointer to strides, although it has no strides.
  CHECK(on.cuda.tensor_map_encode_tiled(maps, kBf16, 1, reinterpret_cast<void*>(4096),
                                        good.dims.data(), nullptr, good.box.data(),
                                        good.element_strides.data(), 0, kSwizzle128, 0,
                                        0) == kCudaInvalidValue);
  CHECK(on.cuda.tensor_map_encode_tiled(maps, kBf16, 3, reinterpret_cast<void*>(4096), nullptr,
                                        good.strides.data(), good.box.data(),
                                        good.element_strides.data(), 0, kSwizzle128, 0,
                                        0) == kCudaInvalidValue);
}

// The elements of CUtensorMapDataType, in its order.
constexpr std::pair<const char*, std::uint32_t> kElements[] = {
    {"u8", 1},  {"u16", 2}, {"u32", 4}, {"s32", 4}, {"u64", 8},
    {"s64", 8}, {"f16", 2}, {"f32", 4}, {"f64", 8}, {"bf16", 2}};

// Combines 16 bytes of zeros with a tensor of this type.
CUresult reduce(const OnDevice& on, const std::string& operation, int type) {
  const std::string text =
      ".version 8.0\n.target sm_90a\n.address_size 64\n"
      ".visible .entry reduce(.param .align 64 .b8 map[128]) {\n"
      "  .shared .align 128 .b8 room[16];\n  .reg .b64 m;\n  .reg .b32 s;\n"
      "  mov.b64 m, map;\n  cvta.param.u64 m, m;\n  mov.u32 s, room;\n"
      "  st.shared.v4.u32 [s], {0, 0, 0, 0};\n  fence.proxy.async.shared::cta;\n"
      "  cp.reduce.async.bulk.tensor.1d.global.shared::cta." +
      operation +
      ".tile.bulk_group [m, {0}], [s];\n"
      "  cp.async.bulk.commit_group;\n  cp.async.bulk.wait_group 0;\n  ret;\n}\n";
  Arguments arguments{.type = type, .rank = 1, .address = on.allocate(16), .swizzle = kSwizzleNone};
  const std::uint64_t zeros[2] = {};
  REQUIRE(on.cuda.memcpy_htod(arguments.address, zeros, 16) == kCudaSuccess);
  arguments.box = {16 / kElements[type].second};
  arguments.dims = {arguments.box[0]};
  CUtensorMap map;
  REQUIRE(encode(on.cuda, arguments, &map) == kCudaSuccess);
  const CUfunction function = on.function(on.load(text.c_str()), "reduce");
  void* parameters[] = {&map};
  const CUresult launched =
      on.cuda.launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr);
  return launched == kCudaSuccess ? on.cuda.stream_synchronize(nullptr) : launched;
}

// The table of PTX ISA 9.0, section 9.7.9.25.5.3, has .b32 and .b64 for the operations on bits. An
// H200 has them for tensors of u32, s32 and u64, and raises an illegal instruction for s64.
TEST_CASE("tensor maps: a reduction has the types of the ISA's table") {
  const std::pair<const char*, std::string> kTable[] = {{"add", " u32 s32 u64 f16 f32 bf16 "},
                                                        {"min", " u32 s32 u64 s64 f16 bf16 "},
                                                        {"max", " u32 s32 u64 s64 f16 bf16 "},
                                                        {"inc", " u32 "},
                                                        {"dec", " u32 "},
                                                        {"and", " u32 s32 u64 "},
                                                        {"or", " u32 s32 u64 "},
                                                        {"xor", " u32 s32 u64 "}};
  for (const auto& [operation, types] : kTable) {
    for (int type = 0; type < 10; ++type) {
      CAPTURE(operation);
      const std::string name = kElements[type].first;
      CAPTURE(name);
      const OnDevice on(first_ordinal("sm_90a"));
      const CUresult result = reduce(on, operation, type);
      if (types.find(" " + name + " ") != std::string::npos) {
        CHECK(result == kCudaSuccess);
        continue;
      }
      CHECK(result == kCudaIllegalInstruction);
      CHECK(on.message().find(fmt::format(".{} of a tensor of {}:", operation, name)) !=
            std::string::npos);
    }
  }
}

constexpr char kClusters[] = R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry count(.param .u64 out) {
  .reg .b64 dst;
  .reg .b32 v;
  ld.param.u64 dst, [out];
  mov.u32 v, %cluster_nctarank;
  st.global.u32 [dst], v;
  ret;
}
.visible .entry pairs(.param .u64 out) .reqnctapercluster 2, 1, 1 {
  .reg .b64 dst;
  .reg .b32 v;
  ld.param.u64 dst, [out];
  mov.u32 v, %cluster_nctarank;
  st.global.u32 [dst], v;
  ret;
}
)";

TEST_CASE("clusters: what the kernel and the launch say of them") {
  const OnDevice on(first_ordinal("sm_90a"));
  const CUmodule module = on.load(kClusters);
  CUdeviceptr out = on.allocate(4);
  // One CTA writes. It may be any CTA, because all clusters have the same size.
  const auto launch = [&](const char* name, unsigned grid, std::uint32_t cluster) {
    driver::entry::LaunchAttribute attribute{};
    attribute.id = 4;
    const std::uint32_t shape[3] = {cluster, 1, 1};
    std::memcpy(attribute.value, shape, sizeof(shape));
    driver::entry::LaunchConfig config{};
    config.grid[0] = grid;
    config.grid[1] = config.grid[2] = 1;
    config.block[0] = config.block[1] = config.block[2] = 1;
    config.attributes = &attribute;
    config.attribute_count = cluster == 0 ? 0 : 1;
    void* parameters[] = {&out};
    return driver::entry::launch_kernel_ex(&config, on.function(module, name), parameters, nullptr);
  };
  SimulatorOptions options;
  options.checked = 0;  // all CTAs write the same word
  REQUIRE(on.cuda.simulator_set_options(on.device, &options) == kCudaSuccess);
  const auto size = [&] {
    std::uint32_t value = 0;
    REQUIRE(on.cuda.memcpy_dtoh(&value, out, 4) == kCudaSuccess);
    return value;
  };
  CHECK(launch("count", 6, 0) == kCudaSuccess);
  CHECK(size() == 1);
  CHECK(launch("count", 6, 3) == kCudaSuccess);
  CHECK(size() == 3);
  CHECK(launch("count", 6, 4) == kCudaInvalidClusterSize);
  CHECK(launch("count", 9, 9) == kCudaInvalidClusterSize);
  CHECK(launch("pairs", 6, 0) == kCudaSuccess);
  CHECK(size() == 2);
  CHECK(launch("pairs", 6, 2) == kCudaSuccess);
  CHECK(launch("pairs", 6, 3) == kCudaInvalidClusterSize);
  CHECK(launch("pairs", 5, 0) == kCudaInvalidClusterSize);
  options.checked = 1;
  on.cuda.simulator_set_options(on.device, &options);
  CHECK(on.attribute(kAttributeClusterLaunch) == 1);
  CHECK(on.attribute(kAttributeTensorMaps) == 1);
}

}  // namespace
}  // namespace annulus::simulator
