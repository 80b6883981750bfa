// The counter from which works are drawn, and the workspace that contains it: arbitrary contents at
// a launch, errors of the code that sets the counter, and two launches at once. The tests use
// simulated devices, which name faults that would only sometimes give wrong answers on a real
// device.

#include <doctest/doctest.h>

#include <cstddef>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "annulus/types.h"
#include "api/impl.h"
#include "base/json.h"
#include "device/simulator.h"
#include "device/stream.h"
#include "on_device.h"
#include "support/dealt_case.h"
#include "support/options.h"

namespace {

using namespace annulus;
using attention::Dealt;
using test::DealtCase;
using test::DeviceAnswer;

constexpr char kConfig[] = "wgmma m128 n64 w8 s2";
constexpr int kMultiprocessors = 2;

bool simulated() {
  return test::device().info().simulated && test::device().info().architecture == "sm_90a";
}

// A causal problem, so that tile rows have different lengths, with more tile rows than
// multiprocessors.
test::Case unlike_rows(std::uint64_t seed) {
  Problem problem = test::problem_of(5 * 128 - 7, 5 * 128 - 7, 64, 64, causal());
  problem.heads = problem.kv_heads = 2;
  return test::make_case(problem, seed);
}

// A separate device, so that its faults affect no other test. Work runs when a call waits for it,
// in an order that the seed determines.
struct Apart {
  Apart() : device(open()), context(*api::inside(device).context) { order(0); }

  static Device open() {
    DeviceOptions options;
    options.name = test::device().info().name;
    return Device::open(options);
  }
  void order(std::uint64_t seed) const {
    abi::SimulatorOptions options = *device::simulator_options(context);
    options.seed = test::seed_of(seed);
    options.streams = 1;
    device::set_simulator_options(context, options);
  }
  ~Apart() {
    abi::SimulatorOptions options = *device::simulator_options(context);
    options.seed = 0;
    options.streams = 0;
    device::set_simulator_options(context, options);
  }
  Apart(const Apart&) = delete;
  Apart& operator=(const Apart&) = delete;

  // The kind of the fault that ended the work, or nothing.
  std::string fault_of(const std::function<void()>& work) const {
    try {
      work();
      context.synchronize();
      return {};
    } catch (const Error& error) {
      const std::string fault = device::simulator_fault(context);
      REQUIRE_MESSAGE(!fault.empty(), std::string(error.what()));
      device::clear_simulator_fault(context);
      return base::parse_json(fault, "the fault").at("kind").get<std::string>();
    }
  }

  Device device;
  const device::Context& context;
};

// Launches at once, but passes the counter to `fill`, which sets it or does not.
class OwnCounter final : public device::LaunchSink {
 public:
  using Fill = std::function<void(device::StreamSink& to, void* address, unsigned value)>;
  OwnCounter(const device::Context& context, Fill fill)
      : context_(context), fill_(std::move(fill)), to_(nullptr) {}
  void add(const device::Function& function, device::Extent grid, device::Extent block,
           std::size_t dynamic_shared_bytes,
           std::span<const device::LaunchParameter> parameters) override {
    to_.add(function, grid, block, dynamic_shared_bytes, parameters);
  }
  void fill(const device::Context&, void* address, unsigned value, std::size_t words) override {
    CHECK(words == 1);
    CHECK(value == kMultiprocessors);
    fill_(to_, address, value);
  }

 private:
  const device::Context& context_;
  const Fill fill_;
  device::StreamSink to_;
};

TEST_CASE("a launch does not care what its workspace holds") {
  if (!simulated()) return;
  const test::Case host = unlike_rows(970);
  const Apart on;
  DealtCase drawn(on.device, host, kConfig, kMultiprocessors, Dealt::kDrawn);
  const DeviceAnswer answer = drawn.run();
  test::check(host, answer);
  auto* const bytes = static_cast<std::byte*>(drawn.workspace());
  const auto place = reinterpret_cast<abi::CUdeviceptr>(bytes + drawn.plan().drawn_offset);
  // Values that another launch may have left in the counter, and garbage.
  for (const unsigned left : {0u, 1u, 3u, 7u, 12u, 1000u, 0x7fffffffu, 0x80000000u, 0xffffffffu}) {
    CAPTURE(left);
    device::fill_words_async(on.context, place, left, 4, nullptr);
    CHECK(drawn.run() == answer);
  }
}

TEST_CASE("a launch after one that was aborted is right") {
  if (!simulated()) return;
  const test::Case host = unlike_rows(971);
  const Apart on;
  DealtCase drawn(on.device, host, kConfig, kMultiprocessors, Dealt::kDrawn);
  const DeviceAnswer answer = drawn.run();
  test::check(host, answer);
  const auto& forward = drawn.forward();
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    CAPTURE(seed);
    on.order(seed);
    // The second half of the LSE is missing, so the launch is aborted when it reaches those works.
    Operands operands = drawn.on_device().operands();
    const DeviceMemory half = on.device.allocate(
        static_cast<std::size_t>(host.problem.heads * host.problem.seq_q) * sizeof(float) / 2);
    operands.lse = static_cast<float*>(half.data());
    CHECK(on.fault_of([&] { forward.run(nullptr, operands, drawn.workspace()); }) ==
          "out of bounds");
    unsigned left = 0;
    on.device.copy_to_host(&left,
                           static_cast<std::byte*>(drawn.workspace()) + drawn.plan().drawn_offset,
                           sizeof(left));
    CHECK(left >= kMultiprocessors);
    CHECK(left < 10 + kMultiprocessors);
    CHECK(drawn.run() == answer);
  }
}

TEST_CASE("a counter that is not set, or set wrong, does not stay hidden") {
  if (!simulated()) return;
  const test::Case host = unlike_rows(972);
  const Apart on;
  DealtCase drawn(on.device, host, kConfig, kMultiprocessors, Dealt::kDrawn);
  const DeviceAnswer answer = drawn.run();
  const auto outcome = [&](const OwnCounter::Fill& fill) {
    drawn.on_device().reset();
    OwnCounter to(on.context, fill);
    const std::string fault = on.fault_of([&] { drawn.put(to); });
    if (!fault.empty()) return fault;
    return std::string(drawn.on_device().answer() == answer ? "right" : "wrong answer");
  };
  using To = device::StreamSink;
  CHECK(outcome([&](To& to, void* at, unsigned value) { to.fill(on.context, at, value, 1); }) ==
        "right");
  // The last launch left the counter after the last work.
  CHECK(outcome([](To&, void*, unsigned) {}) == "wrong answer");
  // The first works of the clusters are not counted, so they are computed twice.
  const std::set<std::string> twice = {"global memory race", "unordered writes",
                                       "access to bytes in flight"};
  CHECK(
      twice.contains(outcome([&](To& to, void* at, unsigned) { to.fill(on.context, at, 0, 1); })));
  CHECK(twice.contains(
      outcome([&](To& to, void* at, unsigned value) { to.fill(on.context, at, value - 1, 1); })));
  CHECK(outcome([&](To& to, void* at, unsigned value) { to.fill(on.context, at, value + 1, 1); }) ==
        "wrong answer");
  // Sets the next word instead, as if it meant the workspace of another launch.
  CHECK(outcome([&](To& to, void* at, unsigned value) {
          to.fill(on.context, static_cast<unsigned*>(at) + 1, value, 1);
        }) == "wrong answer");
}

TEST_CASE("launches at a time need a workspace each") {
  if (!simulated()) return;
  const test::Case host = unlike_rows(973), other = unlike_rows(974);
  const Apart on;
  DealtCase one(on.device, host, kConfig, kMultiprocessors, Dealt::kDrawn);
  DealtCase two(on.device, other, kConfig, kMultiprocessors, Dealt::kDrawn);
  const DeviceAnswer answer = one.run(), answer_of_other = two.run();
  const device::Stream first(api::inside(on.device).context);
  const device::Stream second(api::inside(on.device).context);
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    CAPTURE(seed);
    on.order(seed);
    const auto runs = [&](void* workspace) {
      one.on_device().reset();
      two.on_device().reset();
      on.context.synchronize();
      return on.fault_of([&] {
        one.queue(first.handle());
        two.queue(second.handle(), workspace);
      });
    };
    CHECK(runs(two.workspace()).empty());
    CHECK(one.on_device().answer() == answer);
    CHECK(two.on_device().answer() == answer_of_other);
    // This is an error of the caller.
    CHECK(runs(one.workspace()) == "unordered writes");
  }
  // Launches may share a workspace one after the other.
  one.on_device().reset();
  two.on_device().reset();
  one.queue(first.handle());
  two.queue(first.handle(), one.workspace());
  CHECK(one.on_device().answer() == answer);
  CHECK(two.on_device().answer() == answer_of_other);
}

TEST_CASE("replays at a time need a workspace each") {
  if (!simulated()) return;
  const test::Case host = unlike_rows(975), other = unlike_rows(976);
  const Apart on;
  DealtCase one(on.device, host, kConfig, kMultiprocessors, Dealt::kDrawn);
  DealtCase two(on.device, other, kConfig, kMultiprocessors, Dealt::kDrawn);
  const DeviceAnswer answer = one.run(), answer_of_other = two.run();
  const device::Stream first(api::inside(on.device).context);
  const device::Stream second(api::inside(on.device).context);
  const abi::CudaTable& table = on.context.table();
  const device::ContextScope scope(on.context);
  const auto captured = [&](const DealtCase& of, void* workspace) {
    abi::CUgraph graph = nullptr;
    abi::CUgraphExec exec = nullptr;
    REQUIRE(table.stream_begin_capture(first.handle(), 0) == 0);
    of.queue(first.handle(), workspace);
    REQUIRE(table.stream_end_capture(first.handle(), &graph) == 0);
    REQUIRE(table.graph_instantiate(&exec, graph, 0) == 0);
    REQUIRE(table.graph_destroy(graph) == 0);
    return exec;
  };
  const auto replay = [&](abi::CUgraphExec exec, const device::Stream& stream) {
    REQUIRE(table.graph_launch(exec, stream.handle()) == 0);
  };
  const abi::CUgraphExec graph = captured(one, one.workspace());
  const abi::CUgraphExec again = captured(one, one.workspace());
  const abi::CUgraphExec apart = captured(two, two.workspace());
  const abi::CUgraphExec shared = captured(two, one.workspace());
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    CAPTURE(seed);
    on.order(seed);
    const auto at_a_time = [&](abi::CUgraphExec a, abi::CUgraphExec b) {
      one.on_device().reset();
      two.on_device().reset();
      on.context.synchronize();
      return on.fault_of([&] {
        replay(a, first);
        replay(b, second);
      });
    };
    CHECK(at_a_time(graph, apart).empty());
    CHECK(one.on_device().answer() == answer);
    CHECK(two.on_device().answer() == answer_of_other);
    CHECK(at_a_time(graph, shared) == "unordered writes");
    CHECK(at_a_time(graph, again) == "unordered writes");
    // The driver runs an executable graph only after its previous run.
    CHECK(at_a_time(graph, graph).empty());
    CHECK(one.on_device().answer() == answer);
  }
  for (const abi::CUgraphExec exec : {graph, again, apart, shared}) {
    CHECK(table.graph_exec_destroy(exec) == 0);
  }
}

}  // namespace
