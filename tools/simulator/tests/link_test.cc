// Links of PTX, and queries about contexts, streams and occupancy.

#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "on_device.h"
#include "simulator/driver/entries/entries.h"

namespace annulus::simulator {
namespace {

namespace entry = driver::entry;
using driver::CUlinkState;

const std::string kHeader = ".version 8.0\n.target sm_80\n.address_size 64\n";

TEST_CASE("what one text declares and another defines is one module") {
  const OnDevice on;
  const std::string caller =
      kHeader +
      ".extern .func (.param .b32 r) twice(.param .b32 x);\n"
      ".visible .entry f(.param .u64 out) {\n  .reg .b64 %a; .reg .b32 %r;\n"
      "  ld.param.u64 %a, [out];\n  {\n  .param .b32 x; .param .b32 r;\n  st.param.b32 [x], 21;\n"
      "  call (r), twice, (x);\n  ld.param.b32 %r, [r];\n  }\n  st.global.u32 [%a], %r;\n  "
      "ret;\n}\n";
  const std::string callee = kHeader +
                             ".visible .func (.param .b32 r) twice(.param .b32 x) {\n"
                             "  .reg .b32 %r;\n  ld.param.b32 %r, [x];\n  add.u32 %r, %r, %r;\n"
                             "  st.param.b32 [r], %r;\n  ret;\n}\n";
  CUlinkState link = nullptr;
  char log[256] = {};
  int names[] = {driver::kJitErrorLog, driver::kJitErrorLogBytes};
  void* values[] = {log, reinterpret_cast<void*>(sizeof(log))};
  REQUIRE(entry::link_create(2, names, values, &link) == kCudaSuccess);
  const auto add = [&](const std::string& text, int type = driver::kLinkPtx) {
    return entry::link_add_data(link, type, const_cast<char*>(text.c_str()), text.size() + 1,
                                "name", 0, nullptr, nullptr);
  };
  CHECK(add("\x7f"
            "ELF",
            driver::kLinkCubin) == kCudaNoBinaryForGpu);
  CHECK(std::strstr(log, "compiled code") != nullptr);
  CHECK(add(caller, 9) == kCudaInvalidValue);
  CHECK(add(caller) == kCudaSuccess);
  CHECK(add(callee) == kCudaSuccess);
  void* image = nullptr;
  std::size_t bytes = 0;
  CHECK(entry::link_complete(link, &image, &bytes) == kCudaSuccess);
  CHECK(bytes == std::strlen(static_cast<const char*>(image)) + 1);
  const CUmodule module = on.load(static_cast<const char*>(image));
  CHECK(entry::link_destroy(link) == kCudaSuccess);
  CHECK(entry::link_destroy(link) == kCudaInvalidHandle);
  CUdeviceptr memory = on.allocate(4);
  void* parameters[] = {&memory};
  CHECK(on.cuda.launch_kernel(on.function(module, "f"), 1, 1, 1, 1, 1, 1, 0, nullptr, parameters,
                              nullptr) == kCudaSuccess);
  unsigned value = 0;
  CHECK(on.cuda.memcpy_dtoh(&value, memory, 4) == kCudaSuccess);
  CHECK(value == 42);
}

TEST_CASE("a link of wrong PTX says so") {
  const OnDevice on;
  CUlinkState link = nullptr;
  REQUIRE(entry::link_create(0, nullptr, nullptr, &link) == kCudaSuccess);
  void* image = nullptr;
  CHECK(entry::link_complete(link, &image, nullptr) == kCudaInvalidValue);
  std::string wrong = kHeader + ".visible .entry f( {";
  CHECK(entry::link_add_data(link, driver::kLinkPtx, wrong.data(), wrong.size(), nullptr, 0,
                             nullptr, nullptr) == kCudaSuccess);
  CHECK(entry::link_complete(link, &image, nullptr) == kCudaInvalidPtx);
  CHECK(entry::link_add_file(link, driver::kLinkPtx, "/no/such/file", 0, nullptr, nullptr) ==
        kCudaFileNotFound);
  CHECK(entry::link_destroy(link) == kCudaSuccess);
}

TEST_CASE("shapes are chosen by what fits") {
  const OnDevice on;
  const CUfunction scale = on.function(on.load(), "scale");
  int grid = 0;
  int block = 0;
  CHECK(entry::occupancy_max_potential_block_size(&grid, &block, scale, nullptr, 0, 0) ==
        kCudaSuccess);
  CHECK(block == 1024);
  CHECK(grid == 2 * 108);
  const auto all_of_it = [](int) -> std::size_t { return 40000; };
  CHECK(entry::occupancy_max_potential_block_size(&grid, &block, scale, all_of_it, 0, 100) ==
        kCudaSuccess);
  CHECK(block == 100);
  CHECK(grid == 4 * 108);  // 167936 bytes of shared memory, 41024 each
  std::size_t bytes = 0;
  CHECK(entry::occupancy_available_dynamic_shared(&bytes, scale, 2, 64) == kCudaSuccess);
  CHECK(bytes > 80000);
  CHECK(bytes < 84000);
  CHECK(entry::occupancy_available_dynamic_shared(&bytes, scale, 0, 64) == kCudaInvalidValue);
}

TEST_CASE("a launch whose shape and parameters were set on the function") {
  const OnDevice on;
  const CUfunction scale = on.function(on.load(), "scale");
  CUdeviceptr memory = on.allocate(4);
  on.write(memory, 3);
  CHECK(entry::func_set_block_shape(scale, 1, 1, 1) == kCudaSuccess);
  CHECK(entry::func_set_block_shape(scale, 0, 1, 1) == kCudaInvalidValue);
  CHECK(entry::func_set_shared_size(scale, 64) == kCudaSuccess);
  CHECK(entry::launch_grid(scale, 1, 1) == kCudaInvalidValue);  // it has no parameters yet
  CHECK(entry::param_setv(scale, 0, &memory, sizeof memory) == kCudaSuccess);
  CHECK(entry::param_setf(scale, 8, 2) == kCudaSuccess);
  CHECK(entry::param_set_size(scale, 12) == kCudaSuccess);
  CHECK(entry::param_seti(scale, 4096, 2) == kCudaInvalidValue);
  CHECK(entry::launch_grid(scale, 1, 1) == kCudaSuccess);
  CHECK(entry::launch(scale) == kCudaSuccess);
  CHECK(on.read(memory) == 12);
}

TEST_CASE("contexts and streams have numbers, flags and attributes") {
  const OnDevice on;
  CUcontext context = nullptr;
  REQUIRE(entry::ctx_create(&context, 4, on.device) == kCudaSuccess);
  unsigned flags = 0;
  CHECK(entry::ctx_get_flags(&flags) == kCudaSuccess);
  CHECK(flags == 4);
  unsigned long long one = 0;
  unsigned long long two = 0;
  CHECK(entry::ctx_get_id(nullptr, &one) == kCudaSuccess);
  CHECK(entry::ctx_get_id(on.context, &two) == kCudaSuccess);
  CHECK(one != two);
  CUstream stream = nullptr;
  REQUIRE(on.cuda.stream_create(&stream, 0) == kCudaSuccess);
  char set[64] = {1, 2, 3};
  char got[64] = {};
  CHECK(entry::stream_set_attribute(stream, 3, set) == kCudaSuccess);
  CHECK(entry::stream_copy_attributes(nullptr, stream) == kCudaSuccess);
  CHECK(entry::stream_get_attribute(nullptr, 3, got) == kCudaSuccess);
  CHECK(std::memcmp(set, got, sizeof set) == 0);
  int called = 0;
  const auto callback = [](CUstream, CUresult code, void* data) {
    *static_cast<int*>(data) += code == kCudaSuccess ? 1 : 100;
  };
  CHECK(entry::stream_add_callback(stream, callback, &called, 0) == kCudaSuccess);
  CHECK(on.cuda.stream_synchronize(stream) == kCudaSuccess);
  CHECK(called == 1);
  CUcontext attached = nullptr;
  CHECK(entry::ctx_attach(&attached, 0) == kCudaSuccess);
  CHECK(attached == context);
  CHECK(entry::ctx_detach(context) == kCudaSuccess);
  CHECK(entry::ctx_detach(context) == kCudaSuccess);
  CHECK(entry::ctx_detach(context) == kCudaInvalidContext);
}

}  // namespace
}  // namespace annulus::simulator
