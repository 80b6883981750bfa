// Two devices of one machine: copies between them, events across them, and access to a peer's
// memory.

#include <doctest/doctest.h>

#include <optional>
#include <vector>

#include "annulus/types.h"
#include "device/buffer.h"
#include "device/module.h"
#include "device/stream.h"
#include "support/context.h"
#include "support/kernels.h"

namespace annulus::device {
namespace {

struct Two {
  ContextPointer first;
  ContextPointer second;
};

// Returns nothing if the machine has only one GPU.
std::optional<Two> open_two() {
  const ContextPointer first = test::open_context();
  if (test::on_simulator()) {
    const ContextPointer second =
        Context::retain(test::simulator_driver(), first->info().ordinal + 1);
    return Two{first, second};
  }
  if (first->driver().device_count() < 2) return std::nullopt;
  return Two{first, test::open_context(first->info().ordinal == 0 ? "cuda:1" : "cuda:0")};
}

float read(const Context& context, abi::CUdeviceptr from) {
  float value = 0;
  copy_to_host(context, &value, from, sizeof(value));
  return value;
}

TEST_CASE("a receiver copies behind an event of the sender, and the sender reuses behind it") {
  const auto two = open_two();
  if (!two) return;
  const auto& [from, to] = *two;
  const Stream sender(from);
  const Stream receiver(to);
  const Event ready(from);
  const Event taken(to);
  const std::vector<float> one = {1, 10};
  const Buffer source = upload<float>(from, one);
  const Buffer target(to, source.bytes());
  const ModulePointer module = Module::load(from, test::kKernels);
  const Function scale = module->function("scale");
  const auto times = [&](float factor) {
    const abi::CUdeviceptr pointer = source.address();
    launch(scale, {1}, {1}, 0, sender.handle(), {&pointer, &factor});
  };
  times(3);
  ready.record(sender.handle());
  wait(*to, receiver.handle(), ready);
  copy_peer_async(*to, target.address(), *from, source.address(), target.bytes(),
                  receiver.handle());
  taken.record(receiver.handle());
  wait(*from, sender.handle(), taken);
  times(5);
  sender.synchronize();
  receiver.synchronize();
  CHECK(read(*to, target.address()) == 3);
  CHECK(read(*to, target.address() + 4) == 10);
  CHECK(read(*from, source.address()) == 15);
  copy_peer_async(*to, 0, *from, 0, 0, receiver.handle());  // no bytes, nothing to do
}

TEST_CASE("a copy within one device is a peer copy like any other") {
  const ContextPointer context = test::open_context();
  const Stream stream(context);
  const std::vector<float> values = {4, 5};
  const Buffer source = upload<float>(context, values);
  const Buffer target(context, source.bytes());
  copy_peer_async(*context, target.address(), *context, source.address(), 8, stream.handle());
  stream.synchronize();
  CHECK(read(*context, target.address() + 4) == 5);
  CHECK(enable_peer_access(*context, *context));
}

TEST_CASE("copies within a device and between devices can be captured") {
  const auto two = open_two();
  if (!two) return;
  const auto& [from, to] = *two;
  if (!enable_peer_access(*to, *from)) return;
  const abi::CudaTable& cuda = to->table();
  const std::vector<float> values = {4, 5};
  const Buffer source = upload<float>(from, values);
  const Buffer first(to, source.bytes());
  const Buffer second(to, source.bytes());
  const Stream stream(to);
  const ContextScope scope(*to);
  abi::CUgraph graph = nullptr;
  abi::CUgraphExec exec = nullptr;
  REQUIRE(cuda.stream_begin_capture(stream.handle(), abi::kCaptureGlobal) == abi::kCudaSuccess);
  copy_peer_async(*to, first.address(), *from, source.address(), 8, stream.handle());
  copy_peer_async(*to, second.address(), *to, first.address(), 8, stream.handle());
  REQUIRE(cuda.stream_end_capture(stream.handle(), &graph) == abi::kCudaSuccess);
  REQUIRE(cuda.graph_instantiate(&exec, graph, 0) == abi::kCudaSuccess);
  REQUIRE(cuda.graph_launch(exec, stream.handle()) == abi::kCudaSuccess);
  stream.synchronize();
  CHECK(read(*to, second.address() + 4) == 5);
  CHECK(cuda.graph_exec_destroy(exec) == abi::kCudaSuccess);
  CHECK(cuda.graph_destroy(graph) == abi::kCudaSuccess);
}

TEST_CASE("a kernel writes to a peer that it may access") {
  const auto two = open_two();
  if (!two) return;
  const auto& [from, to] = *two;
  if (!enable_peer_access(*from, *to)) return;
  CHECK(enable_peer_access(*from, *to));  // enabling it again is not an error
  const std::vector<float> values = {4};
  const Buffer target = upload<float>(to, values);
  const ModulePointer module = Module::load(from, test::kKernels);
  const Stream stream(from);
  const abi::CUdeviceptr pointer = target.address();
  const float factor = 8;
  launch(module->function("scale"), {1}, {1}, 0, stream.handle(), {&pointer, &factor});
  stream.synchronize();
  CHECK(read(*to, target.address()) == 32);
}

TEST_CASE("devices of two models are no peers, but copies pass between them") {
  if (!test::on_simulator()) return;
  const ContextPointer from = test::open_context("sim:sm_80:1");
  const ContextPointer to = test::open_context("sim:sm_90a:1");
  CHECK(!enable_peer_access(*from, *to));
  const std::vector<float> values = {6};
  const Buffer source = upload<float>(from, values);
  const Buffer target(to, source.bytes());
  const Stream stream(to);
  copy_peer_async(*to, target.address(), *from, source.address(), 4, stream.handle());
  stream.synchronize();
  CHECK(read(*to, target.address()) == 6);
  try {
    copy_peer_async(*to, target.address(), *from, source.address(), 5, stream.handle());
    FAIL("a copy beyond the end was taken");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kDevice);
  }
}

}  // namespace
}  // namespace annulus::device
