// Figures of general kernels (attention/plan/general.h): the size of their machine code, the number
// of their instructions relative to the specialised kernels of the same problems, the time to plan
// with one, and the delay until the specialised kernel is ready.

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "annulus/device.h"
#include "attention/plan/general.h"
#include "base/env.h"
#include "base/fail.h"
#include "base/random.h"
#include "harness.h"
#include "jit/compiler.h"

namespace {

using namespace annulus;

// The machine code of the general kernels of an architecture. Each kernel is counted once.
struct MachineCode {
  std::int64_t bytes = 0;
  int spilled_bytes = 0;  // the spilled bytes of the kernel that spills most
};

MachineCode machine_code(jit::Arch arch) {
  const auto nvrtc = std::make_shared<const abi::NvrtcLibrary>(
      abi::open_nvrtc(abi::default_search(base::read_environment())));
  const jit::Compiler compiler(nvrtc, jit::TemplateSet::embedded(), jit::ImageKind::kCubin);
  MachineCode code;
  for (const jit::KernelSpec& spec : attention::general_specs(arch)) {
    const jit::CompiledKernel made = compiler.compile(spec);
    code.bytes += static_cast<std::int64_t>(made.image.size());
    code.spilled_bytes =
        std::max(code.spilled_bytes, made.usage.spill_store_bytes + made.usage.spill_load_bytes);
  }
  return code;
}

// Returns a function that calls make() at most once and repeats its result.
template <typename Make>
auto once(Make make) {
  using Value = decltype(make());
  return [make, value = std::make_shared<std::unique_ptr<Value>>()]() -> const Value& {
    if (!*value) *value = std::make_unique<Value>(make());
    return **value;
  };
}

Problem problem_of(const Pattern& pattern, std::int64_t length, std::int64_t dim) {
  Problem problem;
  problem.heads = 2;
  problem.seq_q = problem.seq_k = length;
  problem.dim_qk = problem.dim_v = dim;
  problem.pattern = pattern;
  return problem;
}

PlanOptions general() {
  PlanOptions options;
  options.wait = false;
  options.swap = Swap::kNever;
  return options;
}

double instructions(const Device& device, const Problem& problem, const PlanOptions& options) {
  const Plan plan = device.plan(problem, options);
  const auto bytes = static_cast<std::size_t>(problem.heads * problem.seq_q * problem.dim_qk) * 2;
  const DeviceMemory memory = device.allocate(4 * bytes);
  const std::vector<std::uint16_t> ones(2 * bytes, 0x3f80);
  device.copy_to_device(memory.data(), ones.data(), 4 * bytes);
  auto* const at = static_cast<std::byte*>(memory.data());
  Operands operands;
  operands.q = at;
  operands.k = at + bytes;
  operands.v = at + 2 * bytes;
  operands.o = at + 3 * bytes;
  operands.q_strides = operands.o_strides = operands.k_strides = operands.v_strides =
      Strides::bshd(problem.seq_q, problem.heads, problem.dim_qk);
  const DeviceMemory workspace = device.allocate(plan.workspace_bytes());
  device.counters(true);
  plan.run(nullptr, operands, workspace.data());
  device.synchronize();
  const Counters counters = device.counters();
  return static_cast<double>(
      std::ranges::find(counters, "warp_instructions", &Counters::value_type::first)->second);
}

// A problem of 2^18 tokens and its number of blocks. Its pattern is a random list of blocks, and
// each seed gives a different list.
std::pair<Problem, double> listed(std::uint64_t seed) {
  constexpr std::int64_t kRows = 2048, kKept = 64, kBlock = 128;
  base::Random random(seed);
  auto layout = std::make_shared<BlockLayout>(
      BlockLayout{kBlock, kBlock, kRows * kBlock, kRows * kBlock, 1, {0}, {}, {}});
  for (std::int64_t row = 0; row < kRows; ++row) {
    std::set<std::int32_t> columns;
    while (std::ssize(columns) < kKept) {
      columns.insert(static_cast<std::int32_t>(random.below(kRows)));
    }
    layout->indices.insert(layout->indices.end(), columns.begin(), columns.end());
    layout->indptr.push_back(std::ssize(layout->indices));
  }
  const auto blocks_kept = static_cast<double>(layout->indices.size());
  return {problem_of(blocks(std::move(layout)), kRows * kBlock, 128), blocks_kept};
}

constexpr std::pair<const char*, const char*> kMasks[] = {
    {"causal", "causal"},
    {"window with global", "causal & (window(511, 0) | global(64))"},
    {"documents", "causal & documents([0, 300, 420, 1100, 1500, 1900])"}};
constexpr double kBars[] = {1.25, 1.5, 1.5};

// The time from plan() until the specialised kernel is ready, divided by the time of a call that
// waits for that kernel. Each of the two uses a separate device, which has no kernels on disk and
// already has the general kernel.
double late_over_waiting(const char* name) {
  const Problem problem = problem_of(Pattern::parse(kMasks[1].second), 2048, 128);
  const auto seconds = [&](bool wait) {
    DeviceOptions options;
    options.name = name;
    options.cache_dir = "none";
    const Device device = Device::open(options);
    device.plan(problem_of(Pattern::parse("dense"), 2048, 128), general());
    PlanOptions asked;
    asked.wait = wait;
    const auto start = std::chrono::steady_clock::now();
    const Plan plan = device.plan(problem, asked);
    plan.wait();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (!plan.ready()) base::fail(ErrorCode::kInternal, "{}", plan.why_general());
    return took.count();
  };
  const double waiting = seconds(true);
  return seconds(false) / waiting;
}

}  // namespace

int main(int argc, char** argv) {
  bench::Bench bench("general_bench", argc, argv);
  const auto ampere = once([] { return machine_code({80, '\0'}); });
  const auto hopper = once([] { return machine_code({90, 'a'}); });
  bench.add({"machine code of general kernels, sm_80 and sm_90a", "MB", 4, true},
            [=] { return static_cast<double>(ampere().bytes + hopper().bytes) / 1e6; });
  bench.add({"spilled by a thread of one, at most", "bytes", 0, true},
            [=] { return std::max(ampere().spilled_bytes, hopper().spilled_bytes); });
  SimulationOptions fast;
  fast.checked = false;
  for (const char* name : {"sim:sm_80", "sim:sm_90a"}) {
    DeviceOptions options;
    options.name = name;
    options.simulation = fast;
    const Device device = Device::open(options);
    for (const std::int64_t dim : {64, 128}) {
      for (std::size_t i = 0; i < std::size(kMasks); ++i) {
        const auto& [title, text] = kMasks[i];
        const Problem problem = problem_of(Pattern::parse(text), 2048, dim);
        const auto ratio = once([=] {
          return instructions(device, problem, general()) / instructions(device, problem, {});
        });
        bench.add(
            {fmt::format("instructions, {} of the specialised: {}, D{}", title, name + 4, dim),
             "times", kBars[i], true},
            [=] { return ratio(); });
      }
    }
    bench.add({fmt::format("plan with a general kernel, a list without order, {}", name + 4),
               "ns a block", 40, true},
              [device, seed = std::make_shared<std::uint64_t>(0)] {
                const auto [problem, kept] = listed(++*seed);
                const double start = bench::thread_seconds();
                device.plan(problem, general());
                return (bench::thread_seconds() - start) * 1e9 / kept;
              });
    bench.add(
        {fmt::format("specialised kernel beside the caller, over a call that waits, {}", name + 4),
         "times", 1.2, true},
        [name] { return late_over_waiting(name); });
    for (const auto& [title, text] : kMasks) {
      const Problem problem = problem_of(Pattern::parse(text), 1 << 20, 128);
      bench.add({fmt::format("plan with a general kernel, {}, 2^20 tokens, {}", title, name + 4),
                 "ms", 1, true},
                [=] {
                  const double start = bench::thread_seconds();
                  device.plan(problem, general());
                  return (bench::thread_seconds() - start) * 1e3;
                });
    }
  }
  return bench.run();
}
