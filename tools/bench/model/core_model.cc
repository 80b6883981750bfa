// Prints the results of the cycle model of a sub-core (sub_core.h) for shipped configurations: the
// cycles of a step, the use of each pipe, and the reasons for which the warps wait. The main loops
// are compiled by NVRTC and ptxas on this machine. Nothing is timed and no GPU is used. The model's
// assumptions, which no GPU has confirmed, are listed in docs/kernels.md.
//
//   model core_model                        every shipped configuration of sm_80 and sm_90a
//   model core_model --config "wgmma m128 n128 w8 s2" --dim 128    any one, even if not shipped
//
//   --arch sm_80          only configurations that ship for it; with --config, the target of the
//                         compilation
//   --dim 192/128         head dims of Q and K, and of V
//   --list                kernels that read a list of tiles instead of computing them
//   --define NAME         a variant of the templates (templates/ptx/variants.cuh); may be repeated
//   --drop FMUL           the step without its instructions of that name, which shows the most that
//                         it could gain without them; may be repeated
//   --resident 2          CTAs of a multiprocessor; by default as many as fit
//   --depth 4             depth of a warpgroup's queue of products; by default 2, 4 and 16
//   --copy-latency 800    cycles from a buffer's release to its next data; by default 0
//   --assume NAME=VALUE   another value of an assumption; --assume lists them
//   --steps 80            steps of each warp, of which the first quarter is not counted
//   --waits               a second table: the cycles of a step that a warp waits, by reason
//   --trace               the instructions of one step, with the waits before each of them

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "abi/libraries.h"
#include "attention/cost/pipe_model.h"
#include "attention/kernels/kernel_source.h"
#include "attention/kernels/mma/config.h"
#include "attention/kernels/wgmma/config.h"
#include "base/env.h"
#include "jit/disk_cache.h"
#include "jit/kernel_cache.h"
#include "model/model.h"
#include "sub_core.h"

namespace {

using namespace annulus;

constexpr int kSkipped = 77;  // the exit code that ctest takes for skipped

struct Options {
  std::optional<attention::KernelConfig> config;
  std::optional<attention::Dims> dims;
  std::optional<jit::Arch> arch;
  bool list = false, waits = false, trace = false;
  std::vector<std::string> defines, dropped;
  std::vector<int> depths = {2, 4, 16};
  std::vector<std::pair<int bench::CoreAssumptions::*, int>> assumed;
  int resident = 0, copy_latency = 0, steps = bench::CoreProblem{}.steps;
};

int number_of(const std::string& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    throw std::runtime_error(text + " is not a number");
  }
  return value;
}

attention::Dims dims_of(const std::string& text) {
  const std::size_t slash = text.find('/');
  const int qk = number_of(text.substr(0, slash));
  return {qk, slash == std::string::npos ? qk : number_of(text.substr(slash + 1))};
}

std::pair<int bench::CoreAssumptions::*, int> assumption_of(const std::string& text) {
  const std::size_t equals = text.find('=');
  std::string known;
  for (const bench::NamedAssumption& one : bench::named_assumptions()) {
    if (equals != std::string::npos && text.substr(0, equals) == one.name) {
      return {one.value, number_of(text.substr(equals + 1))};
    }
    known += fmt::format("  {} = {}\n", one.name, bench::CoreAssumptions{}.*one.value);
  }
  throw std::runtime_error("--assume takes NAME=VALUE, with values of sm_90a:\n" + known);
}

Options parse(int argc, char** argv) {
  Options made;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    const auto value = [&]() -> std::string { return i + 1 < argc ? argv[++i] : ""; };
    if (option == "--list") {
      made.list = true;
    } else if (option == "--waits") {
      made.waits = true;
    } else if (option == "--trace") {
      made.trace = true;
    } else if (option == "--config") {
      const std::string text = value();
      made.config = attention::parse_config(text);
      if (!made.config) throw std::runtime_error("no configuration: " + text);
    } else if (option == "--dim") {
      made.dims = dims_of(value());
    } else if (option == "--arch") {
      made.arch = jit::parse_arch(value());
    } else if (option == "--define") {
      made.defines.push_back(value());
    } else if (option == "--drop") {
      made.dropped.push_back(value());
    } else if (option == "--resident") {
      made.resident = number_of(value());
    } else if (option == "--depth") {
      made.depths = {number_of(value())};
    } else if (option == "--copy-latency") {
      made.copy_latency = number_of(value());
    } else if (option == "--steps") {
      made.steps = std::max(4, number_of(value()));
    } else if (option == "--assume") {
      made.assumed.push_back(assumption_of(value()));
    } else {
      throw std::runtime_error("unknown option " + option + "; the head of core_model.cc has them");
    }
  }
  if (made.config && !made.dims) throw std::runtime_error("--config needs --dim");
  return made;
}

bool is_mma(const attention::KernelConfig& config) {
  return config.family == &attention::mma_family;
}

// The number of products that one warp starts in a step.
int products_of_step(const attention::KernelConfig& any, const attention::Dims& dims) {
  const auto qk = static_cast<int>(dims.qk), v = static_cast<int>(dims.v);
  if (is_mma(any)) {
    const attention::MmaConfig config = attention::mma_config(any);
    const int row_tiles = config.tile_rows / (16 * config.warps);
    return row_tiles * config.tile_columns * (qk + v) / (8 * 16);
  }
  constexpr int kPartColumns = 32;
  const int elements = 32 / static_cast<int>(any.family->element_bytes);
  const bool in_parts = any.family == &attention::wgmma8_family && promote_steps(any, dims) == 0;
  const auto columns = static_cast<int>(attention::wgmma_config(any).step_columns());
  return qk / elements + (in_parts ? v / kPartColumns : 1) * columns / elements;
}

// Removes the instructions of a name from a step. The next instruction then waits for the
// scoreboards for which they waited.
void drop(const std::string& name, std::vector<bench::Sass>& step) {
  unsigned waits_for = 0;
  for (bench::Sass& one : step) {
    if (one.name == name) {
      waits_for |= one.waits_for;
    } else {
      one.waits_for |= waits_for;
      waits_for = 0;
    }
  }
  if (std::erase_if(step, [&](const bench::Sass& one) { return one.name == name; }) == 0) {
    throw std::runtime_error("the step has no " + name);
  }
}

class Modeller {
 public:
  Modeller(std::shared_ptr<const abi::NvrtcLibrary> nvrtc, std::string cache, Options options)
      : compiler_(std::move(nvrtc), jit::TemplateSet::embedded(), jit::ImageKind::kCubin),
        disk_({.folder = std::move(cache)}),
        options_(std::move(options)) {}

  void print(const attention::KernelConfig& config, const attention::Dims& dims) {
    const jit::Arch arch =
        options_.arch.value_or(is_mma(config) ? jit::Arch{80} : jit::Arch{90, 'a'});
    if (const auto why = attention::why_illegal(config, dims, arch)) {
      throw std::runtime_error(attention::to_string(config) + ": " + *why);
    }
    bench::CoreProblem problem = problem_of(config, dims, arch);
    for (const std::string& name : options_.dropped) drop(name, problem.step);
    const std::string name = fmt::format(
        "{} | {}{}",
        dims.qk == dims.v ? fmt::format("{}", dims.qk) : fmt::format("{}/{}", dims.qk, dims.v),
        attention::to_string(config),
        problem.ctas > 1 ? fmt::format(", {} CTAs", problem.ctas) : "");
    for (const int depth : options_.depths) {
      bench::CoreAssumptions assumed = bench::core_assumptions(arch);
      assumed.product_queue = depth;
      for (const auto& [member, value] : options_.assumed) assumed.*member = value;
      std::vector<bench::TraceLine> trace;
      const bench::CoreReport report =
          bench::model_core(problem, assumed, options_.trace ? &trace : nullptr);
      print_row(name, depth, is_mma(config), report);
      print_trace(trace);
      if (is_mma(config)) break;  // the mma family has no such queue
    }
  }

  void print_head() const {
    std::string head = "| head dim | configuration | queue | cycles | tensor |",
                line = "|---|---|---|---|---|";
    if (options_.waits) {
      for (int i = 0; i < bench::kWaits; ++i) {
        head += fmt::format(" {} |", to_string(static_cast<bench::Wait>(i)));
        line += "---|";
      }
    } else {
      for (int i = 0; i + 1 < bench::kPipes; ++i) {
        head += fmt::format(" {} |", to_string(static_cast<bench::Pipe>(i)));
        line += "---|";
      }
      head += " longest waits |";
      line += "---|";
    }
    std::printf("%s\n%s\n", head.c_str(), line.c_str());
  }

 private:
  bench::CoreProblem problem_of(const attention::KernelConfig& config, const attention::Dims& dims,
                                jit::Arch arch) {
    attention::KernelFeatures features = {
        .dims = dims,
        .tile_order = options_.list ? kernels::TileOrder::kList : kernels::TileOrder::kBand,
        .mask = "m.causal(q, k)"};
    if (config.family == &attention::wgmma8_family) features.dtype = Dtype::kFloat8E4M3;
    jit::KernelSpec spec = attention::kernel_spec(config, features, arch);
    spec.defines.insert(spec.defines.end(), options_.defines.begin(), options_.defines.end());
    const jit::KernelRequest request = compiler_.prepare(spec);
    const jit::CompiledKernel kernel =
        jit::obtain_kernel(disk_, request.key, [&] { return compiler_.compile(request); }).kernel;
    constexpr int kSubCores = 4;
    const attention::CtaShape cta = attention::cta_shape(config);
    const attention::DeviceLimits limits = {arch, 1, attention::shared_limit(arch)};
    // After launch, the consumers of wgmma kernels take over registers from the producer. So the
    // compiled number of registers does not apply to them.
    const int fit = attention::resident_ctas(attention::pipe_device(limits), config, dims,
                                             is_mma(config) ? kernel.usage.registers : 0);
    const auto columns = static_cast<double>(config.tile_columns) * cta.step_tiles;
    return {.step = bench::read_step(bench::decode_sass(kernel.image, kernel.symbol, arch),
                                     products_of_step(config, dims)),
            .ctas = options_.resident > 0 ? options_.resident : std::max(1, fit),
            .warps = cta.warps / kSubCores,
            .stages = cta.stages,
            .copied_bytes = is_mma(config) ? 0
                                           : columns * static_cast<double>(dims.qk + dims.v) *
                                                 static_cast<double>(config.family->element_bytes),
            .copy_latency = options_.copy_latency,
            .steps = options_.steps};
  }

  void print_row(const std::string& name, int depth, bool has_no_queue,
                 const bench::CoreReport& report) const {
    std::string row = fmt::format("| {} | {} | {:.0f} | {:.3f} |", name,
                                  has_no_queue ? "-" : fmt::format("{}", depth), report.step_cycles,
                                  report.use(bench::Pipe::kTensor));
    if (options_.waits) {
      for (const double cycles : report.waits) row += fmt::format(" {:.0f} |", cycles);
    } else {
      for (int i = 0; i + 1 < bench::kPipes; ++i) {
        row += fmt::format(" {:.2f} |", report.use(static_cast<bench::Pipe>(i)));
      }
      row += longest_waits(report);
    }
    std::printf("%s\n", row.c_str());
  }

  // The three longest waits of a warp, as shares of the step.
  static std::string longest_waits(const bench::CoreReport& report) {
    std::vector<std::pair<double, int>> waits;
    for (int i = 1; i < bench::kWaits; ++i) {
      waits.emplace_back(report.waits[static_cast<std::size_t>(i)] / report.step_cycles, i);
    }
    std::sort(waits.rbegin(), waits.rend());
    std::string text;
    for (int i = 0; i < 3; ++i) {
      const auto& [part, which] = waits[static_cast<std::size_t>(i)];
      text += fmt::format("{} {} {:.0f} %", i == 0 ? "" : ",",
                          to_string(static_cast<bench::Wait>(which)), 100 * part);
    }
    return text + " |";
  }

  static void print_trace(const std::vector<bench::TraceLine>& trace) {
    for (const bench::TraceLine& line : trace) {
      std::string waited;
      for (int i = 1; i < bench::kWaits; ++i) {
        const int cycles = line.waited[static_cast<std::size_t>(i)];
        if (cycles > 0)
          waited += fmt::format("  {} {}", to_string(static_cast<bench::Wait>(i)), cycles);
      }
      std::printf("%8lld  warp %d  %#06llx  %-16s%s\n", static_cast<long long>(line.cycle),
                  line.warp, static_cast<unsigned long long>(line.address), line.name,
                  waited.c_str());
    }
  }

  jit::Compiler compiler_;
  jit::DiskCache disk_;
  Options options_;
};

int run(const Options& options) {
  const base::Environment environment = base::read_environment();
  auto nvrtc =
      std::make_shared<const abi::NvrtcLibrary>(abi::find_nvrtc(abi::default_search(environment)));
  if (!nvrtc->report.usable()) {
    std::printf("skipped, there is no NVRTC here: %s\n", nvrtc->report.problem.c_str());
    return kSkipped;
  }
  Modeller modeller(nvrtc, base::default_cache_dir(environment), options);
  modeller.print_head();
  if (options.config) {
    modeller.print(*options.config, *options.dims);
    return 0;
  }
  for (const attention::ShippedConfig& shipped : attention::shipped_configs()) {
    const bool of_arch = !options.arch || is_mma(shipped.config) == (options.arch->feature == '\0');
    const bool of_dims =
        !options.dims || (options.dims->qk == shipped.dims.qk && options.dims->v == shipped.dims.v);
    if (of_arch && of_dims) {
      modeller.print(shipped.config, shipped.dims);
    }
  }
  return 0;
}

}  // namespace

int annulus::bench::core_model(int argc, char** argv) {
  try {
    return run(parse(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "core_model: %s\n", error.what());
    return 1;
  }
}
