// red and atom on the longest vectors, by many threads at the same place.

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/half.h"
#include "on_device.h"

namespace annulus::simulator {
namespace {

constexpr const char* kKernels =
    ".version 8.1\n.target sm_90\n.address_size 64\n"
    ".visible .entry floats(.param .u64 out) {\n"
    "  .reg .b64 %a; .reg .f32 %f<4>;\n"
    "  ld.param.u64 %a, [out];\n"
    "  mov.f32 %f0, 0f3F800000; mov.f32 %f1, 0f40000000; mov.f32 %f2, 0f40400000;\n"
    "  mov.f32 %f3, 0fBF800000;\n"
    "  red.relaxed.gpu.global.add.v4.f32 [%a], {%f0, %f1, %f2, %f3};\n  ret;\n}\n"
    ".visible .entry brains(.param .u64 out) {\n"
    "  .reg .b64 %a; .reg .b16 %h<8>;\n"
    "  ld.param.u64 %a, [out];\n"
    "  mov.b16 %h0, 0x3f80; mov.b16 %h1, 0x4000; mov.b16 %h2, 0xbf80; mov.b16 %h3, 0;\n"
    "  red.global.add.noftz.v8.bf16 [%a], {%h0, %h1, %h2, %h3, %h0, %h1, %h2, %h3};\n"
    "  ret;\n}\n"
    ".visible .entry largest(.param .u64 out) {\n"
    "  .reg .b64 %a; .reg .b32 %r<9>; .reg .b16 %h; .reg .f32 %f;\n"
    "  ld.param.u64 %a, [out];\n"
    "  mov.u32 %r4, %tid.x; cvt.rn.f32.u32 %f, %r4; cvt.rn.f16.f32 %h, %f;\n"
    "  mov.b32 %r0, {%h, %h};\n"
    "  atom.global.max.noftz.v4.f16x2 {%r5, %r6, %r7, %r8}, [%a], {%r0, %r0, %r0, %r0};\n"
    "  ret;\n}\n";

struct Vectors : OnDevice {
  CUmodule module = load(kKernels);
  CUdeviceptr memory = allocate(64);

  Vectors() : OnDevice(first_ordinal("sm_90a")) {
    const std::vector<unsigned char> zeros(64);
    REQUIRE(cuda.memcpy_htod(memory, zeros.data(), zeros.size()) == kCudaSuccess);
  }
  CUresult launch(const char* name, CUdeviceptr at) const {
    void* parameters[] = {&at};
    const CUresult code = cuda.launch_kernel(function(module, name), 4, 1, 1, 64, 1, 1, 0, nullptr,
                                             parameters, nullptr);
    return code == kCudaSuccess ? cuda.ctx_synchronize() : code;
  }
  template <typename T>
  std::vector<T> result(std::size_t count) const {
    std::vector<T> values(count);
    REQUIRE(cuda.memcpy_dtoh(values.data(), memory, count * sizeof(T)) == kCudaSuccess);
    return values;
  }
};

TEST_CASE("sums of 256 threads") {
  const Vectors on;
  CHECK(on.launch("floats", on.memory) == kCudaSuccess);
  CHECK(on.result<float>(4) == std::vector<float>{256, 512, 768, -256});
}

TEST_CASE("sums of bf16, of which each is rounded") {
  const Vectors on;
  CHECK(on.launch("brains", on.memory) == kCudaSuccess);
  const std::vector<std::uint16_t> sums = on.result<std::uint16_t>(8);
  for (std::size_t i = 0; i < 8; ++i) {
    const float wanted[] = {256, 512, -256, 0};
    CHECK(base::bf16_to_float(sums[i]) == wanted[i % 4]);
  }
}

TEST_CASE("the largest of packed halves") {
  const Vectors on;
  CHECK(on.launch("largest", on.memory) == kCudaSuccess);
  for (const std::uint16_t half : on.result<std::uint16_t>(8)) {
    CHECK(base::fp16_to_float(half) == 63);
  }
}

TEST_CASE("a vector is aligned as a whole") {
  const Vectors on;
  CHECK(on.launch("floats", on.memory + 8) == kCudaMisalignedAddress);
}

TEST_CASE("forms that the ISA does not have are refused") {
  const OnDevice on(first_ordinal("sm_90a"));
  for (const char* form :
       {"red.global.max.v2.f32 [%a], {%f, %f};", "red.shared.add.v2.f32 [%a], {%f, %f};",
        "red.global.add.v2.f32 [%a], {%f, %f, %f};", "red.global.add.v2.u32 [%a], {%r, %r};"}) {
    CAPTURE(form);
    const std::string ptx =
        ".version 8.1\n.target sm_90\n.address_size 64\n.visible .entry f(.param .u64 p) {\n"
        ".reg .b64 %a; .reg .f32 %f; .reg .b32 %r; ld.param.u64 %a, [p]; mov.f32 %f, 0f00000000;\n"
        "mov.u32 %r, 0;\n" +
        std::string(form) + " ret; }\n";
    CUmodule module = nullptr;
    CUresult code = on.cuda.module_load_data(&module, ptx.c_str());
    if (code == kCudaSuccess) {  // the instruction is refused when the kernel reaches it
      CUdeviceptr memory = on.allocate(64);
      void* parameters[] = {&memory};
      CHECK(on.cuda.launch_kernel(on.function(module, "f"), 1, 1, 1, 1, 1, 1, 0, nullptr,
                                  parameters, nullptr) == kCudaSuccess);
      code = on.cuda.ctx_synchronize();
      CHECK(on.cuda.simulator_clear_fault(on.device) == kCudaSuccess);
    }
    CHECK(code != kCudaSuccess);
  }
}

}  // namespace
}  // namespace annulus::simulator
