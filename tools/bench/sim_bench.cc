// Measures the simulator. Figures are the warp instructions per second of the sm_80 kernel at B 1,
// H 2, S 1024, D 128, causal, in checked mode and in fast mode, on one core and on all cores; and
// the time of such a run of the sm_90a kernel in checked mode. The figures describe the simulator
// as a program. They have no meaning for a GPU.

#include <annulus/device.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "harness.h"

namespace {

constexpr std::int64_t kHeads = 2, kRows = 1024, kDim = 128;

// One plan with one set of operands and one way to simulate. run() is the measured work.
class Case {
 public:
  Case(const char* device, const char* config, bool checked, unsigned threads)
      : simulation_{.checked = checked, .threads = threads},
        device_(annulus::Device::open(device)),
        plan_(device_.plan(problem(), options(config))),
        memory_(device_.allocate(4 * kBytes)),
        workspace_(device_.allocate(plan_.workspace_bytes())) {
    std::vector<std::uint16_t> host(2 * kBytes);
    std::uint32_t state = 1;
    for (std::uint16_t& value : host) {
      state = state * 1664525u + 1013904223u;
      // A bf16 number of either sign whose magnitude is in [1/2, 1).
      value = static_cast<std::uint16_t>((state >> 16 & 0x807f) | 0x3f00);
    }
    device_.copy_to_device(memory_.data(), host.data(), memory_.bytes());
  }

  struct Run {
    double seconds;
    double warp_instructions;
  };
  Run run() {
    auto* base = static_cast<std::byte*>(memory_.data());
    annulus::Operands operands;
    operands.q = base;
    operands.k = base + kBytes;
    operands.v = base + 2 * kBytes;
    operands.o = base + 3 * kBytes;
    operands.q_strides = operands.k_strides = operands.v_strides = operands.o_strides =
        annulus::Strides::bshd(kRows, kHeads, kDim);
    // All cases share the device, and options belong to the device. So each case sets its options
    // before it runs.
    device_.set_simulation(simulation_);
    device_.counters(true);
    const double begin = annulus::bench::wall_seconds();
    plan_.run(nullptr, operands, workspace_.data());
    device_.synchronize();
    const double seconds = annulus::bench::wall_seconds() - begin;
    for (const auto& [name, value] : device_.counters()) {
      if (name == "warp_instructions") return {seconds, static_cast<double>(value)};
    }
    throw std::runtime_error("the device has no counter warp_instructions");
  }

 private:
  static constexpr std::size_t kBytes = std::size_t{2} * kHeads * kRows * kDim;

  static annulus::Problem problem() {
    annulus::Problem problem;
    problem.heads = problem.kv_heads = kHeads;
    problem.seq_q = problem.seq_k = kRows;
    problem.dim_qk = problem.dim_v = kDim;
    problem.pattern = annulus::causal();
    return problem;
  }

  static annulus::PlanOptions options(const char* config) {
    annulus::PlanOptions options;
    options.config = config;
    options.kv_splits = 1;
    return options;
  }

  annulus::SimulationOptions simulation_;
  annulus::Device device_;
  annulus::Plan plan_;
  annulus::DeviceMemory memory_;
  annulus::DeviceMemory workspace_;
};

}  // namespace

int main(int argc, char** argv) {
  annulus::bench::Bench bench("sim_bench", argc, argv);
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  const char* unit = "M warp inst/s";
  const auto add = [&](annulus::bench::Figure figure, bool checked, unsigned threads) {
    auto work = std::make_shared<std::unique_ptr<Case>>();
    bench.add(std::move(figure), [=] {
      if (!*work) *work = std::make_unique<Case>("sim:sm_80", "", checked, threads);
      const Case::Run run = (*work)->run();
      return run.warp_instructions * 1e-6 / run.seconds;
    });
  };
  const auto add_hopper = [&](const char* name, double most, unsigned threads) {
    auto work = std::make_shared<std::unique_ptr<Case>>();
    bench.add({.name = name, .unit = "ms", .bar = most, .lower_is_better = true}, [=] {
      if (!*work) {
        *work = std::make_unique<Case>("sim:sm_90a", "wgmma m128 n128 w8 s2", true, threads);
      }
      return (*work)->run().seconds * 1e3;
    });
  };
  add({.name = "checked mode, one core", .unit = unit, .bar = 12}, true, 1);
  add({.name = "checked mode, all cores", .unit = unit}, true, cores);
  add({.name = "fast mode, one core", .unit = unit, .bar = 25}, false, 1);
  add({.name = "fast mode, all cores", .unit = unit}, false, cores);
  add_hopper("sm_90a kernel, checked, one core", 200, 1);
  add_hopper("sm_90a kernel, checked, all cores", cores == 2 ? 110 : 0, cores);
  const double bar = cores == 2 ? 1.8 : 0;
  bench.add_ratio({.name = "checked mode, all cores over one", .unit = "x", .bar = bar},
                  "checked mode, all cores", "checked mode, one core");
  bench.add_ratio({.name = "fast mode, all cores over one", .unit = "x"}, "fast mode, all cores",
                  "fast mode, one core");
  return bench.run();
}
