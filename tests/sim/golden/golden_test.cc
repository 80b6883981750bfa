// Every golden program on the device under test: with checks and without, when it is simulated.

#include <doctest/doctest.h>

#include <set>

#include "device/simulator.h"
#include "sim/golden/runner.h"
#include "support/device.h"

namespace annulus::golden {
namespace {

void run_all(const device::ContextPointer& context) {
  for (const Golden& golden : all_programs()) {
    const Outcome outcome = run(context, golden, ANNULUS_GOLDEN_PTX);
    INFO(golden.name);
    if (!golden.modelled && test::on_simulator()) {
      // A refusal names the line; silence would mean that the program is modelled now.
      CHECK_MESSAGE(outcome.error.find("PTX line") != std::string::npos, outcome.error);
      continue;
    }
    CHECK_MESSAGE(outcome.error.empty(), outcome.error);
    const std::string first = outcome.first.empty() ? std::string() : outcome.first.front().text;
    CHECK_MESSAGE(outcome.mismatches == 0, outcome.mismatches, " words differ; ", first);
  }
}

TEST_CASE("every golden program gives what its definition says") {
  const device::ContextPointer context = open_device(test::device_name());
  run_all(context);
}

TEST_CASE("the fast twin gives the same") {
  if (!test::on_simulator()) return;
  const device::ContextPointer context = open_device(test::device_name());
  const auto options = device::simulator_options(*context);
  REQUIRE(options.has_value());
  abi::SimulatorOptions fast = *options;
  fast.checked = 0;
  fast.seed = 7;
  REQUIRE(device::set_simulator_options(*context, fast));
  run_all(context);
  device::set_simulator_options(*context, *options);
}

TEST_CASE("golden programs have names of their own") {
  std::set<std::string> names;
  for (const Golden& golden : all_programs()) {
    INFO(golden.name);
    CHECK(names.insert(golden.name).second);
  }
  CHECK(names.size() > 700);
}

}  // namespace
}  // namespace annulus::golden
