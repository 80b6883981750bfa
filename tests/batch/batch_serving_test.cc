// Many steps with one plan and one captured graph. The answers must be right, and no step may
// compile, allocate, wait or read device memory on the host.

#include <doctest/doctest.h>

#include <string>

#include "api/device_name.h"
#include "api/impl.h"
#include "batch/serving.h"
#include "support/counted_calls.h"
#include "support/device.h"
#include "support/options.h"
#include "support/simulator.h"

namespace {

using namespace annulus;
using test::CountedCalls;

TEST_CASE("one plan and one captured graph serve requests that come, grow and go") {
  // On a simulated device the driver's calls are counted. A GPU is opened in the usual way.
  const bool counted = test::on_simulator();
  const Device device =
      counted
          ? api::open_on(std::make_shared<const device::Driver>(
                             CountedCalls::wrap(test::simulator_table()), "counted calls"),
                         api::parse_device_name(test::device_name()), {}, base::read_environment())
          : Device::open(test::device_name());
  test::Serving serving(device, test::seed_of(5));
  const std::int64_t compiles = device.metrics().compiles;
  const int steps = test::options().problems > 0 ? test::options().problems : 200;
  for (int step = 0; step < steps; ++step) {
    const bool by_graph = step % 4 != 3;
    serving.step(by_graph);
    if (step % 10 > 1) continue;
    CAPTURE(step);
    CHECK(serving.first_wrong() == std::string());
  }
  CHECK(serving.joined() >= steps / 40);
  CHECK(serving.moved() >= steps / 40);
  CHECK(serving.longest() > 128);  // a request with several parts
  CHECK(device.metrics().compiles == compiles);
  if (!counted) return;
  // Only captures, replays and launches by prepare() and run() are made. cuCtxGetCurrent only reads
  // a variable of the thread.
  const std::string called = CountedCalls::called();
  CAPTURE(called);
  CHECK(CountedCalls::calls("cuGraphLaunch") == steps - steps / 4);
  CHECK(CountedCalls::calls("cuLaunchKernel") == 3 * (1 + steps / 4));
  const long capture = CountedCalls::calls("cuStreamBeginCapture") +
                       CountedCalls::calls("cuStreamEndCapture") +
                       CountedCalls::calls("cuGraphInstantiate");
  CHECK(capture == 3);
  CHECK(CountedCalls::calls("cu") ==
        CountedCalls::calls("cuGraphLaunch") + CountedCalls::calls("cuLaunchKernel") + capture +
            CountedCalls::calls("cuCtx") - CountedCalls::calls("cuCtxSynchronize"));
  CHECK(CountedCalls::calls("cuCtxSynchronize") == 0);
}

}  // namespace
