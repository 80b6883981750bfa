// Prints static properties of every shipped configuration: registers and spills. For the wgmma
// families, in the form that draws its works, it also prints properties of the main loop. They are
// read from the machine code that NVRTC and ptxas make. Nothing is timed and no GPU is used. The
// figures are the same on every machine with the same compiler.
//
//   model static_proof                     prints the table
//   model static_proof --write FILE        puts it between the marks of a document
//   model static_proof --check FILE        exits 1 if the document has another table, and 77 if the
//                                         document names another NVRTC than this machine's.
//                                         The length of a step may differ by 5 %, because small
//                                         changes of a template change it even in unrelated kernels
//   model static_proof --nvdisasm PROGRAM  also reads the main loops from a disassembler's listing,
//                                         and compares them; exits 77 if there is no such program
//
// Each form also exits 1 if a configuration breaks a rule. The rules forbid spills, local memory,
// notes of ptxas, more products than the step needs, powers that are not computed under products,
// and fences of memory or loads from global memory in the main loop.

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "abi/libraries.h"
#include "attention/kernels/kernel_source.h"
#include "attention/kernels/wgmma/config.h"
#include "base/env.h"
#include "base/thread_pool.h"
#include "document.h"
#include "jit/disk_cache.h"
#include "jit/kernel_cache.h"
#include "machine_code.h"
#include "model/model.h"

namespace {

using namespace annulus;

constexpr int kSkipped = 77;  // the exit code that ctest takes for skipped
constexpr const char* kProgram = "static_proof";

struct Proof {
  attention::ShippedConfig shipped;
  jit::ResourceUsage usage;
  std::optional<bench::MainLoop> loop;  // only for the wgmma families
  // The first rule that the configuration breaks; empty if it breaks none.
  std::string broken;
};

bool is_wgmma(const attention::ShippedConfig& shipped) {
  return shipped.config.family != &attention::mma_family;
}

// Whether a kernel of 8-bit elements multiplies P and V 32 columns at a time
// (kernels/wgmma/parts.cuh).
bool multiplies_in_parts(const attention::ShippedConfig& shipped) {
  return shipped.config.family == &attention::wgmma8_family &&
         attention::promote_steps(shipped.config, shipped.dims) == 0;
}

// The number of products that the loop needs. Q K needs one for each 32 bytes of the head dim. P V
// needs one for each 32 bytes of keys, either for all columns of V at once or for each part of the
// columns.
int needed_products(const attention::ShippedConfig& shipped) {
  constexpr int kPartColumns = 32;
  const auto& [dims, config, reach] = shipped;
  const int elements = 32 / static_cast<int>(config.family->element_bytes);
  const int parts = multiplies_in_parts(shipped) ? static_cast<int>(dims.v) / kPartColumns : 1;
  return static_cast<int>(dims.qk) / elements +
         parts * static_cast<int>(attention::wgmma_config(config).step_columns()) / elements;
}

// The bytes that the products of a step and the copies of the next step move in shared memory,
// divided by the cycles that the tensor cores take for the products. If V is transposed, it is read
// and written once more. Shared memory can move 128 bytes in a cycle.
double shared_bytes_per_cycle(const attention::KernelConfig& any, const attention::Dims& dims) {
  const attention::WgmmaConfig config = attention::wgmma_config(any);
  const double warpgroups = config.warpgroups();
  const auto columns = static_cast<double>(config.step_columns());
  const auto qk = static_cast<double>(dims.qk);
  const auto v = static_cast<double>(dims.v);
  const auto element = static_cast<double>(any.family->element_bytes);
  const double query = config.query_in_registers ? 0 : 64 * qk;
  const double elements = warpgroups * (query + columns * qk + columns * v) + columns * (qk + v) +
                          (element == 1 ? 2 * columns * v : 0);
  const double cycles = warpgroups * element / 2 * (qk / 16 * columns / 2 + columns / 16 * v / 2);
  return element * elements / cycles;
}

std::string broken_rule(const Proof& proof) {
  const jit::ResourceUsage& usage = proof.usage;
  if (usage.spill_store_bytes + usage.spill_load_bytes > 0) return "it spills";
  if (usage.local_bytes > 0) return "it uses local memory";
  if (!usage.notes.empty()) return usage.notes.front();
  if (!proof.loop) return "";
  const int needed = needed_products(proof.shipped);
  if (proof.loop->products != needed) {
    return fmt::format("{} products in a step that needs {}", proof.loop->products, needed);
  }
  if (proof.loop->fences > 0) {
    return fmt::format("{} fences of memory beyond the CTA in a step", proof.loop->fences);
  }
  // The entries of a list arrive with the keys. With 8-bit elements, the two scales of each tile
  // are loaded while its keys arrive, and so is the entry that selects the scales.
  const int loads = proof.shipped.config.family == &attention::wgmma8_family
                        ? 3 * attention::wgmma_config(proof.shipped.config).blocks
                        : 0;
  if (proof.loop->global_loads > loads) {
    return fmt::format("{} loads from global memory in a step", proof.loop->global_loads);
  }
  // Kernels that multiply in parts compute powers under the other consumer's products only.
  if (proof.loop->powers_under_values != proof.loop->powers &&
      !multiplies_in_parts(proof.shipped)) {
    return fmt::format("{} of {} powers under products", proof.loop->powers_under_values,
                       proof.loop->powers);
  }
  return "";
}

class Prover {
 public:
  Prover(std::shared_ptr<const abi::NvrtcLibrary> nvrtc, std::string cache, std::string nvdisasm)
      : compiler_(std::move(nvrtc), jit::TemplateSet::embedded(), jit::ImageKind::kCubin),
        disk_({.folder = std::move(cache)}),
        nvdisasm_(std::move(nvdisasm)) {}

  // Proves the kernel that computes its tiles by arithmetic. The kernel that reads a list must obey
  // the rules as well.
  Proof prove(const attention::ShippedConfig& shipped) {
    Proof proof = prove(shipped, kernels::TileOrder::kBand);
    if (!is_wgmma(shipped) || !proof.broken.empty()) return proof;
    const std::string broken = prove(shipped, kernels::TileOrder::kList).broken;
    if (!broken.empty()) proof.broken = "with a list: " + broken;
    return proof;
  }

 private:
  Proof prove(const attention::ShippedConfig& shipped, kernels::TileOrder tile_order) {
    attention::KernelFeatures features = {
        .dims = shipped.dims, .tile_order = tile_order, .mask = "m.causal(q, k)"};
    features.draws_work = is_wgmma(shipped);
    if (shipped.config.family == &attention::wgmma8_family) features.dtype = Dtype::kFloat8E4M3;
    const jit::Arch arch = is_wgmma(shipped) ? jit::Arch{90, 'a'} : jit::Arch{80, '\0'};
    const jit::KernelRequest request =
        compiler_.prepare(attention::kernel_spec(shipped.config, features, arch));
    const jit::CompiledKernel kernel =
        jit::obtain_kernel(disk_, request.key, [&] { return compiler_.compile(request); }).kernel;
    Proof proof = {shipped, kernel.usage, {}, {}};
    if (is_wgmma(shipped)) {
      proof.loop = bench::read_main_loop(bench::decode(kernel.image, kernel.symbol));
    }
    proof.broken = broken_rule(proof);
    if (proof.loop && !nvdisasm_.empty()) {
      const auto listed = bench::decode_listing(bench::disassemble(nvdisasm_, kernel.image));
      if (bench::read_main_loop(listed) != *proof.loop)
        proof.broken = "nvdisasm reads another loop";
    }
    return proof;
  }

  jit::Compiler compiler_;
  jit::DiskCache disk_;
  std::string nvdisasm_;
};

std::string dims_text(const attention::Dims& dims) {
  return dims.qk == dims.v ? fmt::format("{}", dims.qk) : fmt::format("{}/{}", dims.qk, dims.v);
}

std::string row(const Proof& proof) {
  const auto& [shipped, usage, loop, broken] = proof;
  std::string text = fmt::format("| {} | {} | {} | {} | {} | {} |", dims_text(shipped.dims),
                                 attention::to_string(shipped.config), usage.registers,
                                 usage.spill_store_bytes + usage.spill_load_bytes,
                                 usage.local_bytes, usage.notes.size());
  if (!loop) return text + " | | | | |\n";
  return text +
         fmt::format(
             " {} | {} / {} | {} / {} | {:.1f} % | {:.1f} |\n", loop->instructions, loop->products,
             needed_products(shipped), loop->powers_under_values, loop->powers,
             100.0 * (loop->instructions - loop->products - loop->powers) / loop->instructions,
             shared_bytes_per_cycle(shipped.config, shipped.dims));
}

std::string compiler_text(const std::string& version) {
  return fmt::format("Causal kernels as NVRTC {} compiles them", version);
}

std::string table(const std::vector<Proof>& proofs, const std::string& version) {
  std::string text =
      compiler_text(version) +
      ": `mma` for sm_80 and `wgmma` for sm_90a of bf16, `wgmma8` for sm_90a of e4m3.\n\n"
      "| head dim | configuration | registers | spilled bytes | local bytes | notes of ptxas | "
      "instructions of a step | products / needed | powers under products / all | neither | "
      "shared bytes a cycle |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const Proof& proof : proofs) text += row(proof);
  return text;
}

std::vector<std::string> columns_of(const std::string& row) {
  std::vector<std::string> columns;
  std::istringstream stream(row);
  for (std::string one; std::getline(stream, one, '|');) columns.push_back(one);
  return columns;
}

// Whether a document's table agrees with a new table.
bool agrees(const std::string& kept, const std::string& made) {
  constexpr std::size_t kInstructions = 7, kNeither = 10;
  std::istringstream old_rows(kept), new_rows(made);
  std::string one, other;
  while (std::getline(new_rows, other)) {
    if (!std::getline(old_rows, one)) return false;
    const auto before = columns_of(one), now = columns_of(other);
    if (before.size() != now.size()) return false;
    for (std::size_t i = 0; i < now.size(); ++i) {
      const int length = i == kInstructions ? std::atoi(now[i].c_str()) : 0;
      const bool near =
          length > 0 && std::abs(std::atoi(before[i].c_str()) - length) * 20 <= length;
      if (before[i] != now[i] && !near && i != kNeither) return false;
    }
  }
  return !std::getline(old_rows, one);
}

int run(const std::string& mode, const std::string& argument) {
  const base::Environment environment = base::read_environment();
  auto nvrtc =
      std::make_shared<const abi::NvrtcLibrary>(abi::find_nvrtc(abi::default_search(environment)));
  if (!nvrtc->report.usable()) {
    std::printf("skipped, there is no NVRTC here: %s\n", nvrtc->report.problem.c_str());
    return kSkipped;
  }
  const std::string version = nvrtc->report.version_text;
  if (mode == "--nvdisasm" && !std::filesystem::exists(argument)) {
    std::printf("skipped, there is no %s: tools/get_nvdisasm fetches it\n", argument.c_str());
    return kSkipped;
  }
  Prover prover(nvrtc, base::default_cache_dir(environment),
                mode == "--nvdisasm" ? argument : std::string());
  const auto shipped = attention::shipped_configs();
  std::vector<Proof> proofs(shipped.size());
  base::ThreadPool pool;
  pool.parallel_for(static_cast<std::int64_t>(shipped.size()), [&](std::int64_t index, int) {
    const auto i = static_cast<std::size_t>(index);
    proofs[i] = prover.prove(shipped[i]);
  });
  int code = 0;
  for (const Proof& proof : proofs) {
    if (proof.broken.empty()) continue;
    std::printf("D%s %s: %s\n", dims_text(proof.shipped.dims).c_str(),
                attention::to_string(proof.shipped.config).c_str(), proof.broken.c_str());
    code = 1;
  }
  const std::string made = table(proofs, version);
  if (mode == "--write") {
    bench::write_document(argument, bench::read_document(argument, kProgram), made);
  } else if (mode == "--check") {
    const std::string kept = bench::read_document(argument, kProgram).table;
    if (agrees(kept, made) || code != 0) return code;
    if (!kept.starts_with(compiler_text(version))) {
      std::printf("skipped: %s has the figures of another NVRTC than %s\n", argument.c_str(),
                  version.c_str());
      return kSkipped;
    }
    std::printf("%s has another table; static_proof --write makes this one:\n%s", argument.c_str(),
                made.c_str());
    code = 1;
  } else if (mode.empty()) {
    std::fputs(made.c_str(), stdout);
  }
  return code;
}

}  // namespace

int annulus::bench::static_proof(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const bool known =
      mode.empty() ? argc == 1
                   : argc == 3 && (mode == "--write" || mode == "--check" || mode == "--nvdisasm");
  if (!known) {
    std::fprintf(stderr, "usage: %s [--write FILE | --check FILE | --nvdisasm PROGRAM]\n", argv[0]);
    return 2;
  }
  try {
    return run(mode, argc > 2 ? argv[2] : "");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "static_proof: %s\n", error.what());
    return 1;
  }
}
