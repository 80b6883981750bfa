#include "batch_steps.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/device_name.h"
#include "api/impl.h"
#include "base/fail.h"
#include "batch/same_bits.h"
#include "batch/serving.h"
#include "batch_step.h"
#include "support/counted_calls.h"
#include "support/counted_malloc.h"
#include "support/idle_launches.h"
#include "support/simulator.h"

namespace annulus::bench {
namespace {

using test::CountedCalls;
using test::IdleLaunches;

Device open_on_table(const abi::CudaTable& table) {
  Device device = api::open_on(std::make_shared<const device::Driver>(table, "a table around it"),
                               api::parse_device_name("sim:sm_90a"), {}, base::read_environment());
  SimulationOptions fast;
  fast.checked = false;
  device.set_simulation(fast);
  return device;
}

// Counts over ten thousand steps by one captured graph. The first five count calls of the driver.
struct Served {
  double compiles, allocations, waits, reads, others, wrong, checked;
};
Served serve() {
  constexpr int kSteps = 10000, kStepsToCheck = 100;
  const Device device = open_on_table(CountedCalls::wrap(test::simulator_table()));
  test::Serving serving(device, 1);
  const std::int64_t compiles = device.metrics().compiles;
  Served made{};
  for (int step = 0; step < kSteps; ++step) {
    // One step in a hundred is launched by prepare() and run() instead of the graph.
    serving.step(step % 100 != 99);
    if (step % (kSteps / kStepsToCheck) > 0) continue;
    ++made.checked;
    if (!serving.first_wrong().empty()) ++made.wrong;
  }
  const auto calls = [](std::initializer_list<const char*> all) {
    double sum = 0;
    for (const char* one : all) sum += static_cast<double>(CountedCalls::calls(one));
    return sum;
  };
  made.compiles = static_cast<double>(device.metrics().compiles - compiles) + calls({"cuModule"});
  made.allocations = calls({"cuMemAlloc", "cuMemFree"});
  made.waits = calls({"cuCtxSynchronize", "cuStreamSynchronize", "cuEventSynchronize"});
  made.reads = calls({"cuMemcpyDtoH"});
  made.others = calls({"cu"}) - calls({"cuGraphLaunch", "cuLaunchKernel", "cuStreamBeginCapture",
                                       "cuStreamEndCapture", "cuGraphInstantiate",
                                       "cuCtxGetCurrent", "cuCtxPushCurrent", "cuCtxPopCurrent"});
  return made;
}

// The host time and the allocations of a call, on a driver whose launches return at once.
struct HostCall {
  double micros, allocations;
};
HostCall measure(const std::function<void()>& call) {
  constexpr int kCalls = 1000, kRounds = 51;
  std::vector<double> each;
  call();
  const int before = test::allocations;
  for (int round = 0; round < kRounds; ++round) {
    const double start = thread_seconds();
    for (int i = 0; i < kCalls; ++i) call();
    each.push_back((thread_seconds() - start) * 1e6 / kCalls);
  }
  const int allocated = test::allocations - before;
  // The growth of the list of times also allocates a few times, which is not counted.
  return {median(each),
          allocated < 2 * kRounds ? 0 : static_cast<double>(allocated) / kCalls / kRounds};
}

// The attention of a decoder with up to 64 requests. It has three launches per step.
class HostCalls {
 public:
  HostCalls()
      : device_(open_on_table(IdleLaunches::wrap(test::simulator_table()))),
        plan_(plan_batch(device_, problem())),
        memory_(device_.allocate(1 << 20)),
        workspace_(device_.allocate(plan_.workspace_bytes())) {
    const auto at = [&](std::ptrdiff_t bytes) {
      return static_cast<std::byte*>(memory_.data()) + bytes;
    };
    metadata_.q_begin = reinterpret_cast<const std::int32_t*>(at(0));
    metadata_.k_length = reinterpret_cast<const std::int32_t*>(at(1024));
    metadata_.requests = reinterpret_cast<const std::int32_t*>(at(2048));
    metadata_.k_pages = {reinterpret_cast<const std::int32_t*>(at(4096)), nullptr, 512};
    operands_.q = operands_.k = operands_.v = at(0);
    operands_.o = at(1 << 16);
    operands_.q_strides = operands_.o_strides = {32 * 128, 128};
    operands_.k_strides = operands_.v_strides = {16 * 8 * 128, 8 * 128, 128};
    operands_.k_pages = operands_.v_pages = 4096;
  }
  HostCall prepare() const {
    return idly([&] { plan_.prepare(nullptr, metadata_, workspace_.data()); });
  }
  HostCall run() const {
    return idly([&] { plan_.run(nullptr, operands_, workspace_.data()); });
  }

 private:
  static BatchProblem problem() { return problem_of(32, 8, 128, decoding(64, 8192), 16); }
  static HostCall idly(const std::function<void()>& call) {
    IdleLaunches::idle = IdleLaunches::current = true;
    const HostCall made = measure(call);
    IdleLaunches::idle = false;
    return made;
  }

  Device device_;
  BatchPlan plan_;
  DeviceMemory memory_, workspace_;
  BatchMetadata metadata_;
  BatchOperands operands_;
};

}  // namespace

std::function<double()> once(const std::function<double()>& measure) {
  const auto value = std::make_shared<std::optional<double>>();
  return [=] {
    if (!*value) *value = measure();
    return **value;
  };
}

void add_steps(Bench* bench) {
  const auto served = [all = std::make_shared<std::optional<Served>>()] {
    if (!*all) *all = serve();
    return **all;
  };
  const auto add = [&](const char* what, double Served::*of) {
    bench->add({.name = std::string("10,000 steps by one graph: ") + what, .unit = ""},
               [=] { return served().*of; });
  };
  add("kernels compiled or loaded", &Served::compiles);
  add("allocations of the driver", &Served::allocations);
  add("waits of the host", &Served::waits);
  add("reads of device memory by the host", &Served::reads);
  add("other calls but launches and looks at the context", &Served::others);
  add("steps compared with the oracle", &Served::checked);
  add("steps with a wrong answer", &Served::wrong);

  const auto calls = std::make_shared<HostCalls>();
  bench->add(
      {.name = "BatchPlan::prepare on the host", .unit = "us", .bar = 5, .lower_is_better = true},
      [=] { return calls->prepare().micros; });
  bench->add({.name = "BatchPlan::run on the host, two launches",
              .unit = "us",
              .bar = 5,
              .lower_is_better = true},
             [=] { return calls->run().micros; });
  bench->add({.name = "allocations per BatchPlan::prepare and run", .unit = "calls"},
             [=] { return calls->prepare().allocations + calls->run().allocations; });

  const auto bits = [all = std::make_shared<std::optional<test::SameBits>>()] {
    if (!*all) *all = test::compare_bits(open_fast("sim:sm_90a"), 200, 50, 1);
    return **all;
  };
  const std::string name = "200 requests alone and in 50 random batches: answers ";
  bench->add({.name = name + "compared", .unit = ""},
             [=] { return static_cast<double>(bits().answers); });
  bench->add({.name = name + "with other bits", .unit = ""},
             [=] { return static_cast<double>(bits().differing); });
}

}  // namespace annulus::bench
