// Tests of stream capture: what is recorded, what is refused, and that a graph can run again.

#include <doctest/doctest.h>

#include <cstring>
#include <initializer_list>

#include "simulator/driver/driver.h"
#include "simulator/driver/entries/entries.h"
#include "simulator/driver/objects/copies.h"
#include "support/kernels.h"

namespace annulus::simulator {
namespace {

using namespace annulus::abi;

struct Capturing {
  CudaTable cuda = make_cuda_table();
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction scale = nullptr;
  CUdeviceptr value = 0;
  CUstream origin = nullptr;
  CUstream other = nullptr;
  CUevent event = nullptr;

  Capturing() {
    REQUIRE(cuda.init(0) == kCudaSuccess);
    REQUIRE(cuda.primary_ctx_retain(&context, 0) == kCudaSuccess);
    REQUIRE(cuda.ctx_push_current(context) == kCudaSuccess);
    REQUIRE(cuda.module_load_data(&module, test::kKernels) == kCudaSuccess);
    REQUIRE(cuda.module_get_function(&scale, module, "scale") == kCudaSuccess);
    REQUIRE(cuda.mem_alloc(&value, 4) == kCudaSuccess);
    REQUIRE(cuda.stream_create(&origin, kStreamNonBlocking) == kCudaSuccess);
    REQUIRE(cuda.stream_create(&other, kStreamNonBlocking) == kCudaSuccess);
    REQUIRE(cuda.event_create(&event, kEventDisableTiming) == kCudaSuccess);
    const float one = 1;
    REQUIRE(cuda.memcpy_htod(value, &one, 4) == kCudaSuccess);
  }
  ~Capturing() {
    CUcontext popped = nullptr;
    cuda.ctx_pop_current(&popped);
    cuda.primary_ctx_release(0);
  }
  CUresult twice(CUstream stream) {
    float two = 2;
    void* parameters[] = {&value, &two};
    return cuda.launch_kernel(scale, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
  }
  float now() {
    float read = 0;
    REQUIRE(cuda.ctx_synchronize() == kCudaSuccess);
    REQUIRE(cuda.memcpy_dtoh(&read, value, 4) == kCudaSuccess);
    return read;
  }
};

TEST_CASE("captured work runs at the replay and not before") {
  Capturing on;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  REQUIRE(on.cuda.stream_begin_capture(on.origin, kCaptureGlobal) == kCudaSuccess);
  CHECK(on.twice(on.origin) == kCudaSuccess);
  CHECK(on.twice(on.origin) == kCudaSuccess);
  REQUIRE(on.cuda.stream_end_capture(on.origin, &graph) == kCudaSuccess);
  CHECK(on.now() == 1);
  REQUIRE(on.cuda.graph_instantiate(&exec, graph, 0) == kCudaSuccess);
  CHECK(on.cuda.graph_destroy(graph) == kCudaSuccess);
  CHECK(on.cuda.graph_launch(exec, on.origin) == kCudaSuccess);
  CHECK(on.cuda.graph_launch(exec, on.other) == kCudaSuccess);
  CHECK(on.cuda.ctx_synchronize() == kCudaSuccess);
  CHECK(on.now() == 16);
  CHECK(on.cuda.graph_exec_destroy(exec) == kCudaSuccess);
  CHECK(on.cuda.graph_exec_destroy(exec) == kCudaInvalidValue);
  CHECK(on.cuda.graph_launch(exec, on.origin) == kCudaInvalidValue);
}

TEST_CASE("another stream joins by an event and must be joined again") {
  Capturing on;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  REQUIRE(on.cuda.stream_begin_capture(on.origin, kCaptureThreadLocal) == kCudaSuccess);
  CHECK(on.cuda.event_record(on.event, on.origin) == kCudaSuccess);
  CHECK(on.cuda.stream_wait_event(on.other, on.event, 0) == kCudaSuccess);
  CHECK(on.twice(on.other) == kCudaSuccess);
  CHECK(on.cuda.event_record(on.event, on.other) == kCudaSuccess);
  CHECK(on.cuda.stream_wait_event(on.origin, on.event, 0) == kCudaSuccess);
  REQUIRE(on.cuda.stream_end_capture(on.origin, &graph) == kCudaSuccess);
  REQUIRE(on.cuda.graph_instantiate(&exec, graph, 0) == kCudaSuccess);
  CHECK(on.cuda.graph_launch(exec, on.origin) == kCudaSuccess);
  CHECK(on.now() == 2);
  CHECK(on.twice(on.other) == kCudaSuccess);  // an ordinary stream again
  CHECK(on.now() == 4);

  REQUIRE(on.cuda.stream_begin_capture(on.origin, kCaptureRelaxed) == kCudaSuccess);
  CHECK(on.cuda.event_record(on.event, on.origin) == kCudaSuccess);
  CHECK(on.cuda.stream_wait_event(on.other, on.event, 0) == kCudaSuccess);
  CHECK(on.twice(on.other) == kCudaSuccess);
  CHECK(on.cuda.stream_end_capture(on.other, &graph) == kCudaCaptureUnmatched);
  CHECK(on.cuda.stream_end_capture(on.origin, &graph) == kCudaCaptureUnjoined);
  CHECK(graph == nullptr);
}

// A graph with a fork, two branches that work on `left` and on `right`, and a join.
CUgraphExec forked(Capturing& on, CUdeviceptr left, CUdeviceptr right) {
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  const auto twice = [&](CUdeviceptr at, CUstream stream) {
    on.value = at;
    REQUIRE(on.twice(stream) == kCudaSuccess);
  };
  REQUIRE(on.cuda.stream_begin_capture(on.origin, kCaptureThreadLocal) == kCudaSuccess);
  twice(left, on.origin);
  REQUIRE(on.cuda.event_record(on.event, on.origin) == kCudaSuccess);
  REQUIRE(on.cuda.stream_wait_event(on.other, on.event, 0) == kCudaSuccess);
  twice(left, on.origin);
  twice(right, on.other);
  REQUIRE(on.cuda.event_record(on.event, on.other) == kCudaSuccess);
  REQUIRE(on.cuda.stream_wait_event(on.origin, on.event, 0) == kCudaSuccess);
  twice(right, on.origin);
  REQUIRE(on.cuda.stream_end_capture(on.origin, &graph) == kCudaSuccess);
  REQUIRE(on.cuda.graph_instantiate(&exec, graph, 0) == kCudaSuccess);
  CHECK(on.cuda.graph_destroy(graph) == kCudaSuccess);
  return exec;
}

TEST_CASE("branches of a graph run in any order, and race where they touch the same bytes") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    for (const bool together : {false, true}) {
      CAPTURE(seed);
      Capturing on;
      SimulatorOptions options;
      options.streams = 1;
      options.seed = seed;
      REQUIRE(on.cuda.simulator_set_options(0, &options) == kCudaSuccess);
      const CUdeviceptr left = on.value;
      CUdeviceptr right = left;
      if (!together) {
        const float one = 1;
        REQUIRE(on.cuda.mem_alloc(&right, 4) == kCudaSuccess);
        REQUIRE(on.cuda.memcpy_htod(right, &one, 4) == kCudaSuccess);
      }
      CUgraphExec exec = forked(on, left, right);
      // Launches of a graph run one after another, whichever streams they are on.
      for (CUstream stream : {on.origin, on.other, on.origin}) {
        on.cuda.graph_launch(exec, stream);
      }
      char text[8192] = {};
      const CUresult code = on.cuda.ctx_synchronize();
      REQUIRE(on.cuda.simulator_last_fault(0, text, sizeof(text)) == kCudaSuccess);
      if (together) {
        CHECK(code == kCudaLaunchFailed);
        CHECK(std::strstr(text, "kernel scale on a graph on stream 1 of device 0") != nullptr);
        REQUIRE(on.cuda.simulator_clear_fault(0) == kCudaSuccess);
      } else {
        INFO(text);
        REQUIRE(code == kCudaSuccess);
        on.value = left;
        CHECK(on.now() == 64);
        on.value = right;
        CHECK(on.now() == 64);
      }
      const SimulatorOptions defaults;
      REQUIRE(on.cuda.simulator_set_options(0, &defaults) == kCudaSuccess);
    }
  }
}

TEST_CASE("what a graph writes is waited for like all else") {
  Capturing on;
  const CUdeviceptr at = on.value;
  CUdeviceptr other = 0;
  REQUIRE(on.cuda.mem_alloc(&other, 4) == kCudaSuccess);
  const float one = 1;
  REQUIRE(on.cuda.memcpy_htod(other, &one, 4) == kCudaSuccess);
  CUgraphExec exec = forked(on, at, other);
  CHECK(on.cuda.graph_launch(exec, on.origin) == kCudaSuccess);
  CHECK(on.cuda.event_record(on.event, on.origin) == kCudaSuccess);
  CHECK(on.cuda.stream_wait_event(on.other, on.event, 0) == kCudaSuccess);
  on.value = at;
  CHECK(on.twice(on.other) == kCudaSuccess);
  CHECK(on.now() == 8);
  CHECK(on.cuda.graph_launch(exec, on.origin) == kCudaSuccess);
  CHECK(on.twice(on.other) == kCudaSuccess);  // this time without a wait for the graph
  CHECK(on.cuda.ctx_synchronize() == kCudaLaunchFailed);
  CHECK(on.cuda.simulator_clear_fault(0) == kCudaSuccess);
}

TEST_CASE("a thread in the relaxed mode may ask and allocate while another one captures") {
  Capturing on;
  CUgraph graph = nullptr;
  CUdeviceptr pointer = 0;
  REQUIRE(on.cuda.event_record(on.event, on.other) == kCudaSuccess);
  REQUIRE(on.cuda.stream_begin_capture(on.origin, kCaptureGlobal) == kCudaSuccess);
  CHECK(on.cuda.event_query(on.event) == kCudaCaptureUnsupported);
  int mode = kCaptureRelaxed;
  REQUIRE(on.cuda.thread_exchange_capture_mode(&mode) == kCudaSuccess);
  CHECK(mode == kCaptureGlobal);  // the mode of before
  CHECK(on.cuda.event_query(on.event) == kCudaSuccess);
  CHECK(on.cuda.mem_alloc(&pointer, 4) == kCudaSuccess);
  REQUIRE(on.cuda.thread_exchange_capture_mode(&mode) == kCudaSuccess);
  CHECK(mode == kCaptureRelaxed);
  CHECK(on.cuda.mem_alloc(&pointer, 4) == kCudaCaptureUnsupported);
  for (int wrong : {-1, 3}) {
    CHECK(on.cuda.thread_exchange_capture_mode(&wrong) == kCudaInvalidValue);
  }
  CHECK(on.cuda.thread_exchange_capture_mode(nullptr) == kCudaInvalidValue);
  REQUIRE(on.cuda.stream_end_capture(on.origin, &graph) == kCudaSuccess);
  CHECK(on.cuda.graph_destroy(graph) == kCudaSuccess);
}

TEST_CASE("calls that wait or allocate are refused during a capture") {
  Capturing on;
  CUgraph graph = nullptr;
  CUdeviceptr pointer = 0;
  REQUIRE(on.cuda.stream_begin_capture(on.origin, kCaptureGlobal) == kCudaSuccess);
  CHECK(on.cuda.mem_alloc(&pointer, 4) == kCudaCaptureUnsupported);
  CHECK(on.cuda.ctx_synchronize() == kCudaCaptureUnsupported);
  float read = 0;
  CHECK(on.cuda.memcpy_dtoh(&read, on.value, 4) == kCudaCaptureUnsupported);
  REQUIRE(on.cuda.stream_end_capture(on.origin, &graph) == kCudaSuccess);
  CHECK(on.cuda.graph_destroy(graph) == kCudaSuccess);
  CHECK(on.cuda.mem_alloc(&pointer, 4) == kCudaSuccess);

  REQUIRE(on.cuda.stream_begin_capture(on.origin, kCaptureRelaxed) == kCudaSuccess);
  CHECK(on.cuda.stream_begin_capture(on.origin, kCaptureRelaxed) == kCudaIllegalState);
  CHECK(on.cuda.stream_synchronize(on.origin) == kCudaCaptureUnsupported);
  CHECK(on.cuda.stream_end_capture(on.origin, &graph) == kCudaCaptureInvalidated);
  CHECK(on.cuda.stream_end_capture(on.origin, &graph) == kCudaIllegalState);
  CHECK(on.cuda.stream_begin_capture(nullptr, kCaptureGlobal) == kCudaCaptureUnsupported);
}

TEST_CASE("a copy that names its contexts cannot be captured, even within one context") {
  Capturing on;
  CUdeviceptr other = 0;
  REQUIRE(on.cuda.mem_alloc(&other, 4) == kCudaSuccess);
  const auto copy = [&](int way) {
    if (way == 0) {
      return on.cuda.memcpy_peer_async(other, on.context, on.value, on.context, 4, on.origin);
    }
    driver::Copy3d asked =
        driver::bytes_copy(other, driver::kMemoryDevice, on.value, driver::kMemoryDevice, 4);
    asked.to_context = asked.from_context = on.context;
    return driver::entry::memcpy_3d_peer_async(&asked, on.origin);
  };
  for (const int way : {0, 1}) {
    CAPTURE(way);
    CUgraph graph = nullptr;
    CHECK(copy(way) == kCudaSuccess);
    REQUIRE(on.cuda.stream_begin_capture(on.origin, kCaptureRelaxed) == kCudaSuccess);
    CHECK(copy(way) == kCudaCaptureUnsupported);
    CHECK(on.cuda.stream_end_capture(on.origin, &graph) == kCudaCaptureInvalidated);
    REQUIRE(on.cuda.stream_begin_capture(on.origin, kCaptureRelaxed) == kCudaSuccess);
    CHECK(on.cuda.memcpy_dtod_async(other, on.value, 4, on.origin) == kCudaSuccess);
    REQUIRE(on.cuda.stream_end_capture(on.origin, &graph) == kCudaSuccess);
    CHECK(on.cuda.graph_destroy(graph) == kCudaSuccess);
  }
}

}  // namespace
}  // namespace annulus::simulator
