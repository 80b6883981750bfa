// Streams as queues: every order that the edges allow happens with some seed, and no other order.
// Programs that lack an edge run in fast mode here, because checked mode stops them (race_test.cc).

#include <doctest/doctest.h>

#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "simulator/driver/driver.h"
#include "support/kernels.h"

namespace annulus::simulator {
namespace {

using namespace annulus::abi;

// A device whose work runs later, in an order drawn from `seed`.
struct Queued {
  CudaTable cuda = make_cuda_table();
  CUdevice device = 2;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction scale = nullptr;
  CUdeviceptr value = 0;
  CUstream first = nullptr;
  CUstream second = nullptr;
  CUevent event = nullptr;
  void* locked = nullptr;  // page-locked host memory

  enum class Mode { kChecked, kFast };

  explicit Queued(std::uint64_t seed, Mode mode = Mode::kChecked,
                  unsigned flags = kStreamNonBlocking) {
    REQUIRE(cuda.init(0) == kCudaSuccess);
    REQUIRE(cuda.primary_ctx_retain(&context, device) == kCudaSuccess);
    REQUIRE(cuda.ctx_push_current(context) == kCudaSuccess);
    SimulatorOptions options;
    options.checked = mode == Mode::kChecked ? 1 : 0;
    options.streams = 1;
    options.seed = seed;
    REQUIRE(cuda.simulator_set_options(device, &options) == kCudaSuccess);
    REQUIRE(cuda.module_load_data(&module, test::kKernels) == kCudaSuccess);
    REQUIRE(cuda.module_get_function(&scale, module, "scale") == kCudaSuccess);
    REQUIRE(cuda.mem_alloc(&value, 4) == kCudaSuccess);
    REQUIRE(cuda.mem_alloc_host(&locked, 64) == kCudaSuccess);
    REQUIRE(cuda.stream_create(&first, flags) == kCudaSuccess);
    REQUIRE(cuda.stream_create(&second, flags) == kCudaSuccess);
    REQUIRE(cuda.event_create(&event, kEventDefault) == kCudaSuccess);
    set(1);
    REQUIRE(cuda.ctx_synchronize() == kCudaSuccess);
  }
  ~Queued() {
    CUcontext popped = nullptr;
    const SimulatorOptions options;
    cuda.simulator_clear_fault(device);
    cuda.simulator_set_options(device, &options);
    cuda.mem_free_host(locked);
    cuda.ctx_pop_current(&popped);
    cuda.primary_ctx_release(device);
  }

  void set(float number) { REQUIRE(cuda.memcpy_htod(value, &number, 4) == kCudaSuccess); }
  float get() {
    float number = 0;
    REQUIRE(cuda.memcpy_dtoh(&number, value, 4) == kCudaSuccess);
    return number;
  }
  void times(float factor, CUstream stream) {
    void* parameters[] = {&value, &factor};
    REQUIRE(cuda.launch_kernel(scale, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr) ==
            kCudaSuccess);
  }
  // Sets value = number by a fill on a stream.
  void fill(float number, CUstream stream) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &number, 4);
    REQUIRE(cuda.memset_d32_async(value, bits, 1, stream) == kCudaSuccess);
  }
};

constexpr int kSeeds = 40;

TEST_CASE("work runs in the order of its stream") {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Queued on(seed);
    on.times(2, on.first);
    on.fill(10, on.first);
    on.times(3, on.first);
    REQUIRE(on.cuda.stream_synchronize(on.first) == kCudaSuccess);
    REQUIRE(on.get() == 30);
  }
}

TEST_CASE("an event orders two streams; without it both orders happen") {
  std::set<float> with;
  std::set<float> without;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    for (const bool wait : {true, false}) {
      Queued on(seed, wait ? Queued::Mode::kChecked : Queued::Mode::kFast);
      on.fill(10, on.first);
      REQUIRE(on.cuda.event_record(on.event, on.first) == kCudaSuccess);
      if (wait) REQUIRE(on.cuda.stream_wait_event(on.second, on.event, 0) == kCudaSuccess);
      on.times(3, on.second);
      REQUIRE(on.cuda.ctx_synchronize() == kCudaSuccess);
      (wait ? with : without).insert(on.get());
    }
  }
  CHECK(with == std::set<float>{30});
  CHECK(without == std::set<float>{10, 30});
}

TEST_CASE("an event stands for its last record before the wait") {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Queued on(seed);
    on.fill(10, on.first);
    REQUIRE(on.cuda.event_record(on.event, on.first) == kCudaSuccess);
    REQUIRE(on.cuda.stream_wait_event(on.second, on.event, 0) == kCudaSuccess);
    on.times(3, on.second);
    REQUIRE(on.cuda.event_record(on.event, on.second) == kCudaSuccess);
    REQUIRE(on.cuda.stream_wait_event(on.first, on.event, 0) == kCudaSuccess);
    on.times(5, on.first);
    REQUIRE(on.cuda.stream_synchronize(on.first) == kCudaSuccess);
    REQUIRE(on.get() == 150);
  }
}

TEST_CASE("the default stream waits for blocking streams, and not for the others") {
  std::set<float> blocking;
  std::set<float> others;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    for (const unsigned flags : {0u, unsigned{kStreamNonBlocking}}) {
      Queued on(seed, flags == 0 ? Queued::Mode::kChecked : Queued::Mode::kFast, flags);
      on.fill(10, on.first);
      on.times(3, nullptr);
      on.times(2, on.second);
      REQUIRE(on.cuda.ctx_synchronize() == kCudaSuccess);
      (flags == 0 ? blocking : others).insert(on.get());
    }
  }
  CHECK(blocking == std::set<float>{60});
  CHECK(others.size() > 1);
}

TEST_CASE("a copy that does not wait for its data is found out") {
  std::set<float> read;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Queued on(seed, Queued::Mode::kFast);
    on.times(3, on.first);
    read.insert(on.get());  // the default stream does not wait for on.first
  }
  CHECK(read == std::set<float>{1, 3});
}

TEST_CASE("page-locked memory that is used too early is found out; pageable memory is safe") {
  std::set<float> locked;
  std::set<float> pageable;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Queued on(seed, Queued::Mode::kFast);
    float number = 5;
    std::memcpy(on.locked, &number, 4);
    REQUIRE(on.cuda.memcpy_htod_async(on.value, on.locked, 4, on.first) == kCudaSuccess);
    if (seed % 2 != 0) on.times(1, on.second);  // another piece of work
    on.cuda.event_query(on.event);
    on.cuda.stream_query(on.second);
    number = 6;
    std::memcpy(on.locked, &number, 4);
    REQUIRE(on.cuda.stream_synchronize(on.first) == kCudaSuccess);
    locked.insert(on.get());
    REQUIRE(on.cuda.memcpy_htod_async(on.value, &number, 4, on.first) == kCudaSuccess);
    number = 7;
    REQUIRE(on.cuda.stream_synchronize(on.first) == kCudaSuccess);
    pageable.insert(on.get());
  }
  CHECK(locked.count(6) == 1);
  CHECK(pageable == std::set<float>{6});
}

TEST_CASE("a program that polls gets on") {
  Queued on(1);
  on.times(2, on.first);
  REQUIRE(on.cuda.event_record(on.event, on.first) == kCudaSuccess);
  float millis = 0;
  CHECK(on.cuda.event_elapsed_time(&millis, on.event, on.event) == kCudaNotReady);
  CHECK(on.cuda.event_query(on.event) == kCudaNotReady);
  int polls = 0;
  while (on.cuda.event_query(on.event) == kCudaNotReady) REQUIRE(++polls < 100);
  CHECK(on.cuda.stream_query(on.first) == kCudaSuccess);
  CHECK(on.cuda.event_elapsed_time(&millis, on.event, on.event) == kCudaSuccess);
  CHECK(on.get() == 2);
}

TEST_CASE("memory and code are not taken away under queued work") {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Queued on(seed, Queued::Mode::kFast);
    on.times(2, on.first);
    CHECK(on.cuda.module_unload(on.module) == kCudaSuccess);
    CHECK(on.get() == 2);
    on.fill(9, on.second);
    CHECK(on.cuda.stream_destroy(on.second) == kCudaSuccess);
    CHECK(on.cuda.mem_free(on.value) == kCudaSuccess);
    CHECK(on.cuda.ctx_synchronize() == kCudaSuccess);
    REQUIRE(on.cuda.mem_alloc(&on.value, 4) == kCudaSuccess);
  }
}

TEST_CASE("a fault drops what was queued behind it") {
  Queued on(3);
  CUfunction stray = nullptr;
  REQUIRE(on.cuda.module_get_function(&stray, on.module, "stray") == kCudaSuccess);
  CUdeviceptr nowhere = 32;
  void* parameters[] = {&nowhere};
  CHECK(on.cuda.launch_kernel(stray, 1, 1, 1, 1, 1, 1, 0, on.first, parameters, nullptr) ==
        kCudaSuccess);
  on.times(2, on.first);
  CHECK(on.cuda.stream_synchronize(on.first) == kCudaIllegalAddress);
  CHECK(on.cuda.simulator_clear_fault(on.device) == kCudaSuccess);
  CHECK(on.cuda.stream_synchronize(on.first) == kCudaSuccess);
  CHECK(on.get() == 1);
}

TEST_CASE("a queue that is too long runs some of it") {
  Queued on(4, Queued::Mode::kFast);
  for (int i = 0; i < 3000; ++i) on.fill(static_cast<float>(i), i % 2 == 0 ? on.first : on.second);
  CHECK(on.cuda.ctx_synchronize() == kCudaSuccess);
  const float last = on.get();
  CHECK((last == 2999 || last == 2998));
}

TEST_CASE("the same seed gives the same order") {
  const auto order = [](std::uint64_t seed) {
    Queued on(seed, Queued::Mode::kFast);
    std::vector<float> seen;
    for (int i = 0; i < 20; ++i) {
      on.fill(1, on.first);
      on.times(3, on.second);
      seen.push_back(on.get());
    }
    return seen;
  };
  CHECK(order(7) == order(7));
  CHECK(order(7) != order(8));
}

TEST_CASE("threads wait for each other's work") {
  Queued on(5);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      REQUIRE(on.cuda.ctx_push_current(on.context) == kCudaSuccess);
      for (int i = 0; i < 5; ++i) {
        on.times(2, on.first);
        REQUIRE(on.cuda.stream_synchronize(on.first) == kCudaSuccess);
      }
      CUcontext popped = nullptr;
      REQUIRE(on.cuda.ctx_pop_current(&popped) == kCudaSuccess);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(on.get() == 1048576);
}

TEST_CASE("an event of the context comes after the work of every stream, and of graphs") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    Queued on(seed);
    const CudaTable& cuda = on.cuda;
    CUdeviceptr other = 0;
    REQUIRE(cuda.mem_alloc(&other, 4) == kCudaSuccess);
    float factor = 3;
    void* parameters[] = {&on.value, &factor};
    void* other_parameters[] = {&other, &factor};
    const auto launch = [&](CUstream stream, void** of) {
      REQUIRE(cuda.launch_kernel(on.scale, 1, 1, 1, 1, 1, 1, 0, stream, of, nullptr) ==
              kCudaSuccess);
    };
    CHECK(cuda.memset_d32_async(other, 0, 1, on.second) == kCudaSuccess);
    launch(on.first, parameters);
    launch(on.second, other_parameters);
    CHECK(cuda.ctx_record_event(on.context, on.event) == kCudaSuccess);
    // Work that is queued later is not included.
    launch(on.first, parameters);
    if (seed % 2 == 0) {
      while (cuda.event_query(on.event) == kCudaNotReady) {
      }
    } else {
      CHECK(cuda.event_synchronize(on.event) == kCudaSuccess);
    }
    // In checked mode, a free that is not ordered with the work would break the context.
    CHECK(cuda.mem_free(other) == kCudaSuccess);
    CHECK(cuda.ctx_synchronize() == kCudaSuccess);
    CHECK(cuda.ctx_record_event(nullptr, on.event) == kCudaInvalidHandle);
    CHECK(cuda.ctx_record_event(on.context, nullptr) == kCudaInvalidHandle);
  }
}

TEST_CASE("an event of the context spoils a capture") {
  Queued on(1);
  const CudaTable& cuda = on.cuda;
  REQUIRE(cuda.stream_begin_capture(on.first, kCaptureRelaxed) == kCudaSuccess);
  CHECK(cuda.ctx_record_event(on.context, on.event) == kCudaCaptureUnsupported);
  CUgraph graph = nullptr;
  CHECK(cuda.stream_end_capture(on.first, &graph) == kCudaCaptureInvalidated);
  CHECK(cuda.ctx_record_event(on.context, on.event) == kCudaSuccess);
}

}  // namespace
}  // namespace annulus::simulator
