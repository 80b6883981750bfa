// Functions of CUDA that the simulated driver does not have.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "on_device.h"
#include "simulator/driver/entries/absent.h"
#include "simulator/driver/entries/entries.h"

namespace annulus::simulator {
namespace {

TEST_CASE("an absent function says so, and is named in the log once") {
  const OnDevice on;
  std::vector<std::string> lines;
  const annulus_simulator_log take = [](void* user, int, const char* text) {
    static_cast<std::vector<std::string>*>(user)->push_back(text);
  };
  REQUIRE(on.cuda.simulator_set_log(on.device, take, &lines, 1) == kCudaSuccess);
  void* address = nullptr;
  REQUIRE(on.cuda.simulator_entry("cuGraphicsUnregisterResource", &address) == kCudaSuccess);
  const auto function = reinterpret_cast<CUresult (*)(void*)>(address);
  CHECK(function(&address) == kCudaNotSupported);
  CHECK(function(nullptr) == kCudaNotSupported);
  CHECK(driver::absent::cuTexRefCreate() == kCudaNotSupported);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].find("cuGraphicsUnregisterResource") == 0);
  CHECK(lines[1].find("cuTexRefCreate") == 0);
  // The table that NVIDIA's CUDA runtime needs to start, and another one.
  driver::entry::Uuid id = {{0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39,
                             0x12, 0xfd, 0x9d, 0xf9}};
  const void* table = &id;
  CHECK(driver::entry::get_export_table(&table, &id) == kCudaNotFound);
  CHECK(table == nullptr);
  CHECK(driver::entry::get_export_table(&table, &id) == kCudaNotFound);
  id.bytes[0] = 0;
  CHECK(driver::entry::get_export_table(&table, &id) == kCudaNotFound);
  REQUIRE(lines.size() == 3);
  CHECK(lines[2].find("-cudart shared") != std::string::npos);
  CHECK(on.cuda.simulator_set_log(on.device, take, &lines, 0) == kCudaSuccess);
}

}  // namespace
}  // namespace annulus::simulator
