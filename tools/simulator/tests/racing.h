#ifndef ANNULUS_SIMULATOR_TESTS_RACING_H_
#define ANNULUS_SIMULATOR_TESTS_RACING_H_

// A program of a few streams and buffers on one or two simulated devices, for tests of the search
// for races. Buffers hold 64 floats of value 1.

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "base/json.h"
#include "simulator/driver/driver.h"

namespace annulus::simulator::test {

using namespace annulus::abi;

// scale(p, x)     *p *= x
// copy16(to, from, n)   copies n 16-bit words, one for each thread
constexpr const char* kRacingKernels = R"(
.version 7.0
.target sm_80
.address_size 64

.visible .entry scale(.param .u64 p, .param .f32 x)
{
  .reg .f32 %f<4>;
  .reg .b32 %r<2>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [p];
  ld.param.f32 %f1, [x];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.f32 %f2, [%rd3];
  mul.f32 %f3, %f2, %f1;
  st.global.f32 [%rd3], %f3;
  ret;
}

.visible .entry move(.param .u64 to, .param .u64 from)
{
  .reg .f32 %f<2>;
  .reg .b32 %r<2>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [to];
  ld.param.u64 %rd2, [from];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.f32 %f1, [%rd5];
  st.global.f32 [%rd4], %f1;
  ret;
}

.visible .entry put16(.param .u64 p, .param .u32 stride, .param .u32 value)
{
  .reg .b32 %r<4>;
  .reg .b16 %h<2>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [p];
  ld.param.u32 %r1, [stride];
  ld.param.u32 %r2, [value];
  mov.u32 %r3, %tid.x;
  mul.lo.u32 %r3, %r3, %r1;
  mul.wide.u32 %rd2, %r3, 2;
  add.s64 %rd3, %rd1, %rd2;
  cvt.u16.u32 %h1, %r2;
  st.global.u16 [%rd3], %h1;
  ret;
}

.visible .entry count(.param .u64 p)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [p];
  red.global.add.u32 [%rd1], 1;
  ret;
}
)";

constexpr std::size_t kFloats = 64;
constexpr std::size_t kBytes = 4 * kFloats;

// A device with its streams, buffers and kernels. Its context is current only inside its members.
struct Rank {
  const CudaTable& cuda;
  CUdevice device;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  std::array<CUstream, 3> streams{};
  std::array<CUevent, 4> events{};
  std::array<CUdeviceptr, 4> buffers{};
  std::array<void*, 2> locked{};  // page-locked, kBytes each

  Rank(const CudaTable& table, int ordinal, const SimulatorOptions& options)
      : cuda(table), device(ordinal) {
    REQUIRE(cuda.init(0) == kCudaSuccess);
    REQUIRE(cuda.primary_ctx_retain(&context, device) == kCudaSuccess);
    enter();
    REQUIRE(cuda.simulator_set_options(device, &options) == kCudaSuccess);
    REQUIRE(cuda.module_load_data(&module, kRacingKernels) == kCudaSuccess);
    const std::vector<float> ones(kFloats, 1.0f);
    for (CUdeviceptr& buffer : buffers) {
      REQUIRE(cuda.mem_alloc(&buffer, kBytes) == kCudaSuccess);
      REQUIRE(cuda.memcpy_htod(buffer, ones.data(), kBytes) == kCudaSuccess);
    }
    for (void*& block : locked) {
      REQUIRE(cuda.mem_alloc_host(&block, kBytes) == kCudaSuccess);
      std::memcpy(block, ones.data(), kBytes);
    }
    for (CUstream& stream : streams) {
      REQUIRE(cuda.stream_create(&stream, kStreamNonBlocking) == kCudaSuccess);
    }
    for (CUevent& event : events) {
      REQUIRE(cuda.event_create(&event, kEventDefault) == kCudaSuccess);
    }
    leave();
  }
  ~Rank() {
    const SimulatorOptions options;
    cuda.simulator_clear_fault(device);
    enter();
    for (void* block : locked) cuda.mem_free_host(block);
    leave();
    cuda.simulator_set_options(device, &options);
    cuda.primary_ctx_release(device);
  }
  Rank(const Rank&) = delete;

  void enter() const { REQUIRE(cuda.ctx_push_current(context) == kCudaSuccess); }
  void leave() const {
    CUcontext popped = nullptr;
    REQUIRE(cuda.ctx_pop_current(&popped) == kCudaSuccess);
  }

  // Each of the following functions makes the context current during the call, and returns the
  // driver's code. After a fault has been found, it is the code of the fault.
  template <typename Body>
  CUresult in(Body body) const {
    enter();
    const CUresult code = body();
    leave();
    return code;
  }
  CUresult launch(const char* name, int stream, unsigned threads, void** parameters,
                  unsigned blocks = 1) const {
    return in([&] {
      CUfunction function = nullptr;
      const CUresult code = cuda.module_get_function(&function, module, name);
      if (code != kCudaSuccess) return code;
      return cuda.launch_kernel(function, blocks, 1, 1, threads, 1, 1, 0, at(stream), parameters,
                                nullptr);
    });
  }
  CUstream at(int stream) const {
    return stream < 0 ? nullptr : streams[static_cast<std::size_t>(stream)];
  }
  // Multiplies buffers[to] by x.
  CUresult scale(CUdeviceptr to, float x, int stream) const {
    void* parameters[] = {&to, &x};
    return launch("scale", stream, kFloats, parameters);
  }
  CUresult move(CUdeviceptr to, CUdeviceptr from, int stream) const {
    void* parameters[] = {&to, &from};
    return launch("move", stream, kFloats, parameters);
  }
  CUresult put16(CUdeviceptr to, unsigned stride, unsigned value, int stream) const {
    void* parameters[] = {&to, &stride, &value};
    return launch("put16", stream, 32, parameters);
  }
  CUresult count(CUdeviceptr to, int stream) const {
    void* parameters[] = {&to};
    return launch("count", stream, 32, parameters, 4);
  }
  CUresult fill(CUdeviceptr to, unsigned value, int stream) const {
    return in([&] { return cuda.memset_d32_async(to, value, kFloats, at(stream)); });
  }
  CUresult record(int event, int stream) const {
    return in(
        [&] { return cuda.event_record(events[static_cast<std::size_t>(event)], at(stream)); });
  }
  CUresult wait(int stream, CUevent event) const {
    return in([&] { return cuda.stream_wait_event(at(stream), event, 0); });
  }
  CUresult wait(int stream, int event) const {
    return wait(stream, events[static_cast<std::size_t>(event)]);
  }
  CUresult synchronize(int stream) const {
    return in([&] { return cuda.stream_synchronize(at(stream)); });
  }
  CUresult finish() const {
    return in([&] { return cuda.ctx_synchronize(); });
  }
  float first(CUdeviceptr from) const {
    float value = 0;
    in([&] { return cuda.memcpy_dtoh(&value, from, 4); });
    return value;
  }
  // The JSON of the last fault, or null.
  base::Json fault() const {
    std::vector<char> text(65536);
    REQUIRE(cuda.simulator_last_fault(device, text.data(), text.size()) == kCudaSuccess);
    return text[0] == '\0' ? base::Json() : base::parse_json(text.data(), "the fault");
  }
};

// Two devices with the options of a seed and a mode.
struct Ring {
  CudaTable cuda = make_cuda_table();
  Rank first;
  Rank second;
  // With `later`, work runs when something waits for it, in an order drawn from the seed.
  Ring(std::uint64_t seed, bool later)
      : first(cuda, 3, options(seed, later)), second(cuda, 5, options(seed + 77, later)) {}

  static SimulatorOptions options(std::uint64_t seed, bool later) {
    SimulatorOptions options;
    options.seed = seed;
    options.streams = later ? 1 : 0;
    return options;
  }
  void finish() const {
    first.finish();
    second.finish();
  }
};

}  // namespace annulus::simulator::test

#endif  // ANNULUS_SIMULATOR_TESTS_RACING_H_
