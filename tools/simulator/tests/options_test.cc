// Tests of the options of simulated devices: as text, in a struct, and the kinds of faults after
// which a run continues.

#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "on_device.h"
#include "simulator/driver/objects/start_options.h"

namespace annulus::simulator {
namespace {

std::string wrong(const char* text) {
  SimulatorOptions options;
  const SimulatorOptions before = options;
  std::string why = driver::read_options(text, &options);
  CHECK(std::memcmp(&options, &before, sizeof(options)) == 0);
  return why;
}

TEST_CASE("options as text") {
  SimulatorOptions options;
  REQUIRE(driver::read_options("", &options).empty());
  REQUIRE(driver::read_options("checked=0,seed=18446744073709551615,threads=2,quantum=7,landing=2,"
                               "limit=4000000000,streams=1,products=2,reading=proven,"
                               "ignored=missing fence+early reuse",
                               &options)
              .empty());
  CHECK(options.checked == 0);
  CHECK(options.seed == ~std::uint64_t{0});
  CHECK(options.threads == 2);
  CHECK(options.quantum == 7);
  CHECK(options.landing == 2);
  CHECK(options.limit == 4000000000);
  CHECK(options.streams == 1);
  CHECK(options.products == 2);
  CHECK(options.reading == 1);
  CHECK(options.ignored ==
        (ANNULUS_SIMULATOR_IGNORE_MISSING_FENCE | ANNULUS_SIMULATOR_IGNORE_EARLY_REUSE));
  REQUIRE(driver::read_options("reading=strict,checked=1", &options).empty());
  CHECK(options.reading == 0);
  CHECK(options.checked == 1);
  CHECK(options.seed == ~std::uint64_t{0});  // options that the text does not name keep their
                                             // values
}

TEST_CASE("options whose text is wrong change nothing, and are told apart") {
  CHECK(wrong("speed=3").find("there is no option 'speed'; the options are checked, threads") == 0);
  CHECK(wrong("seed=1,checked=2") == "checked is 2; it may be 0 to 1");
  CHECK(wrong("seed=-1") == "seed is '-1', which is not a number");
  CHECK(wrong("seed=18446744073709551616").ends_with("which is not a number"));
  CHECK(wrong("quantum=4294967296") == "quantum is 4294967296; it may be 0 to 4294967295");
  CHECK(wrong("checked") == "checked is '', which is not a number");
  CHECK(wrong("reading=loose") == "reading is 'loose', which is not a number");
  CHECK(wrong("ignored=rain") == "'rain' is not a kind of fault");
  CHECK(wrong("ignored=missing fence+deadlock") ==
        "no kernel can continue after the fault 'deadlock'");
  CHECK(wrong("checked=0,,seed=1").find("there is no option ''") == 0);
}

TEST_CASE("options in a struct are refused out of their range") {
  const OnDevice on;
  SimulatorOptions before;
  REQUIRE(on.cuda.simulator_get_options(on.device, &before) == kCudaSuccess);
  const auto set = [&](auto change) {
    SimulatorOptions options = before;
    change(options);
    return on.cuda.simulator_set_options(on.device, &options);
  };
  CHECK(set([](auto& options) { options.reading = 2; }) == kCudaInvalidValue);
  CHECK(set([](auto& options) { options.resident = 3; }) == kCudaInvalidValue);
  // the kind "out of bounds"
  CHECK(set([](auto& options) { options.ignored = 1; }) == kCudaInvalidValue);
  CHECK(set([](auto& options) { options.ignored = std::uint64_t{1} << 63; }) == kCudaInvalidValue);
  CHECK(set([](auto& options) { options.reading = 1; }) == kCudaSuccess);
  CHECK(set([](auto&) {}) == kCudaSuccess);
}

TEST_CASE("a kind of fault between operations can be ignored, and the others stay") {
  const OnDevice on;
  SimulatorOptions before;
  REQUIRE(on.cuda.simulator_get_options(on.device, &before) == kCudaSuccess);
  const CUfunction scale = on.function(on.load(), "scale");
  const CUdeviceptr pointer = on.allocate(4);
  CUstream streams[2];
  for (CUstream& stream : streams) {
    REQUIRE(on.cuda.stream_create(&stream, kStreamNonBlocking) == kCudaSuccess);
  }
  // Both kernels read and write the number, and neither waits for the other.
  const auto race = [&](std::uint64_t ignored) {
    SimulatorOptions options = before;
    options.ignored = ignored;
    REQUIRE(on.cuda.simulator_set_options(on.device, &options) == kCudaSuccess);
    on.write(pointer, 1);
    for (const CUstream stream : streams) on.scale(scale, pointer, 3, stream);
    const CUresult code = on.cuda.ctx_synchronize();
    on.cuda.simulator_clear_fault(on.device);
    return code;
  };
  constexpr std::uint64_t kAll = ANNULUS_SIMULATOR_IGNORE_MISSING_WAIT |
                                 ANNULUS_SIMULATOR_IGNORE_EARLY_REUSE |
                                 ANNULUS_SIMULATOR_IGNORE_UNORDERED_WRITES;
  CHECK(race(0) == kCudaLaunchFailed);
  CHECK(race(ANNULUS_SIMULATOR_IGNORE_FREED_IN_USE) == kCudaLaunchFailed);
  CHECK(race(ANNULUS_SIMULATOR_IGNORE_UNORDERED_WRITES) == kCudaLaunchFailed);
  CHECK(race(kAll) == kCudaSuccess);
  CHECK(on.read(pointer) == 9);
  REQUIRE(on.cuda.simulator_set_options(on.device, &before) == kCudaSuccess);
  for (const CUstream stream : streams) on.cuda.stream_destroy(stream);
  CHECK(on.cuda.mem_free(pointer) == kCudaSuccess);
}

}  // namespace
}  // namespace annulus::simulator
