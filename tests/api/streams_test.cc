// A plan on the caller's streams. In any order that the streams permit, and captured in a graph,
// the answer must have the same bits.

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "annulus/device.h"
#include "api/impl.h"
#include "base/half.h"
#include "base/random.h"
#include "device/simulator.h"
#include "device/stream.h"

namespace {

using namespace annulus;

constexpr std::int64_t kRows = 80;
constexpr std::int64_t kDim = 32;

std::vector<std::uint16_t> random_tensor(std::uint64_t seed) {
  base::Random random(seed);
  std::vector<std::uint16_t> values(kRows * kDim);
  for (std::uint16_t& value : values) value = base::float_to_bf16(random.normal());
  return values;
}

// The keys in two halves. The second launch starts from the state of the first.
struct TwoHops {
  Device device = [] {
    DeviceOptions options;
    options.name = "sim:sm_80:6";
    return Device::open(options);
  }();
  const device::ContextPointer& context = api::inside(device).context;
  DeviceMemory q = upload(1);
  DeviceMemory k = upload(2);
  DeviceMemory v = upload(3);
  DeviceMemory o = device.allocate(kRows * kDim * 2);
  DeviceMemory acc = device.allocate(kRows * kDim * 4);
  DeviceMemory m = device.allocate(kRows * 4);
  DeviceMemory l = device.allocate(kRows * 4);
  Plan first = device.plan(problem(0));
  Plan second = device.plan(problem(1));

  DeviceMemory upload(std::uint64_t seed) {
    const std::vector<std::uint16_t> values = random_tensor(seed);
    DeviceMemory memory = device.allocate(values.size() * 2);
    device.copy_to_device(memory.data(), values.data(), memory.bytes());
    return memory;
  }

  static Problem problem(int hop) {
    Problem problem;
    problem.seq_q = kRows;
    problem.seq_k = kRows / 2;
    problem.dim_qk = problem.dim_v = kDim;
    problem.pattern = causal();
    problem.q0 = 0;
    problem.k0 = hop * kRows / 2;
    problem.carry_out = hop == 0;
    problem.carry_in = hop == 1;
    return problem;
  }

  Operands operands(int hop) const {
    const StatePointers state = {static_cast<float*>(acc.data()), static_cast<float*>(m.data()),
                                 static_cast<float*>(l.data())};
    const std::int64_t offset = hop * (kRows / 2) * kDim;
    Operands operands;
    operands.q = q.data();
    operands.k = static_cast<const std::uint16_t*>(k.data()) + offset;
    operands.v = static_cast<const std::uint16_t*>(v.data()) + offset;
    operands.q_strides = operands.o_strides = Strides::bshd(kRows, 1, kDim);
    operands.k_strides = operands.v_strides = Strides::bshd(kRows / 2, 1, kDim);
    if (hop == 0) operands.state_out = state;
    if (hop == 1) operands.state_in = state;
    if (hop == 1) operands.o = o.data();
    return operands;
  }

  // Clears the outputs, so that results of an earlier run cannot pass as an answer.
  void forget() const {
    for (const DeviceMemory* memory : {&o, &acc, &m, &l}) {
      device::fill_bytes_async(*context, address(*memory), 0xff, memory->bytes(), nullptr);
    }
    device.synchronize();
  }
  static abi::CUdeviceptr address(const DeviceMemory& memory) {
    return reinterpret_cast<std::uintptr_t>(memory.data());
  }

  // Runs the second hop on another stream, after an event.
  void run(const device::Stream& one, const device::Stream& other, const device::Event& event,
           const device::Event& back) const {
    first.run(one.handle(), operands(0));
    event.record(one.handle());
    device::wait(*context, other.handle(), event);
    second.run(other.handle(), operands(1));
    back.record(other.handle());
    device::wait(*context, one.handle(), back);
  }

  std::vector<std::uint16_t> answer() const {
    std::vector<std::uint16_t> values(kRows * kDim);
    device.copy_to_host(values.data(), o.data(), o.bytes());
    return values;
  }
};

TEST_CASE("two hops on two streams: every order that the events allow gives the same bits") {
  const TwoHops hops;
  const device::Stream one(hops.context);
  const device::Stream other(hops.context);
  const device::Event event(hops.context);
  const device::Event back(hops.context);
  hops.forget();
  hops.run(one, other, event, back);
  one.synchronize();
  const std::vector<std::uint16_t> expected = hops.answer();
  abi::SimulatorOptions options;
  options.streams = 1;
  for (options.seed = 1; options.seed <= 8; ++options.seed) {
    REQUIRE(device::set_simulator_options(*hops.context, options));
    hops.forget();
    hops.run(one, other, event, back);
    one.synchronize();
    CHECK(hops.answer() == expected);
  }
  device::set_simulator_options(*hops.context, {});
}

TEST_CASE("runs can be captured in a graph and replayed") {
  const TwoHops hops;
  const abi::CudaTable& cuda = hops.context->table();
  const device::Stream one(hops.context);
  const device::Stream other(hops.context);
  const device::Event event(hops.context);
  const device::Event back(hops.context);
  hops.forget();
  hops.run(one, other, event, back);
  one.synchronize();
  const std::vector<std::uint16_t> expected = hops.answer();
  hops.forget();
  const device::ContextScope scope(*hops.context);
  abi::CUgraph graph = nullptr;
  abi::CUgraphExec exec = nullptr;
  // In global capture mode every call that allocates or waits fails.
  REQUIRE(cuda.stream_begin_capture(one.handle(), abi::kCaptureGlobal) == abi::kCudaSuccess);
  hops.run(one, other, event, back);
  REQUIRE(cuda.stream_end_capture(one.handle(), &graph) == abi::kCudaSuccess);
  REQUIRE(cuda.graph_instantiate(&exec, graph, 0) == abi::kCudaSuccess);
  CHECK(hops.answer() != expected);  // nothing ran yet
  for (int replay = 0; replay < 2; ++replay) {
    hops.forget();
    REQUIRE(cuda.graph_launch(exec, other.handle()) == abi::kCudaSuccess);
    other.synchronize();
    CHECK(hops.answer() == expected);
  }
  CHECK(cuda.graph_exec_destroy(exec) == abi::kCudaSuccess);
  CHECK(cuda.graph_destroy(graph) == abi::kCudaSuccess);
}

}  // namespace
