// Several simulated devices in one process: separate memories, events and copies between devices,
// and kernels that may access a peer's memory only after peer access was enabled.

#include <doctest/doctest.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "simulator/driver/driver.h"
#include "simulator/driver/entries/entries.h"
#include "support/kernels.h"

namespace annulus::simulator {
namespace {

using namespace annulus::abi;

// One device with one word of memory and a stream. Its context is current only inside On.
struct Rank {
  const CudaTable& cuda;
  CUdevice device;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction scale = nullptr;
  CUdeviceptr value = 0;
  CUstream stream = nullptr;
  CUevent event = nullptr;

  Rank(const CudaTable& table, int ordinal, std::uint64_t seed, bool checked = true)
      : cuda(table), device(ordinal) {
    REQUIRE(cuda.init(0) == kCudaSuccess);
    REQUIRE(cuda.primary_ctx_retain(&context, device) == kCudaSuccess);
    enter();
    SimulatorOptions options;
    options.checked = checked ? 1 : 0;
    options.streams = 1;
    options.seed = seed;
    REQUIRE(cuda.simulator_set_options(device, &options) == kCudaSuccess);
    REQUIRE(cuda.module_load_data(&module, test::kKernels) == kCudaSuccess);
    REQUIRE(cuda.module_get_function(&scale, module, "scale") == kCudaSuccess);
    REQUIRE(cuda.mem_alloc(&value, 4) == kCudaSuccess);
    REQUIRE(cuda.stream_create(&stream, kStreamNonBlocking) == kCudaSuccess);
    REQUIRE(cuda.event_create(&event, kEventDisableTiming) == kCudaSuccess);
    set(1);
    leave();
  }
  ~Rank() {
    const SimulatorOptions options;
    cuda.simulator_clear_fault(device);
    cuda.simulator_set_options(device, &options);
    cuda.primary_ctx_release(device);
  }
  Rank(const Rank&) = delete;

  void enter() const { REQUIRE(cuda.ctx_push_current(context) == kCudaSuccess); }
  void leave() const {
    CUcontext popped = nullptr;
    REQUIRE(cuda.ctx_pop_current(&popped) == kCudaSuccess);
    REQUIRE(popped == context);
  }
  void set(float number) const { REQUIRE(cuda.memcpy_htod(value, &number, 4) == kCudaSuccess); }
  float get() const {
    float number = 0;
    REQUIRE(cuda.memcpy_dtoh(&number, value, 4) == kCudaSuccess);
    return number;
  }
  void times(float factor, CUdeviceptr pointer) const {
    void* parameters[] = {&pointer, &factor};
    REQUIRE(cuda.launch_kernel(scale, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr) ==
            kCudaSuccess);
  }
  std::string fault() const {
    char text[4096] = {};
    REQUIRE(cuda.simulator_last_fault(device, text, sizeof(text)) == kCudaSuccess);
    return text;
  }
};

struct On {
  const Rank& rank;
  explicit On(const Rank& on) : rank(on) { rank.enter(); }
  ~On() { rank.leave(); }
};

struct Pair {
  CudaTable cuda = make_cuda_table();
  Rank first;
  Rank second;
  explicit Pair(std::uint64_t seed, bool checked = true)
      : first(cuda, 4, seed, checked), second(cuda, 6, seed + 1000, checked) {}
};

constexpr std::uint64_t kSeeds = 40;

TEST_CASE("devices of one model are peers, of two models not, and none its own") {
  const CudaTable cuda = make_cuda_table();
  REQUIRE(cuda.init(0) == kCudaSuccess);
  int count = 0;
  REQUIRE(cuda.device_get_count(&count) == kCudaSuccess);
  CHECK(count == 24);
  int can = -1;
  CHECK(cuda.device_can_access_peer(&can, 0, 7) == kCudaSuccess);
  CHECK(can == 1);
  CHECK(cuda.device_can_access_peer(&can, 7, 8) == kCudaSuccess);
  CHECK(can == 0);
  CHECK(cuda.device_can_access_peer(&can, 9, 9) == kCudaSuccess);
  CHECK(can == 0);
  CHECK(cuda.device_can_access_peer(&can, 0, 24) == kCudaInvalidDevice);
  CHECK(cuda.device_can_access_peer(nullptr, 0, 1) == kCudaInvalidValue);
}

TEST_CASE("peer access is enabled once, disabled once, and not for just anyone") {
  Pair pair(1);
  Rank other_model(pair.cuda, 11, 3);
  const On on(pair.first);
  const CudaTable& cuda = pair.cuda;
  CHECK(cuda.ctx_disable_peer_access(pair.second.context) == kCudaPeerAccessNotEnabled);
  CHECK(cuda.ctx_enable_peer_access(pair.second.context, 1) == kCudaInvalidValue);
  CHECK(cuda.ctx_enable_peer_access(pair.first.context, 0) == kCudaInvalidContext);
  CHECK(cuda.ctx_enable_peer_access(nullptr, 0) == kCudaInvalidContext);
  CHECK(cuda.ctx_enable_peer_access(other_model.context, 0) == kCudaPeerAccessUnsupported);
  CHECK(cuda.ctx_enable_peer_access(pair.second.context, 0) == kCudaSuccess);
  CHECK(cuda.ctx_enable_peer_access(pair.second.context, 0) == kCudaPeerAccessAlreadyEnabled);
  CHECK(cuda.ctx_disable_peer_access(pair.second.context) == kCudaSuccess);
  CHECK(cuda.ctx_disable_peer_access(pair.second.context) == kCudaPeerAccessNotEnabled);
}

TEST_CASE("a kernel reaches a peer's memory where it was allowed to, and faults elsewhere") {
  Pair pair(2);
  const CudaTable& cuda = pair.cuda;
  const On on(pair.first);
  pair.first.times(2, pair.second.value);
  CHECK(cuda.stream_synchronize(pair.first.stream) == kCudaIllegalAddress);
  const std::string fault = pair.first.fault();
  INFO(fault);
  CHECK(fault.find("peer access not enabled") != fault.npos);
  CHECK(fault.find("memory of device 6") != fault.npos);
  REQUIRE(cuda.simulator_clear_fault(pair.first.device) == kCudaSuccess);

  REQUIRE(cuda.ctx_enable_peer_access(pair.second.context, 0) == kCudaSuccess);
  pair.first.times(2, pair.second.value);
  CHECK(cuda.stream_synchronize(pair.first.stream) == kCudaSuccess);
  CHECK(pair.second.get() == 2);  // addresses are unified, so any context may be current
  {
    // Access was enabled in one direction only.
    const On there(pair.second);
    pair.second.times(2, pair.first.value);
    CHECK(cuda.stream_synchronize(pair.second.stream) == kCudaIllegalAddress);
    REQUIRE(cuda.simulator_clear_fault(pair.second.device) == kCudaSuccess);
  }
  // The bounds of the peer's allocations are checked too.
  pair.first.times(2, pair.second.value + 4);
  CHECK(cuda.stream_synchronize(pair.first.stream) == kCudaIllegalAddress);
  CHECK(pair.first.fault().find("out of bounds") != std::string::npos);
  REQUIRE(cuda.simulator_clear_fault(pair.first.device) == kCudaSuccess);
  // A kernel that was launched before access was disabled may still use it.
  pair.first.times(3, pair.second.value);
  REQUIRE(cuda.ctx_disable_peer_access(pair.second.context) == kCudaSuccess);
  CHECK(cuda.stream_synchronize(pair.first.stream) == kCudaSuccess);
  CHECK(pair.second.get() == 6);
}

TEST_CASE("a pool gives other devices access to what is allocated from it") {
  namespace entry = driver::entry;
  Pair pair(3);
  const CudaTable& cuda = pair.cuda;
  driver::CUmemoryPool pool = nullptr;
  CUdeviceptr shared = 0;
  {
    const On there(pair.second);
    REQUIRE(entry::device_get_default_mem_pool(&pool, pair.second.device) == kCudaSuccess);
    REQUIRE(entry::mem_alloc_from_pool_async(&shared, 4, pool, nullptr) == kCudaSuccess);
    const float one = 1;
    REQUIRE(cuda.memcpy_htod(shared, &one, 4) == kCudaSuccess);
  }
  const On on(pair.first);
  const auto times_two = [&](CUdeviceptr pointer) {
    pair.first.times(2, pointer);
    const CUresult code = cuda.stream_synchronize(pair.first.stream);
    REQUIRE(cuda.simulator_clear_fault(pair.first.device) == kCudaSuccess);
    return code;
  };
  const auto give = [&](int flags) {
    const driver::AccessDescription access{{driver::kLocationDevice, pair.first.device}, flags};
    return entry::mem_pool_set_access(pool, &access, 1);
  };
  CHECK(times_two(shared) == kCudaIllegalAddress);
  REQUIRE(give(driver::kAccessReadWrite) == kCudaSuccess);
  CHECK(times_two(shared) == kCudaSuccess);
  CHECK(times_two(pair.second.value) == kCudaIllegalAddress);  // this memory is not from the pool
  REQUIRE(give(driver::kAccessNone) == kCudaSuccess);
  CHECK(times_two(shared) == kCudaIllegalAddress);
}

TEST_CASE("a copy between devices follows its stream, whichever way it is written") {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    for (int way = 0; way < 3; ++way) {
      Pair pair(seed);
      const CudaTable& cuda = pair.cuda;
      const Rank& from = pair.first;
      const Rank& to = pair.second;
      const On on(from);
      from.times(5, from.value);
      if (way == 0) {
        REQUIRE(cuda.memcpy_peer_async(to.value, to.context, from.value, from.context, 4,
                                       from.stream) == kCudaSuccess);
      } else if (way == 1) {
        REQUIRE(cuda.memcpy_dtod_async(to.value, from.value, 4, from.stream) == kCudaSuccess);
      } else {
        // The receiver's stream waits for an event of the sender's device.
        REQUIRE(cuda.event_record(from.event, from.stream) == kCudaSuccess);
        const On there(to);
        REQUIRE(cuda.stream_wait_event(to.stream, from.event, 0) == kCudaSuccess);
        REQUIRE(cuda.memcpy_peer_async(to.value, to.context, from.value, from.context, 4,
                                       to.stream) == kCudaSuccess);
        to.times(2, to.value);
        REQUIRE(cuda.stream_synchronize(to.stream) == kCudaSuccess);
        REQUIRE(to.get() == 10);
        continue;
      }
      REQUIRE(cuda.stream_synchronize(from.stream) == kCudaSuccess);
      REQUIRE(to.get() == 5);
    }
  }
}

TEST_CASE("copies between devices are refused where they cannot be") {
  Pair pair(4);
  const CudaTable& cuda = pair.cuda;
  const Rank& from = pair.first;
  const Rank& to = pair.second;
  const On on(from);
  const auto copy = [&](CUdeviceptr target, CUcontext target_context, CUdeviceptr source,
                        std::size_t bytes, CUstream stream) {
    return cuda.memcpy_peer_async(target, target_context, source, from.context, bytes, stream);
  };
  CHECK(copy(to.value, to.context, from.value, 0, from.stream) == kCudaSuccess);
  CHECK(copy(to.value, to.context, from.value, 5, from.stream) == kCudaInvalidValue);
  CHECK(copy(to.value + 4, to.context, from.value, 4, from.stream) == kCudaInvalidValue);
  CHECK(copy(to.value, from.context, from.value, 4, from.stream) == kCudaInvalidValue);
  CHECK(copy(to.value, nullptr, from.value, 4, from.stream) == kCudaInvalidContext);
  CHECK(copy(to.value, to.context, from.value, 4, to.stream) == kCudaInvalidHandle);
  CHECK(cuda.memcpy_dtod_async(to.value, from.value, 5, from.stream) == kCudaInvalidValue);
  CHECK(cuda.ctx_synchronize() == kCudaSuccess);
}

TEST_CASE("the bytes that nothing wrote stay unwritten on the other device") {
  Pair pair(5);
  const CudaTable& cuda = pair.cuda;
  const On on(pair.first);
  CUdeviceptr fresh = 0;
  REQUIRE(cuda.mem_alloc(&fresh, 4) == kCudaSuccess);
  REQUIRE(cuda.memcpy_peer_async(pair.second.value, pair.second.context, fresh, pair.first.context,
                                 4, pair.first.stream) == kCudaSuccess);
  REQUIRE(cuda.stream_synchronize(pair.first.stream) == kCudaSuccess);
  const On there(pair.second);
  pair.second.times(2, pair.second.value);
  CHECK(cuda.stream_synchronize(pair.second.stream) == kCudaLaunchFailed);
  CHECK(pair.second.fault().find("uninitialised read") != std::string::npos);
}

TEST_CASE("access ends with the context that gave it") {
  const CudaTable cuda = make_cuda_table();
  const Rank first(cuda, 4, 6);
  const On on(first);
  {
    const Rank second(cuda, 6, 7);
    REQUIRE(cuda.ctx_enable_peer_access(second.context, 0) == kCudaSuccess);
    first.times(2, second.value);
    REQUIRE(cuda.ctx_synchronize() == kCudaSuccess);
  }
  const Rank again(cuda, 6, 8);
  first.times(2, again.value);
  CHECK(cuda.ctx_synchronize() == kCudaIllegalAddress);
  REQUIRE(cuda.simulator_clear_fault(first.device) == kCudaSuccess);
  CHECK(cuda.ctx_enable_peer_access(again.context, 0) == kCudaSuccess);
}

TEST_CASE("work on two devices happens in every order that events allow") {
  std::set<float> with;
  std::set<float> without;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    for (const bool wait : {true, false}) {
      Pair pair(seed, wait);  // checked mode would stop a program that does not wait
      const CudaTable& cuda = pair.cuda;
      {
        const On on(pair.first);
        pair.first.times(7, pair.first.value);
        REQUIRE(cuda.event_record(pair.first.event, pair.first.stream) == kCudaSuccess);
      }
      const On there(pair.second);
      if (wait) {
        REQUIRE(cuda.stream_wait_event(pair.second.stream, pair.first.event, 0) == kCudaSuccess);
      }
      REQUIRE(cuda.memcpy_peer_async(pair.second.value, pair.second.context, pair.first.value,
                                     pair.first.context, 4, pair.second.stream) == kCudaSuccess);
      // A wait for one device may also run work of the other device.
      REQUIRE(cuda.stream_synchronize(pair.second.stream) == kCudaSuccess);
      (wait ? with : without).insert(pair.second.get());
    }
  }
  CHECK(with == std::set<float>{7});
  CHECK(without == std::set<float>{1, 7});
}

}  // namespace
}  // namespace annulus::simulator
