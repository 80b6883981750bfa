// What the wgmma family is on paper: registers, spills and the main loop of every shipped
// configuration, read from the machine code that NVRTC and ptxas make of it. Nothing is timed and
// no GPU is asked; the figures are the same on every machine with the same compiler. nvdisasm must
// be in PATH (tools/get_nvdisasm).

#include <map>
#include <memory>
#include <stdexcept>
#include <string>

#include "abi/libraries.h"
#include "attention/kernel_source.h"
#include "base/env.h"
#include "harness.h"
#include "jit/compiler.h"
#include "sass_loop.h"

namespace {

using namespace annulus;

struct Proof {
  jit::ResourceUsage usage;
  bench::SassLoop loop;
};

// Products that the loop needs: one for each 16 of the head dim, and for each 16 keys.
double ideal_products(const attention::KernelConfig& config, const attention::Dims& dims) {
  return static_cast<double>(dims.qk) / 16 + config.blocks * config.tile_columns / 16.0;
}

// Bytes that the products of a step and the copies of the next move in shared memory, over the
// cycles in which the tensor cores do the products. 128 is what shared memory can.
double shared_bytes_per_cycle(const attention::KernelConfig& config, const attention::Dims& dims) {
  const double warpgroups = config.warps / 4;
  const double columns = config.blocks * config.tile_columns;
  const auto qk = static_cast<double>(dims.qk);
  const auto v = static_cast<double>(dims.v);
  const double bytes =
      warpgroups * 2 * (64 * qk + columns * qk + columns * v) + 2 * columns * (qk + v);
  const double cycles = warpgroups * (qk / 16 * columns / 2 + columns / 16 * v / 2);
  return bytes / cycles;
}

Proof prove(const jit::Compiler& compiler, const attention::ShippedConfig& shipped) {
  const attention::KernelFeatures features = {
      .dims = shipped.dims, .walk = kernels::Walk::kBand, .mask = "m.causal(q, k)"};
  const jit::CompiledKernel kernel =
      compiler.compile(attention::kernel_spec(shipped.config, features, {90, 'a'}));
  return {kernel.usage, bench::read_sass_loop(bench::disassemble(kernel.image))};
}

}  // namespace

int main(int argc, char** argv) {
  bench::Bench bench("sass_bench", argc, argv);
  const auto nvrtc = std::make_shared<const abi::NvrtcLibrary>(
      abi::open_nvrtc(abi::default_search(base::read_environment())));
  const auto compiler =
      std::make_shared<jit::Compiler>(nvrtc, jit::TemplateSet::embedded(), jit::ImageKind::kCubin);
  auto known = std::make_shared<std::map<const attention::ShippedConfig*, Proof>>();
  for (const attention::ShippedConfig& shipped : attention::shipped_configs()) {
    if (shipped.config.family != attention::Family::kWgmma) continue;
    const auto proof = [=, &shipped]() -> const Proof& {
      const auto at = known->find(&shipped);
      if (at != known->end()) return at->second;
      return (*known)[&shipped] = prove(*compiler, shipped);
    };
    const std::string dims =
        shipped.dims.qk == shipped.dims.v
            ? std::to_string(shipped.dims.qk)
            : std::to_string(shipped.dims.qk) + "/" + std::to_string(shipped.dims.v);
    const std::string name = "D" + dims + " " + attention::to_string(shipped.config) + ": ";
    bench.add({.name = name + "registers at entry", .unit = ""},
              [=] { return static_cast<double>(proof().usage.registers); });
    bench.add({.name = name + "spills, local memory, notes of ptxas", .unit = ""}, [=] {
      const jit::ResourceUsage& usage = proof().usage;
      return static_cast<double>(usage.spill_store_bytes + usage.spill_load_bytes +
                                 usage.local_bytes) +
             static_cast<double>(usage.notes.size());
    });
    bench.add({.name = name + "products in the loop over those needed",
               .unit = "x",
               .bar = 1,
               .lower_is_better = true},
              [=, &shipped] {
                return proof().loop.products / ideal_products(shipped.config, shipped.dims);
              });
    bench.add({.name = name + "powers computed under products", .unit = "of all", .bar = 1}, [=] {
      return static_cast<double>(proof().loop.powers_under_values) / proof().loop.powers;
    });
    bench.add({.name = name + "loop, neither product nor power", .unit = "of instructions"}, [=] {
      const bench::SassLoop& loop = proof().loop;
      return static_cast<double>(loop.instructions - loop.products - loop.powers) /
             loop.instructions;
    });
    bench.add({.name = name + "shared memory per cycle of the tensor cores",
               .unit = "bytes",
               .bar = 128,
               .lower_is_better = true},
              [&shipped] { return shared_bytes_per_cycle(shipped.config, shipped.dims); });
  }
  return bench.run();
}
