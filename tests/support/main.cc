// The main function of every test program: doctest's, and a few options more (support/options.h).
//   test_x --device cuda:0    device tests use this device; see support/device.h

#define DOCTEST_CONFIG_IMPLEMENT
#include "support/options.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

annulus::test::Options parsed;

// Takes "--name value" off the arguments.
const char* value_of(std::vector<char*>* arguments, const char* name) {
  for (std::size_t i = 1; i + 1 < arguments->size(); ++i) {
    if (std::strcmp((*arguments)[i], name) != 0) continue;
    const char* value = (*arguments)[i + 1];
    arguments->erase(arguments->begin() + static_cast<std::ptrdiff_t>(i),
                     arguments->begin() + static_cast<std::ptrdiff_t>(i) + 2);
    return value;
  }
  return nullptr;
}

}  // namespace

const annulus::test::Options& annulus::test::options() { return parsed; }

int main(int argc, char** argv) {
  std::vector<char*> arguments(argv, argv + argc);
  // The library reads this variable too, so that Device::open({}) opens the same device.
  if (const char* device = value_of(&arguments, "--device")) setenv("ANNULUS_DEVICE", device, 1);
  if (const char* count = value_of(&arguments, "--problems")) parsed.problems = std::atoi(count);
  if (const char* count = value_of(&arguments, "--orders")) parsed.orders = std::atoi(count);
  if (const char* count = value_of(&arguments, "--kills")) parsed.kills = std::atoi(count);
  if (const char* length = value_of(&arguments, "--length")) parsed.length = std::atoi(length);
  if (value_of(&arguments, "--record") != nullptr) parsed.record = true;
  if (const char* seed = value_of(&arguments, "--seed")) {
    parsed.seed = std::strtoull(seed, nullptr, 10);
  }
  return doctest::Context(static_cast<int>(arguments.size()), arguments.data()).run();
}
