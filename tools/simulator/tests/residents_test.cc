// Co-resident CTAs: CTAs that wait for each other, that distribute work, and that wait for ever.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "base/json.h"
#include "on_device.h"
#include "residents.h"
#include "simulator/driver/entries/entries.h"

namespace annulus::simulator {
namespace {

namespace entry = driver::entry;

using test::kExchange;
using test::kResidents;

constexpr std::uint32_t kAsNeeded = 0;
constexpr std::uint32_t kAlone = 1;
constexpr std::uint32_t kTogether = 2;

// A device with the module, and an array of words.
struct Machine : OnDevice {
  CUmodule module = load(kResidents);
  std::size_t words;
  CUdeviceptr array;

  explicit Machine(std::size_t count, const char* architecture = "sm_90a")
      : OnDevice(first_ordinal(architecture)), words(count), array(allocate(4 * count)) {
    clear();
    set({});
  }
  ~Machine() {
    cuda.simulator_clear_fault(device);
    set({});
    cuda.mem_free(array);
    cuda.module_unload(module);
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  struct Settings {
    std::uint64_t seed = 0;
    std::uint32_t checked = 1;
    std::uint32_t resident = kAsNeeded;
    std::uint32_t limit = 0;
    std::uint32_t quantum = 0;
    std::uint32_t landing = 0;
  };
  void set(const Settings& settings) const {
    SimulatorOptions options;
    options.seed = settings.seed;
    options.checked = settings.checked;
    options.resident = settings.resident;
    options.limit = settings.limit;
    options.quantum = settings.quantum;
    options.landing = settings.landing;
    REQUIRE(cuda.simulator_set_options(device, &options) == kCudaSuccess);
  }
  void clear() const {
    const std::vector<std::uint32_t> zeros(words);
    write(zeros);
  }
  void write(const std::vector<std::uint32_t>& values) const {
    REQUIRE(cuda.memcpy_htod(array, values.data(), 4 * values.size()) == kCudaSuccess);
  }
  std::vector<std::uint32_t> read() const {
    std::vector<std::uint32_t> values(words);
    REQUIRE(cuda.memcpy_dtoh(values.data(), array, 4 * words) == kCudaSuccess);
    return values;
  }
  CUresult launch(const char* kernel, unsigned ctas, unsigned threads, std::uint32_t n,
                  std::uint32_t rounds = 0, std::uint32_t uneven = 0) const {
    CUdeviceptr p = array;
    void* parameters[] = {&p, &n, &rounds, &uneven};
    const CUresult code = cuda.launch_kernel(function(module, kernel), ctas, 1, 1, threads, 1, 1, 0,
                                             nullptr, parameters, nullptr);
    return code != kCudaSuccess ? code : cuda.ctx_synchronize();
  }
  CUresult launch_cooperative(const char* kernel, unsigned ctas, unsigned threads,
                              std::uint32_t n) const {
    CUdeviceptr p = array;
    void* parameters[] = {&p, &n};
    const CUresult code = entry::launch_cooperative_kernel(function(module, kernel), ctas, 1, 1,
                                                           threads, 1, 1, 0, nullptr, parameters);
    return code != kCudaSuccess ? code : cuda.ctx_synchronize();
  }
  base::Json fault() const { return base::parse_json(message(), "the fault"); }
};

// The works of the busiest CTA, divided by the mean.
double imbalance(const std::vector<std::uint32_t>& words, std::size_t works, std::size_t ctas) {
  std::vector<std::size_t> counts(ctas);
  for (std::size_t i = 0; i < works; ++i) ++counts.at(words[1 + i]);
  const auto busiest = static_cast<double>(*std::ranges::max_element(counts));
  return busiest * static_cast<double>(ctas) / static_cast<double>(works);
}

TEST_CASE("CTAs that ask a counter for equal works get equally many") {
  constexpr std::uint32_t kWorks = 1320;
  constexpr unsigned kCtas = 132;
  const Machine on(1 + kWorks);
  for (const std::uint32_t checked : {0u, 1u}) {
    for (const std::uint32_t rounds : {1u, 20u, 300u, 3000u}) {
      for (const std::uint64_t seed : {0u, 1u, 2u, 3u}) {
        if (rounds == 3000 && (checked == 1 || seed > 1)) continue;
        CAPTURE(checked);
        CAPTURE(rounds);
        CAPTURE(seed);
        on.set({.seed = seed, .checked = checked});
        on.clear();
        REQUIRE(on.launch("works", kCtas, 64, kWorks, rounds) == kCudaSuccess);
        CHECK(imbalance(on.read(), kWorks, kCtas) <= 1.1);
      }
    }
  }
  // If CTAs run one after another, the imbalance is the largest possible.
  on.set({.resident = kAlone});
  on.clear();
  REQUIRE(on.launch("works", kCtas, 64, kWorks, 20) == kCudaSuccess);
  CHECK(imbalance(on.read(), kWorks, kCtas) > 10);
}

// The CTAs end at about the same time, so the works of each CTA take the same time in total. The
// longest work has 15 * 40 rounds more than the shortest.
TEST_CASE("works of different lengths are dealt to whoever is done first") {
  constexpr std::uint32_t kWorks = 1320;
  constexpr unsigned kCtas = 33;
  const Machine on(1 + kWorks);
  REQUIRE(on.launch("works", kCtas, 32, kWorks, 40, 40) == kCudaSuccess);
  const std::vector<std::uint32_t> words = on.read();
  std::vector<double> rounds(kCtas);
  for (std::uint32_t i = 0; i < kWorks; ++i) rounds.at(words[1 + i]) += 40 + 40 * (i % 16);
  const double mean = std::accumulate(rounds.begin(), rounds.end(), 0.0) / kCtas;
  CHECK(*std::ranges::max_element(rounds) <= 1.1 * mean);
  CHECK(*std::ranges::min_element(rounds) >= 0.9 * mean);
}

TEST_CASE("the same seed deals out works in the same way, another seed in another") {
  constexpr std::uint32_t kWorks = 400;
  const Machine on(1 + kWorks);
  const auto dealt = [&](const Machine::Settings& settings) {
    on.set(settings);
    on.clear();
    REQUIRE(on.launch("works", 40, 64, kWorks, 50, 7) == kCudaSuccess);
    return on.read();
  };
  const auto first = dealt({.seed = 1});
  CHECK(dealt({.seed = 1}) == first);
  CHECK(dealt({.seed = 1, .checked = 0}) == first);
  CHECK(dealt({.seed = 2}) != first);
}

TEST_CASE("a barrier of the grid, in a cooperative launch") {
  constexpr unsigned kRounds = 5;
  const Machine on(132 * std::size_t{kRounds + 1});
  CHECK(on.attribute(kAttributeCooperativeLaunch) == 1);
  for (const unsigned ctas : {1u, 2u, 132u}) {
    std::vector<std::uint32_t> expected(ctas * (kRounds + 1));
    for (unsigned c = 0; c < ctas; ++c) expected[c] = c;
    for (unsigned r = 1; r <= kRounds; ++r) {
      for (unsigned c = 0; c < ctas; ++c) {
        expected[r * ctas + c] =
            expected[(r - 1) * ctas + c] + expected[(r - 1) * ctas + (c + 1) % ctas];
      }
    }
    for (const std::uint32_t checked : {0u, 1u}) {
      for (const std::uint32_t resident : {kAsNeeded, kAlone, kTogether}) {
        for (const std::uint64_t seed : {0u, 1u}) {
          on.set({.seed = seed, .checked = checked, .resident = resident});
          on.clear();
          on.write({expected.begin(), expected.begin() + ctas});
          REQUIRE_MESSAGE(on.launch_cooperative("grid_sync", ctas, 96, kRounds) == kCudaSuccess,
                          on.message());
          std::vector<std::uint32_t> words = on.read();
          words.resize(expected.size());
          CHECK(words == expected);
        }
      }
    }
  }
}

TEST_CASE("a cooperative launch is refused where its CTAs do not fit together") {
  for (const char* architecture : {"sm_80", "sm_90a"}) {
    const Machine on(32 * 132 * 2, architecture);
    on.set({.checked = 0});
    const CUfunction function = on.function(on.module, "grid_sync");
    const int multiprocessors = on.attribute(kAttributeMultiprocessors);
    for (const unsigned threads : {32u, 1024u}) {
      int blocks = 0;
      REQUIRE(on.cuda.occupancy_max_active_blocks(&blocks, function, static_cast<int>(threads),
                                                  0) == kCudaSuccess);
      CHECK(blocks == (threads == 32 ? 32 : 2));
      const auto fit = static_cast<unsigned>(blocks * multiprocessors);
      CHECK(on.launch_cooperative("grid_sync", fit + 1, threads, 1) ==
            kCudaCooperativeLaunchTooLarge);
      CHECK(on.launch_cooperative("grid_sync", fit, threads, 1) == kCudaSuccess);
    }
    const char* name = nullptr;
    REQUIRE(on.cuda.get_error_name(kCudaCooperativeLaunchTooLarge, &name) == kCudaSuccess);
    CHECK(std::string(name) == "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE");
  }
}

TEST_CASE("the attribute of cuLaunchKernelEx asks for a cooperative launch too") {
  const Machine on(4096);
  CUdeviceptr p = on.array;
  std::uint32_t n = 1;
  void* parameters[] = {&p, &n};
  entry::LaunchAttribute attribute{.id = 2, .pad = {}, .value = {}};
  for (const int value : {0, 1}) {
    std::memcpy(attribute.value, &value, sizeof(value));
    entry::LaunchConfig config{.grid = {100000, 1, 1},
                               .block = {32, 1, 1},
                               .dynamic_shared_bytes = 0,
                               .stream = nullptr,
                               .attributes = &attribute,
                               .attribute_count = 1};
    if (value == 0) config.grid[0] = 4;
    const char* const kernel = value == 0 ? "racing" : "grid_sync";
    const CUresult code =
        entry::launch_kernel_ex(&config, on.function(on.module, kernel), parameters, nullptr);
    CHECK(code == (value == 0 ? kCudaSuccess : kCudaCooperativeLaunchTooLarge));
    on.cuda.simulator_clear_fault(on.device);
  }
}

TEST_CASE("CTAs wait for others of lower and of higher index") {
  constexpr unsigned kCtas = 300;
  const Machine on(std::size_t{2} * kCtas);
  for (const int distance : {-1, 1, -7, 7, static_cast<int>(kCtas) - 1}) {
    for (const std::uint32_t checked : {0u, 1u}) {
      for (const std::uint32_t quantum : {0u, 1u}) {
        CAPTURE(distance);
        on.set({.seed = 5, .checked = checked, .quantum = quantum});
        on.clear();
        REQUIRE_MESSAGE(
            on.launch("chain", kCtas, 1, static_cast<std::uint32_t>(distance)) == kCudaSuccess,
            on.message());
        const std::vector<std::uint32_t> words = on.read();
        for (unsigned c = 0; c < kCtas; ++c) {
          const unsigned behind = distance < 0 ? c : kCtas - 1 - c;
          const auto step = static_cast<unsigned>(std::abs(distance));
          REQUIRE(words[std::size_t{2} * c + 1] == behind / step + 1);
        }
      }
    }
  }
}

TEST_CASE("the CTAs of a cluster find a place together") {
  constexpr unsigned kCtas = 8 * 132;
  const Machine on(std::size_t{2} * kCtas);
  CUdeviceptr p = on.array;
  entry::LaunchAttribute attribute{.id = 4, .pad = {}, .value = {}};
  for (const std::uint32_t size : {2u, 8u}) {
    for (const std::uint32_t distance : {1u, size, kCtas - 1}) {
      const std::uint32_t shape[3] = {size, 1, 1};
      std::memcpy(attribute.value, shape, sizeof(shape));
      on.set({.seed = distance});
      on.clear();
      std::uint32_t n = distance;
      void* parameters[] = {&p, &n};
      const entry::LaunchConfig config{.grid = {kCtas, 1, 1},
                                       .block = {32, 1, 1},
                                       .dynamic_shared_bytes = 0,
                                       .stream = nullptr,
                                       .attributes = &attribute,
                                       .attribute_count = 1};
      REQUIRE(entry::launch_kernel_ex(&config, on.function(on.module, "chain"), parameters,
                                      nullptr) == kCudaSuccess);
      REQUIRE_MESSAGE(on.cuda.ctx_synchronize() == kCudaSuccess, on.message());
      const std::vector<std::uint32_t> words = on.read();
      for (unsigned c = 0; c < kCtas; ++c) {
        REQUIRE(words[std::size_t{2} * c + 1] == (kCtas - 1 - c) / distance + 1);
      }
    }
  }
}

// Even copies that land late land while another warp of the CTA polls.
TEST_CASE("a copy lands while a warp of its CTA waits for another CTA") {
  const Machine on(512);
  const CUmodule module = on.load(kExchange);
  CUdeviceptr p = on.array;
  std::uint32_t n = 0;
  void* parameters[] = {&p, &n};
  std::vector<std::uint32_t> words(512);
  words[0] = 9;
  for (const std::uint32_t checked : {0u, 1u}) {
    for (const std::uint32_t landing : {0u, 1u, 2u}) {
      for (const std::uint64_t seed : {0u, 1u, 2u, 3u}) {
        CAPTURE(landing);
        on.set({.seed = seed, .checked = checked, .landing = landing});
        on.write(words);
        REQUIRE(on.cuda.launch_kernel(on.function(module, "exchange"), 200, 1, 1, 64, 1, 1, 0,
                                      nullptr, parameters, nullptr) == kCudaSuccess);
        REQUIRE_MESSAGE(on.cuda.ctx_synchronize() == kCudaSuccess, on.message());
        CHECK(on.read()[64 + 199] == 9);
      }
    }
  }
  on.cuda.module_unload(module);
}

TEST_CASE("a kernel that waits long for one that works is not called dead") {
  const Machine on(4);
  for (const std::uint32_t checked : {0u, 1u}) {
    on.set({.checked = checked});
    on.clear();
    CHECK(on.launch("slow", 2, 32, 1000000) == kCudaSuccess);
    CHECK(on.read()[0] == 7);
  }
}

TEST_CASE("lanes of a warp that wait for a lock give way to the lane that has it") {
  const Machine on(2);
  for (const std::uint32_t checked : {0u, 1u}) {
    for (const std::uint32_t quantum : {0u, 1u, 2u, 7u}) {
      CAPTURE(quantum);
      on.set({.seed = quantum, .checked = checked, .quantum = quantum});
      on.clear();
      CHECK_MESSAGE(on.launch("lanes", 2, 64, 0) == kCudaSuccess, on.message());
      CHECK(on.read() == std::vector<std::uint32_t>{0, 128});
    }
  }
}

TEST_CASE("CTAs that wait in vain are reported with who waits") {
  const Machine on(8192);
  for (const std::uint32_t checked : {0u, 1u}) {
    for (const char* kernel : {"locked", "left", "lanes"}) {
      CAPTURE(kernel);
      on.set({.checked = checked, .limit = 100});
      on.clear();
      CHECK(on.launch(kernel, 3, 64, 300000) == kCudaLaunchTimeout);
      CHECK(on.fault().at("kind") == "deadlock");
      const std::string text = on.fault().at("message");
      INFO(text);
      CHECK(text.find("no CTA is left that has not started") != std::string::npos);
      CHECK(text.find("warp 0 at PTX line") != std::string::npos);
      on.cuda.simulator_clear_fault(on.device);
    }
  }
}

// 32 CTAs fit on each of 132 multiprocessors. All others wait for a CTA that is not among the
// first.
TEST_CASE("CTAs that wait for one which finds no place are reported with it") {
  constexpr unsigned kFit = 32 * 132;
  const Machine on(std::size_t{2} * (kFit + 5));
  on.set({.checked = 0});
  CHECK(on.launch("chain", kFit, 1, kFit - 1) == kCudaSuccess);
  on.clear();
  CHECK(on.launch("chain", kFit + 5, 1, 5) == kCudaLaunchTimeout);
  CHECK(on.fault().at("kind") == "deadlock");
  const std::string text = on.fault().at("message");
  INFO(text);
  CHECK(text.find("4224 CTAs are resident") != std::string::npos);
  CHECK(text.find("5 more CTAs have not started") != std::string::npos);
  CHECK(on.fault().at("block") == base::Json::array({0, 0, 0}));
}

TEST_CASE("what is not known to be dead is ended by the limit") {
  const Machine on(4);
  on.set({.limit = 1});
  CHECK(on.launch("counted", 3, 32, 0) == kCudaLaunchTimeout);
  CHECK(on.fault().at("kind") == "timeout");
}

TEST_CASE("a race between CTAs is found whether or not they live together") {
  const Machine on(4);
  for (const char* kernel : {"racing", "racing_fenced"}) {
    for (const std::uint32_t resident : {kAsNeeded, kAlone, kTogether}) {
      for (const std::uint64_t seed : {0u, 1u, 2u, 3u}) {
        CAPTURE(kernel);
        CAPTURE(resident);
        on.set({.seed = seed, .resident = resident});
        on.clear();
        CHECK(on.launch(kernel, 4, 32, 0) == kCudaLaunchFailed);
        CHECK(on.fault().at("kind") == "global memory race");
        on.cuda.simulator_clear_fault(on.device);
      }
    }
  }
}

TEST_CASE("a fault names the CTA that made it") {
  const Machine on(4);
  for (const unsigned stray : {0u, 6u, 39u}) {
    on.set({.seed = stray});
    on.clear();
    CHECK(on.launch("stray", 40, 64, stray) == kCudaIllegalAddress);
    CHECK(on.fault().at("block") == base::Json::array({stray, 0, 0}));
    on.cuda.simulator_clear_fault(on.device);
  }
}

TEST_CASE("the option has three values") {
  const Machine on(4);
  SimulatorOptions options;
  options.resident = 3;
  CHECK(on.cuda.simulator_set_options(on.device, &options) == kCudaInvalidValue);
  options.resident = 2;
  CHECK(on.cuda.simulator_set_options(on.device, &options) == kCudaSuccess);
  options.resident = 0;
  CHECK(on.cuda.simulator_get_options(on.device, &options) == kCudaSuccess);
  CHECK(options.resident == 2);
}

}  // namespace
}  // namespace annulus::simulator
