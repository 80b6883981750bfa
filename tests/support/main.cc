// The main function of every test program: doctest's, and one option more.
//   test_x --device cuda:0    device tests use this device; see support/device.h

#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <stdlib.h>

#include <cstring>

int main(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; ++i) {
    // The library reads this variable too, so that Device::open({}) opens the same device.
    if (!std::strcmp(argv[i], "--device")) setenv("ANNULUS_DEVICE", argv[i + 1], 1);
  }
  return doctest::Context(argc, argv).run();
}
