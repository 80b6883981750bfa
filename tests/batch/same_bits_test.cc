// The answer of a request must have the same bits alone and in any batch, with pages of any size.

#include <doctest/doctest.h>

#include <string>

#include "batch/same_bits.h"
#include "support/device.h"
#include "support/options.h"

namespace {

using namespace annulus;

TEST_CASE("a request has the same bits alone and in random batches") {
  const Device device = Device::open(test::device_name());
  const bool many = test::options().problems > 0;
  if (many && test::on_simulator()) {
    SimulationOptions fast;
    fast.checked = false;
    device.set_simulation(fast);
  }
  const std::int64_t requests = many ? test::options().problems : 12;
  const std::int64_t rounds = many ? 50 : 8;
  const test::SameBits made = test::compare_bits(device, requests, rounds, test::seed_of(1));
  CHECK(made.answers == requests * rounds);
  CAPTURE(made.first);
  CHECK(made.differing == 0);
}

}  // namespace
