// The driver's behaviour if programs are wrong or leave an order open: damaged images, launches
// that never end, copies between devices on the default stream, threads that have ended.

#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

#include "on_device.h"
#include "simulator/driver/entries/entries.h"

namespace annulus::simulator {
namespace {

namespace entry = driver::entry;

// The result of cuModuleLoadDataEx, and its log.
struct Loaded {
  CUresult code = kCudaSuccess;
  std::string log;
};
Loaded load(const void* image) {
  char log[512] = {};
  int names[] = {driver::kJitErrorLog, driver::kJitErrorLogBytes};
  void* values[] = {log, reinterpret_cast<void*>(sizeof(log))};
  CUmodule module = nullptr;
  const CUresult code = entry::module_load_data_ex(&module, image, 2, names, values);
  return {code, log};
}

TEST_CASE("damaged images are refused with CUDA's codes, and the log says why") {
  const OnDevice on;
  const std::string start = ".version 8.0\n.target sm_80\n.address_size 64\n";
  struct Case {
    const char* what;
    std::string image;
    CUresult code;
    const char* log;
  };
  const Case cases[] = {
      {"nothing", "", kCudaInvalidImage, ".version"},
      {"a text", "once upon a time", kCudaInvalidImage, ".version"},
      {"no target", ".version 8.0\n", kCudaInvalidPtx, ".target"},
      {"a later version", ".version 12.3\n.target sm_80\n", driver::kCudaUnsupportedPtxVersion,
       "12.3"},
      {"another architecture", ".version 8.0\n.target sm_100\n", kCudaNoBinaryForGpu, "sm_100"},
      {"cut off", start + ".visible .entry f() { .reg .b32 %r", kCudaInvalidPtx, "4"},
      {"an unknown register", start + ".visible .entry f() { mov.u32 %r1, 0; }", kCudaInvalidPtx,
       "%r1"},
      {"a cubin",
       "\x7f"
       "ELF\x02\x01\x01",
       kCudaNoBinaryForGpu, "cubin"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.what);
    const Loaded loaded = load(one.image.c_str());
    CHECK(loaded.code == one.code);
    CHECK(loaded.log.find(one.log) != std::string::npos);
  }
  // A fat binary whose only entry has a size of more bytes than there are. Its header: magic,
  // version 1, 16 bytes; 64 bytes of entries. Its entry: kind 1, a header of 64 bytes, and 2^20
  // bytes of payload.
  std::vector<std::uint64_t> damaged(32);
  damaged[0] = 0x00100001ba55ed50ull;
  damaged[1] = 64;
  damaged[2] = 0x0000004000000001ull;
  damaged[3] = 1u << 20;
  const Loaded loaded = load(damaged.data());
  CHECK(loaded.code == kCudaInvalidImage);
  CHECK(loaded.log.find("damaged") != std::string::npos);
}

SimulatorOptions with_limit(std::uint32_t millions) {
  SimulatorOptions options;
  options.limit = millions;
  return options;
}

constexpr const char* kSpins =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry spins(.param .u64 flag) {\n"
    "  .reg .b32 %r<4>; .reg .b64 %a; .reg .pred %p;\n"
    "  mov.u32 %r1, 0; mov.u32 %r2, %tid.x; setp.lt.u32 %p, %r2, 32;\n"
    "  @%p bra again;\n"
    "  bar.sync 0;\n  ret;\n"
    "again: add.u32 %r1, %r1, 1;\n  bra again;\n}\n"
    ".visible .entry waits(.param .u64 flag) {\n"
    "  .reg .b32 %r<4>; .reg .b64 %a; .reg .pred %p;\n"
    "  ld.param.u64 %a, [flag]; mov.u32 %r1, 0;\n"
    "again: add.u32 %r1, %r1, 1; ld.acquire.gpu.global.u32 %r2, [%a];\n"
    "  setp.eq.u32 %p, %r2, 0; @%p bra again;\n  ret;\n}\n";

TEST_CASE("a limit ends a kernel that goes round for ever, and tells who waits for what") {
  const OnDevice on;
  const CUmodule module = on.load(kSpins);
  const CUdeviceptr flag = on.allocate(4);
  on.write(flag, 0);
  CUdeviceptr argument = flag;
  void* parameters[] = {&argument};
  SimulatorOptions before;
  REQUIRE(on.cuda.simulator_get_options(on.device, &before) == kCudaSuccess);
  for (const std::uint32_t checked : {0u, 1u}) {
    SimulatorOptions options = with_limit(1);
    options.checked = checked;
    REQUIRE(on.cuda.simulator_set_options(on.device, &options) == kCudaSuccess);
    CHECK(on.cuda.launch_kernel(on.function(module, "spins"), 1, 1, 1, 64, 1, 1, 0, nullptr,
                                parameters, nullptr) == kCudaSuccess);
    CHECK(on.cuda.ctx_synchronize() == kCudaLaunchTimeout);
    CHECK(on.message().find("\"timeout\"") != std::string::npos);
    CHECK(on.message().find("warp 0 runs at PTX line 1") != std::string::npos);
    CHECK(on.message().find("barrier 0 has 32 of") != std::string::npos);
    CHECK(on.cuda.simulator_clear_fault(on.device) == kCudaSuccess);
    // Co-resident blocks that count their rounds while they wait for a flag that is never set.
    CHECK(on.cuda.launch_kernel(on.function(module, "waits"), 4, 1, 1, 32, 1, 1, 0, nullptr,
                                parameters, nullptr) == kCudaSuccess);
    CHECK(on.cuda.ctx_synchronize() == kCudaLaunchTimeout);
    CHECK(on.message().find("PTX line 1") != std::string::npos);
    CHECK(on.cuda.simulator_clear_fault(on.device) == kCudaSuccess);
  }
  CHECK(on.cuda.simulator_set_options(on.device, &before) == kCudaSuccess);
}

// Both devices delay their work, so only the rule of the default stream orders it.
TEST_CASE("a copy between devices on the default stream comes after the work of both") {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const OnDevice second(1);
    const OnDevice first(0);
    SimulatorOptions late;
    late.streams = 1;
    late.seed = seed;
    REQUIRE(first.cuda.simulator_set_options(0, &late) == kCudaSuccess);
    REQUIRE(first.cuda.simulator_set_options(1, &late) == kCudaSuccess);
    const CudaTable& cuda = first.cuda;
    const CUdeviceptr from = first.allocate(4);
    REQUIRE(cuda.ctx_push_current(second.context) == kCudaSuccess);
    const CUdeviceptr to = second.allocate(4);
    CUstream stream = nullptr;
    REQUIRE(cuda.stream_create(&stream, kStreamNonBlocking) == kCudaSuccess);
    CHECK(cuda.memset_d32_async(to, 1, 1, stream) == kCudaSuccess);
    CUcontext popped = nullptr;
    REQUIRE(cuda.ctx_pop_current(&popped) == kCudaSuccess);
    CUstream other = nullptr;
    REQUIRE(cuda.stream_create(&other, kStreamNonBlocking) == kCudaSuccess);
    CHECK(cuda.memset_d32_async(from, 7, 1, other) == kCudaSuccess);
    CHECK(entry::memcpy_any_async(to, from, 4, nullptr) == kCudaSuccess);
    unsigned value = 0;
    CHECK(entry::memcpy_any(reinterpret_cast<CUdeviceptr>(&value), to, 4) == kCudaSuccess);
    CHECK(value == 7);
    const SimulatorOptions plain;
    REQUIRE(cuda.simulator_set_options(0, &plain) == kCudaSuccess);
    REQUIRE(cuda.simulator_set_options(1, &plain) == kCudaSuccess);
  }
}

TEST_CASE("work of a thread that is gone runs all the same") {
  const OnDevice on;
  SimulatorOptions late;
  late.streams = 1;
  REQUIRE(on.cuda.simulator_set_options(on.device, &late) == kCudaSuccess);
  const CUfunction scale = on.function(on.load(), "scale");
  const CUdeviceptr memory = on.allocate(4);
  on.write(memory, 3);
  std::thread([&] {
    CHECK(on.cuda.ctx_push_current(on.context) == kCudaSuccess);
    CUstream stream = nullptr;
    CHECK(on.cuda.stream_create(&stream, 0) == kCudaSuccess);
    CHECK(on.scale(scale, memory, 2, stream) == kCudaSuccess);
  }).join();
  CHECK(on.cuda.ctx_synchronize() == kCudaSuccess);
  CHECK(on.read(memory) == 6);
  const SimulatorOptions plain;
  REQUIRE(on.cuda.simulator_set_options(on.device, &plain) == kCudaSuccess);
}

}  // namespace
}  // namespace annulus::simulator
