#include "jit/resource_usage.h"

#include <doctest/doctest.h>

#include "base/random.h"

namespace annulus::jit {
namespace {

TEST_CASE("the log of ptxas is read") {
  const ResourceUsage usage = parse_compile_log(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'f' for 'sm_90a'\n"
      "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are "
      "serialized due to insufficient register resources for the wgmma pipeline\n"
      "ptxas info    : Function properties for f\n"
      "ptxas         .     432 bytes stack frame, 28 bytes spill stores, 36 bytes spill loads\n"
      "ptxas info    : Used 168 registers, used 1 barriers, 440 bytes cumulative stack size, "
      "1200 bytes smem, 528 bytes cmem[0]\n"
      "ptxas info    : Compile time = 106.995 ms\n");
  CHECK(usage.known);
  CHECK(usage.registers == 168);
  CHECK(usage.local_bytes == 440);
  CHECK(usage.spill_store_bytes == 28);
  CHECK(usage.spill_load_bytes == 36);
  CHECK(usage.static_shared_bytes == 1200);
  REQUIRE(usage.notes.size() == 1);
  CHECK(usage.notes[0].starts_with("(C7510) Potential Performance Loss"));
  CHECK(to_string(usage) ==
        "168 registers, spills 28 bytes out and 36 in, 440 bytes of local memory, 1200 bytes of "
        "static shared memory; " +
            usage.notes[0]);
}

TEST_CASE("of several functions the largest counts") {
  const ResourceUsage usage = parse_compile_log(
      "    8 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads\n"
      "ptxas info : Used 40 registers\n"
      "    0 bytes stack frame, 0 bytes spill stores, 12 bytes spill loads\n"
      "ptxas info : Used 32 registers");
  CHECK(usage.registers == 40);
  CHECK(usage.local_bytes == 8);
  CHECK(usage.spill_store_bytes == 8);
  CHECK(usage.spill_load_bytes == 12);
}

TEST_CASE("a log that says nothing leaves everything unknown") {
  for (const char* log : {"", "\n\n", "registers", "Used registers", "warning: x is not used\n"}) {
    const ResourceUsage usage = parse_compile_log(log);
    CHECK(usage.registers == 0);
    CHECK(usage.notes.empty());
  }
  CHECK_FALSE(parse_compile_log("warning").known);
  CHECK(to_string(ResourceUsage{}).find("not known") != std::string::npos);
}

TEST_CASE("what is no cubin states nothing") {
  base::Random random(3);
  CHECK_FALSE(read_cubin({}, "f"));
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::byte> bytes(random.below(400));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.below(256));
    // The magic number is right, so that the random headers are not rejected at once.
    const unsigned char magic[] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
    for (std::size_t i = 0; i < sizeof(magic) && i < bytes.size(); ++i) {
      bytes[i] = static_cast<std::byte>(magic[i]);
    }
    if (bytes.size() > 60) {
      bytes[58] = std::byte{64};  // e_shentsize
      bytes[59] = std::byte{0};
      for (std::size_t i = 0x28; i < 0x30; ++i) bytes[i] = std::byte{0};
      bytes[0x28] = static_cast<std::byte>(random.below(200));  // e_shoff
    }
    CHECK_FALSE(read_cubin(bytes, "f"));
  }
}

}  // namespace
}  // namespace annulus::jit
