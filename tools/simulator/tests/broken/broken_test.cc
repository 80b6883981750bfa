// Runs broken kernels in checked mode. It must report the right kind of fault at the right line in
// every order of warps, and no fault in correct kernels.

#include <doctest/doctest.h>

#include <cstdio>
#include <fstream>
#include <numeric>
#include <optional>
#include <sstream>

#include "abi/libraries.h"
#include "annulus/types.h"
#include "base/env.h"
#include "base/json.h"
#include "device/buffer.h"
#include "device/module.h"
#include "device/simulator.h"
#include "device/stream.h"
#include "broken/broken.h"
#include "simulator/fault/fault.h"
#include "golden/runner.h"
#include "support/device.h"

namespace annulus::test {
namespace {

using device::ContextPointer;

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  REQUIRE_MESSAGE(file.good(), path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// PTX with line information, or an empty text if the source does not compile.
std::string compile(const abi::NvrtcTable& nvrtc, const BrokenKernel& kernel) {
  abi::NvrtcProgram program = nullptr;
  static const std::string header = read_file(ANNULUS_BROKEN_KERNELS "/ptx/hopper.cuh");
  const char* header_text = header.c_str();
  const char* header_name = "broken/ptx/hopper.cuh";
  REQUIRE(nvrtc.create_program(&program, kernel.source.c_str(), kernel.file.c_str(), 1,
                               &header_text, &header_name) == 0);
  const std::string architecture = "--gpu-architecture=compute_" + kernel.architecture.substr(3);
  const char* options[] = {architecture.c_str(), "--generate-line-info", "--std=c++17"};
  const int result = nvrtc.compile_program(program, 3, options);
  std::size_t bytes = 0;
  nvrtc.get_program_log_size(program, &bytes);
  std::string log(bytes, '\0');
  nvrtc.get_program_log(program, log.data());
  std::string ptx;
  if (result == 0) {
    nvrtc.get_ptx_size(program, &bytes);
    ptx.assign(bytes, '\0');
    nvrtc.get_ptx(program, ptx.data());
  }
  nvrtc.destroy_program(&program);
  CHECK_MESSAGE(result == 0, kernel.name, ": ", log);
  return ptx;
}

struct Result {
  base::Json fault;                  // null if there was none
  std::vector<std::uint32_t> words;  // the words of `out`, if there was no fault
};

// Encodes the tensor map that broken.h describes.
void encode_tensor_map(const device::Context& context, abi::CUdeviceptr address,
                       std::uint64_t words, abi::CUtensorMap* map) {
  constexpr int kWords = 2;       // CU_TENSOR_MAP_DATA_TYPE_UINT32
  constexpr int kSwizzle128 = 3;  // CU_TENSOR_MAP_SWIZZLE_128B
  const std::uint64_t dims[] = {32, words / 32};
  const std::uint64_t strides[] = {128};
  const std::uint32_t box[] = {32, 8};
  const std::uint32_t ones[] = {1, 1};
  const device::ContextScope scope(context);
  REQUIRE(context.driver().table().tensor_map_encode_tiled(map, kWords, 2,
                                                           reinterpret_cast<void*>(address), dims,
                                                           strides, box, ones, 0, kSwizzle128, 0,
                                                           0) == abi::kCudaSuccess);
}

enum Reading : std::uint32_t { kStrict, kProven };

Result launch(const ContextPointer& context, const BrokenKernel& kernel, const std::string& ptx,
              std::uint64_t seed, Reading reading = kStrict, bool checked = true,
              std::uint64_t ignored = 0) {
  abi::SimulatorOptions options = *device::simulator_options(*context);
  options.ignored = ignored;
  options.checked = checked ? 1 : 0;
  options.reading = reading;
  options.seed = seed;
  options.threads =
      static_cast<std::uint32_t>(seed % 3);  // all, 1 or 2 threads, which must not change the
                                             // result
  options.limit = 1;                         // a million instructions, so that endless loops end
  options.landing = static_cast<std::uint32_t>(seed / 2 % 3);
  options.quantum = seed % 5 == 4 ? 1 : 0;  // the number of instructions in a turn must not change
                                            // the result
  options.products = kernel.products;
  constexpr std::uint32_t kTogether = 2;
  // whether CTAs are co-resident must not change the result
  options.resident = seed / 3 % 2 == 0 ? 0 : kTogether;
  REQUIRE(device::set_simulator_options(*context, options));
  Result result;
  try {
    const auto module = device::Module::load(context, ptx);
    const device::Function function = module->function("broken");
    std::vector<std::uint32_t> in(kernel.launch.at("in") / 4);
    std::iota(in.begin(), in.end(), 0u);
    device::Buffer source = device::upload<std::uint32_t>(context, in);
    const device::Buffer out(context, kernel.launch.at("out"));
    const abi::CUdeviceptr from = source.address();
    const abi::CUdeviceptr to = out.address();
    if (kernel.launch.at("freed")) {
      source = device::Buffer();
      context->synchronize();  // after that the arena has its memory again
    }
    std::vector<const void*> parameters = {&from, &to};
    abi::CUtensorMap map;
    if (kernel.launch.at("map")) {
      encode_tensor_map(*context, from, in.size(), &map);
      parameters.push_back(&map);
    }
    device::launch(function, {kernel.launch.at("grid")}, {kernel.launch.at("block")},
                   kernel.launch.at("shared"), nullptr, const_cast<void**>(parameters.data()));
    device::synchronize(*context, nullptr);
    result.words.resize(out.bytes() / 4);
    device::copy_to_host(*context, result.words.data(), out.address(), out.bytes());
  } catch (const Error& error) {
    const std::string json = device::simulator_fault(*context);
    CHECK_MESSAGE(!json.empty(), kernel.name, ": ", error.what());
    if (!json.empty()) result.fault = base::parse_json(json, "the fault");
    device::clear_simulator_fault(*context);
  }
  return result;
}

// Whether the place of the fault, or a line that it was inlined into, has the mark.
bool at_marked_line(const BrokenKernel& kernel, const base::Json& fault) {
  if (kernel.any_line) return true;
  if (kernel.is_ptx()) return kernel.lines.contains(fault.at("ptx_line").get<int>());
  const std::string file = fault.at("file").get<std::string>();
  if (!file.ends_with(kernel.file)) return false;
  if (kernel.lines.contains(fault.at("line").get<int>())) return true;
  const std::string trace = fault.at("trace").get<std::string>();
  for (const int line : kernel.lines) {
    const std::string place = kernel.file + ":" + std::to_string(line);
    for (std::size_t at = trace.find(place); at != std::string::npos;
         at = trace.find(place, at + 1)) {
      const std::size_t end = at + place.size();
      if (end == trace.size() || trace[end] < '0' || trace[end] > '9') return true;
    }
  }
  return false;
}

struct Laboratory {
  ContextPointer context;
  ContextPointer hopper;
  abi::NvrtcLibrary nvrtc;
  std::vector<BrokenKernel> kernels;

  // Returns no value if the device is real, because these kernels would break it.
  static std::optional<Laboratory> open() {
    if (!on_simulator()) return std::nullopt;
    return Laboratory{golden::open_device(device_name()),
                      golden::open_device("sim:sm_90a"),
                      abi::find_nvrtc(abi::default_search(base::read_environment())),
                      read_broken_kernels(ANNULUS_BROKEN_KERNELS)};
  }
  const ContextPointer& device(const BrokenKernel& kernel) const {
    return kernel.architecture == "sm_90a" ? hopper : context;
  }
  // Sources in CUDA C++ need NVRTC. Without it only the .ptx files run.
  std::string ptx(const BrokenKernel& kernel) const {
    if (kernel.is_ptx()) return kernel.source;
    return nvrtc.report.usable() ? compile(nvrtc.table, kernel) : std::string();
  }
};

TEST_CASE("every broken kernel is caught, at its line, in any order of warps") {
  const auto laboratory = Laboratory::open();
  if (!laboratory) return;
  int caught = 0;
  for (const BrokenKernel& kernel : laboratory->kernels) {
    if (kernel.expected.empty()) continue;
    const std::string ptx = laboratory->ptx(kernel);
    if (ptx.empty()) continue;
    bool good = true;
    // Races between blocks get more seeds, because finding them might depend on which block runs
    // first.
    const std::uint64_t seeds = kernel.expected.contains("global memory race") ? 60 : 6;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      const Result result = launch(laboratory->device(kernel), kernel, ptx, seed);
      INFO(kernel.name, ", seed ", seed, ": ", result.fault.dump());
      CHECK_MESSAGE(!result.fault.is_null(), kernel.name, " went unnoticed");
      good = good && !result.fault.is_null();
      if (result.fault.is_null()) break;
      CHECK(kernel.expected.contains(result.fault.at("kind").get<std::string>()));
      CHECK(at_marked_line(kernel, result.fault));
    }
    caught += good ? 1 : 0;
  }
  MESSAGE(caught, " broken kernels were caught");
  if (laboratory->nvrtc.report.usable()) CHECK(caught >= 145);
}

TEST_CASE("the reading `proven` allows what kernels in production rely on, and nothing else") {
  const auto laboratory = Laboratory::open();
  if (!laboratory) return;
  int allowed = 0;
  for (const BrokenKernel& kernel : laboratory->kernels) {
    const std::string ptx = laboratory->ptx(kernel);
    if (ptx.empty()) continue;
    for (std::uint64_t seed = 0; seed < (kernel.proven.empty() ? 20 : 4); ++seed) {
      const Result result = launch(laboratory->device(kernel), kernel, ptx, seed, kProven);
      INFO(kernel.name, ", seed ", seed, ": ", result.fault.dump());
      CHECK(result.fault.is_null() == kernel.proven.empty());
      if (result.fault.is_null() || kernel.proven.empty()) continue;
      CHECK(kernel.proven.contains(result.fault.at("kind").get<std::string>()));
      CHECK(at_marked_line(kernel, result.fault));
    }
    allowed += kernel.proven.empty() && !kernel.expected.empty() ? 1 : 0;
  }
  MESSAGE(allowed, " kernels are refused in the strict reading alone");
  if (laboratory->nvrtc.report.usable()) CHECK(allowed >= 7);
}

TEST_CASE("the fast mode runs what the reading `proven` allows and a GPU runs, in both readings") {
  const auto laboratory = Laboratory::open();
  if (!laboratory) return;
  for (const BrokenKernel& kernel : laboratory->kernels) {
    if (!kernel.proven.empty() && !kernel.fast) continue;
    const std::string ptx = laboratory->ptx(kernel);
    if (ptx.empty()) continue;
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      for (const Reading reading : {kStrict, kProven}) {
        const Result result = launch(laboratory->device(kernel), kernel, ptx, seed, reading, false);
        INFO(kernel.name, ", seed ", seed, ", reading ", reading, ": ", result.fault.dump());
        CHECK(result.fault.is_null());
      }
    }
  }
}

TEST_CASE("a kernel goes on behind every kind of fault that is ignored") {
  const auto laboratory = Laboratory::open();
  if (!laboratory) return;
  std::set<std::string> kinds;
  for (const BrokenKernel& kernel : laboratory->kernels) {
    if (kernel.expected.empty()) continue;
    const std::string ptx = laboratory->ptx(kernel);
    if (ptx.empty()) continue;
    std::uint64_t ignored = 0;
    for (const std::string& kind : kernel.expected) {
      ignored |= simulator::bit(*simulator::fault_kind(kind)) & simulator::kCanBeIgnored;
    }
    if (ignored == 0) continue;
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      const Result result =
          launch(laboratory->device(kernel), kernel, ptx, seed, kStrict, true, ignored);
      INFO(kernel.name, ", seed ", seed, ": ", result.fault.dump());
      if (result.fault.is_null()) {
        kinds.insert(kernel.expected.begin(), kernel.expected.end());
        continue;
      }
      const auto kind = simulator::fault_kind(result.fault.at("kind").get<std::string>());
      REQUIRE(kind.has_value());
      CHECK((simulator::bit(*kind) & ignored) == 0);
    }
  }
  if (!laboratory->nvrtc.report.usable()) return;
  for (const char* kind : {"uninitialised read", "shared memory race", "global memory race",
                           "access to bytes in flight", "access to a register in flight",
                           "missing fence", "unwaited asynchronous effect"}) {
    CHECK_MESSAGE(kinds.contains(kind), kind);
  }
}

TEST_CASE("correct kernels are left alone and give the same bits in 200 orders") {
  const auto laboratory = Laboratory::open();
  if (!laboratory) return;
  for (const BrokenKernel& kernel : laboratory->kernels) {
    if (!kernel.expected.empty()) continue;
    const std::string ptx = laboratory->ptx(kernel);
    if (ptx.empty()) continue;
    std::vector<std::uint32_t> first;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      const Result result = launch(laboratory->device(kernel), kernel, ptx, seed);
      INFO(kernel.name, ", seed ", seed, ": ", result.fault.dump());
      REQUIRE(result.fault.is_null());
      if (seed == 0) first = result.words;
      REQUIRE(result.words == first);
    }
  }
}

}  // namespace
}  // namespace annulus::test
