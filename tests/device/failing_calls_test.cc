// Every call of a flow may fail. The error must be right, nothing may leak, and the device must
// still work.

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "annulus/types.h"
#include "device/buffer.h"
#include "device/module.h"
#include "device/stream.h"
#include "support/failing_table.h"
#include "support/kernels.h"
#include "support/simulator.h"

namespace annulus::device {
namespace {

using test::FailingTable;

// A whole run, from the driver to the answer.
float whole_flow(const abi::CudaTable& table) {
  const auto driver = std::make_shared<Driver>(table, "the failing simulator");
  const ContextPointer context = Context::retain(driver, 0);
  const Stream stream(context);
  const Event start(context, Event::Timing::kOn);
  const Event end(context, Event::Timing::kOn);
  const ModulePointer module = Module::load(context, test::kKernels);
  const Function scale = module->function("scale");
  scale.allow_dynamic_shared(65536);
  const Buffer value(context, sizeof(float));
  const HostBuffer host(context, sizeof(float));
  const float initial = 5;
  const float factor = 3;
  std::memcpy(host.data(), &initial, sizeof(initial));
  copy_to_device_async(*context, value.address(), host.data(), host.bytes(), stream.handle());
  start.record(stream.handle());
  const abi::CUdeviceptr pointer = value.address();
  launch(scale, {1}, {1}, 65536, stream.handle(), {&pointer, &factor});
  end.record(stream.handle());
  wait(*context, nullptr, end);
  stream.synchronize();
  const double millis = elapsed_millis(*context, start, end);
  CHECK(millis >= 0);
  float result = 0;
  // Copies there and back through a peer.
  const ContextPointer peer = Context::retain(driver, 1);
  if (!enable_peer_access(*context, *peer)) return 0;
  const Buffer there(peer, sizeof(float));
  copy_peer_async(*peer, there.address(), *context, value.address(), sizeof(float), nullptr);
  peer->synchronize();
  copy_to_host(*peer, &result, there.address(), sizeof(result));
  return result;
}

std::size_t free_bytes() {
  const auto driver = std::make_shared<Driver>(test::simulator_table(), "the simulator");
  return Context::retain(driver, 0)->memory().free_bytes;
}

TEST_CASE("the n-th call fails, for every n") {
  const abi::CudaTable table = FailingTable::wrap(test::simulator_table());
  FailingTable::fail_at(-1, 0);
  CHECK(whole_flow(table) == 15);
  const int calls = FailingTable::calls();
  REQUIRE(calls > 40);
  const std::size_t before = free_bytes();
  for (int index = 0; index < calls; ++index) {
    CAPTURE(index);
    FailingTable::fail_at(index, abi::kCudaInvalidHandle);
    bool thrown = false;
    try {
      // A failure in a destructor cannot be reported, and the answer is still right.
      const float result = whole_flow(table);  // not inside CHECK, which would catch the exception
      CHECK(result == 15);
    } catch (const Error& error) {
      thrown = true;
      CHECK(error.code() == ErrorCode::kDevice);
      CHECK(std::strstr(error.what(), "CUDA_ERROR_INVALID_HANDLE") != nullptr);
    }
    CHECK(FailingTable::failed());
    FailingTable::check_heard(thrown);
    FailingTable::fail_at(-1, 0);
  }
  CHECK(free_bytes() == before);
}

TEST_CASE("out of memory is that, wherever it strikes") {
  const abi::CudaTable table = FailingTable::wrap(test::simulator_table());
  FailingTable::fail_at(-1, 0);
  whole_flow(table);
  const int calls = FailingTable::calls();
  for (int index = 0; index < calls; ++index) {
    CAPTURE(index);
    FailingTable::fail_at(index, abi::kCudaOutOfMemory);
    try {
      whole_flow(table);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kOutOfMemory);
    }
  }
  FailingTable::fail_at(-1, 0);
}

}  // namespace
}  // namespace annulus::device
