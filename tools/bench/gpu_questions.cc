// Answers the questions of gpu_questions.h on a GPU. For each variant it writes one line of JSON.
// The line has the times, the times that the pipe model predicts, clocks, power and registers, and
// whether the output agrees with the output of the question's first variant.
//
//   gpu_questions --list
//   gpu_questions --output FILE [--device cuda:0] [--question NAME] [--rounds 7] [--tiny]
//   gpu_questions --compile    prints the result of ptxas for each variant; fails if one spills, is
//                              serialised, or has other fences in its main loop than it should
//   gpu_questions --compile-into DIR [--arch sm_90a] [--question NAME] [--tiny]
//                              compiles the kernels of the questions into DIR and runs none.
//                              ANNULUS_KERNELS=DIR lets a machine without NVRTC load them from
//                              there. --arch sm_90a makes cubins; without --arch it makes PTX for
//                              the simulated device of --device
//
// Lines are appended to FILE. A variant that hangs can be stopped only with its process, so each
// question should have a separate process and time limit (as in tools/gpu_check). Exits 1 if a
// variant fails or gives another output, and 2 on wrong usage.

#include "gpu_questions.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "abi/libraries.h"
#include "ahead_kernels.h"
#include "api/impl.h"
#include "attention/cost/pipe_model.h"
#include "attention/kernels/family.h"
#include "attention/plan/predict_plan.h"
#include "attention/run/forward.h"
#include "base/fail.h"
#include "base/half.h"
#include "device/stream.h"
#include "device/tensor_map.h"
#include "gpu_operands.h"
#include "gpu_state.h"
#include "harness.h"
#include "machine_code.h"
#include "published.h"

// tools/cmake/embed_files.cmake generates this function from the .cu files of questions/.
namespace annulus::jit {
std::span<const EmbeddedFile> embedded_questions();
}

namespace {

using namespace annulus;
using Json = nlohmann::ordered_json;

struct Options {
  std::string device = "cuda:0", output, question, folder, arch;
  int rounds = 7;
  bool tiny = false;
  bool compile = false;
};

// The milliseconds of the work that `work` puts on the default stream. On a simulated device they
// are wall time of the host.
template <typename Work>
double time_of(const device::ContextPointer& context, const Work& work) {
  if (context->info().simulated) {
    const double start = bench::wall_seconds();
    work();
    device::synchronize(*context, nullptr);
    return (bench::wall_seconds() - start) * 1e3;
  }
  const device::Event start(context, device::Event::Timing::kOn);
  const device::Event end(context, device::Event::Timing::kOn);
  start.record(nullptr);
  work();
  end.record(nullptr);
  device::synchronize(*context, nullptr);
  return device::elapsed_millis(*context, start, end);
}

void note_state(const bench::GpuMonitor& monitor, Json& line) {
  const auto state = monitor.read();
  if (!state) return;
  line["sm_mhz"].push_back(state->sm_megahertz);
  line["watts"].push_back(state->milliwatts / 1000.0);
}

attention::LaunchPlan plan_of(const attention::DeviceLimits& limits,
                              const bench::GpuQuestion& question,
                              const bench::QuestionVariant& variant) {
  const attention::Choice choice =
      attention::forced_config(question.problem, limits, variant.config);
  attention::LaunchPlan plan = attention::make_plan(
      question.problem, choice, limits,
      {.dealt = variant.draws ? attention::Dealt::kDrawn : attention::Dealt::kCountedOff});
  plan.spec.defines.insert(plan.spec.defines.end(), variant.defines.begin(), variant.defines.end());
  return plan;
}

// The kernel for the question about L2, and a compiler that has its template.
jit::KernelSpec l2_kernel(jit::Arch arch) {
  return {.family = "copy_tiles",
          .arch = arch,
          .file = "questions/copies.cu",
          .entry = "copy_tiles",
          .structs = {}};
}
std::shared_ptr<const jit::Compiler> with_l2_kernel(const jit::Compiler& compiler) {
  return compiler.with(jit::TemplateSet::embedded()->with("questions", jit::embedded_questions()));
}

// Adds the pipe model's prediction for a variant, in milliseconds. The model does not take the
// defines into account.
void note_prediction(const device::DeviceInfo& info, const attention::LaunchPlan& plan,
                     Json& line) {
  const auto micros = [&](const attention::PipeDevice& device) {
    return attention::predict(device, plan).predicted_micros;
  };
  const double predicted = micros(attention::pipe_device(info));
  const attention::PredictedRange range = attention::predict_range(info, predicted, micros);
  line["predicted_ms"] = predicted / 1000;
  line["predicted_ms_range"] = {range.least / 1000, range.most / 1000};
}

// A variant that was compiled and is ready to run.
class Variant {
 public:
  Variant(const Device::Impl& device, const bench::GpuQuestion& question,
          const bench::QuestionVariant& variant)
      : context_(device.context),
        forward_(std::make_unique<attention::Forward>(
            device.context, *device.kernels, plan_of(api::limits_of(device), question, variant),
            device.device_tiles.get())),
        workspace_(device.context, static_cast<std::size_t>(forward_->plan().workspace_bytes)) {}

  int keys_of_step() const {
    const attention::KernelConfig& config = forward_->plan().config;
    return config.tile_columns * config.family->cta(config).step_tiles;
  }
  const attention::LaunchPlan& plan() const { return forward_->plan(); }
  const jit::ResourceUsage& usage() const { return forward_->lookup().kernel->usage; }
  int resident() const {
    const auto& shape = forward_->plan().shape;
    return forward_->lookup().kernel->function.blocks_per_multiprocessor(
        static_cast<int>(shape.threads), static_cast<std::size_t>(shape.shared_bytes));
  }
  double run(const Operands& operands) const {
    return time_of(context_, [&] {
      forward_->run(nullptr, operands, reinterpret_cast<void*>(workspace_.address()));
    });
  }

 private:
  device::ContextPointer context_;
  std::unique_ptr<attention::Forward> forward_;
  device::Buffer workspace_;
};

// The root mean square of the difference divided by the root mean square of `a`. NaN if either has
// a NaN.
double relative_difference(const std::vector<std::uint16_t>& a,
                           const std::vector<std::uint16_t>& b) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto x = static_cast<double>(base::bf16_to_float(a[i]));
    const auto y = static_cast<double>(base::bf16_to_float(b[i]));
    difference += (x - y) * (x - y);
    size += x * x;
  }
  return std::sqrt(difference / size);
}

class Answers {
 public:
  explicit Answers(Options options)
      : options_(std::move(options)),
        device_(Device::open(options_.device)),
        impl_(api::inside(device_)),
        monitor_(bench::pci_bus(device_)) {}

  bool answer_all() {
    bool good = true;
    if (impl_.info.architecture != "sm_90a") {
      write({{"skipped",
              "the kernels in question are for sm_90a, and this is " + impl_.info.architecture}});
      return true;
    }
    for (const bench::GpuQuestion& question : bench::gpu_questions(options_.tiny)) {
      if (wanted(question.name)) good = answer(question) && good;
    }
    if (wanted(bench::kL2Question)) good = answer_l2() && good;
    return good;
  }

 private:
  bool wanted(const std::string& name) const {
    return options_.question.empty() || options_.question == name;
  }

  bool answer(const bench::GpuQuestion& question) {
    bench::GpuOperands operands(device_, question.problem);
    std::vector<std::unique_ptr<Variant>> variants;
    std::vector<Json> lines;
    bool good = true;
    for (const bench::QuestionVariant& one : question.variants) {
      lines.push_back({{"question", question.name},
                       {"asks", question.asks},
                       {"problem", question.problem_text},
                       {"config", one.config},
                       {"defines", one.defines},
                       {"draws", one.draws},
                       {"simulated", impl_.info.simulated}});
      variants.push_back(make(question, one, operands, lines.back()));
      good = good && variants.back() != nullptr;
    }
    for (int round = 0; round < options_.rounds; ++round) {
      for (std::size_t i = 0; i < variants.size(); ++i) {
        if (variants[i] == nullptr) continue;
        lines[i]["ms"].push_back(variants[i]->run(operands.get()));
        note_state(monitor_, lines[i]);
      }
    }
    for (Json& line : lines) {
      if (line.contains("ms")) {
        const double ms = bench::median(line["ms"].get<std::vector<double>>());
        line["median_ms"] = ms;
        line["tflops"] = question.flop / (ms * 1e9);
      }
      write(line);
    }
    return good;
  }

  // Compiles a variant and runs it once. Returns null if it fails or gives a wrong output. Then it
  // is not timed.
  std::unique_ptr<Variant> make(const bench::GpuQuestion& question,
                                const bench::QuestionVariant& one, bench::GpuOperands& operands,
                                Json& line) {
    try {
      auto variant = std::make_unique<Variant>(impl_, question, one);
      line["registers"] = variant->usage().registers;
      line["spilled_bytes"] =
          variant->usage().spill_store_bytes + variant->usage().spill_load_bytes;
      line["notes_of_ptxas"] = variant->usage().notes;
      line["ctas_of_a_multiprocessor"] = variant->resident();
      note_prediction(impl_.context->info(), variant->plan(), line);
      operands.forget_output();
      variant->run(operands.get());
      const std::vector<std::uint16_t> output = operands.output();
      if (&one == &question.variants.front()) outputs_.clear();
      const auto [same_order, fresh] = outputs_.try_emplace(variant->keys_of_step(), output);
      if (&one == &question.variants.front()) first_ = output;
      const bool same = same_order->second == output;
      line["same_bits"] = fresh ? Json() : Json(same);
      const double difference = relative_difference(first_, output);
      line["relative_difference"] = difference;
      // Sums in another order differ by the rounding of P and of O in both outputs. So the bound is
      // about twice the tolerance of the dtype.
      const double most = question.problem.dtype == Dtype::kFloat8E4M3 ? 1.3e-1 : 1e-2;
      const bool alike = fresh ? difference < most : same;
      if (alike) return variant;
      line["error"] = "its output differs from the output of the variants before it";
    } catch (const Error& error) {
      line["error"] = error.what();
    }
    return nullptr;
  }

  bool answer_l2() {
    jit::KernelCache kernels(impl_.context, with_l2_kernel(*impl_.compiler), impl_.disk,
                             impl_.folders);
    const device::Function kernel = kernels.get(l2_kernel(impl_.arch)).kernel->function;
    constexpr std::size_t kSharedBytes = 8 * 16384 + 64;
    kernel.allow_dynamic_shared(kSharedBytes);
    bool good = true;
    const int copies = options_.tiny ? 20 : 20'000;
    for (const int megabytes : {1, 8, 16, 32}) {
      const int tiles = megabytes * (1 << 20) / 16384;
      good = copy_tiles(kernel, kSharedBytes, tiles, copies) && good;
      if (options_.tiny) break;
    }
    return good;
  }

  bool copy_tiles(const device::Function& kernel, std::size_t shared_bytes, int tiles, int copies) {
    const auto grid = static_cast<unsigned>(impl_.info.multiprocessors);
    std::vector<std::uint16_t> values(static_cast<std::size_t>(tiles) * 64 * 128);
    for (std::size_t i = 0; i < values.size(); ++i) {
      // The number of the tile.
      values[i] = static_cast<std::uint16_t>(i / (std::size_t{64} * 128));
    }
    const device::Buffer memory = device::upload<std::uint16_t>(impl_.context, values);
    const device::Buffer clocks(impl_.context, grid * sizeof(long long));
    const device::Buffer last(impl_.context, grid * sizeof(unsigned));
    const abi::CUtensorMap map = device::encode_tensor_map(
        *impl_.context, {.data = reinterpret_cast<const void*>(memory.address()),
                         .columns = 128,
                         .rows = std::int64_t{tiles} * 64,
                         .heads = 1,
                         .batches = 1,
                         .row_stride = 128,
                         .box_rows = 64});
    const abi::CUdeviceptr to_clocks = clocks.address(), to_last = last.address();
    Json line = {{"question", bench::kL2Question},
                 {"asks", "bytes a second and a clock that L2 gives to tensor-map copies"},
                 {"megabytes", tiles * 16384.0 / (1 << 20)},
                 {"ctas", grid},
                 {"simulated", impl_.info.simulated}};
    for (int round = 0; round <= options_.rounds; ++round) {  // the first round warms up
      const double ms = time_of(impl_.context, [&] {
        device::launch(kernel, {grid}, {32}, shared_bytes, nullptr,
                       {&map, &tiles, &copies, &to_clocks, &to_last});
      });
      if (round == 0) continue;
      line["ms"].push_back(ms);
      note_state(monitor_, line);
    }
    std::vector<long long> spent(grid);
    device::copy_to_host(*impl_.context, spent.data(), clocks.address(), clocks.bytes());
    std::vector<unsigned> words(grid);
    device::copy_to_host(*impl_.context, words.data(), last.address(), last.bytes());
    bool good = true;
    for (unsigned cta = 0; cta < grid; ++cta) {
      const unsigned tile =
          (cta * 7 + static_cast<unsigned>(copies) - 1) % static_cast<unsigned>(tiles);
      good = good && words[cta] == (tile | tile << 16);
    }
    if (!good) line["error"] = "a last tile is not the one that was requested";
    const double bytes = 16384.0 * copies;
    line["terabytes_a_second"] =
        bytes * grid / (bench::median(line["ms"].get<std::vector<double>>()) * 1e9);
    line["bytes_a_clock_of_a_multiprocessor"] =
        bytes / static_cast<double>(*std::ranges::max_element(spent));
    line["predicted_bytes_a_clock"] = attention::pipe_device(impl_.context->info()).l2_bytes;
    write(line);
    return good;
  }

  void write(const Json& line) const {
    const std::string text = line.dump();
    std::printf("%s\n", text.c_str());
    std::fflush(stdout);
    if (options_.output.empty()) return;
    std::ofstream out(options_.output, std::ios::app);
    out << text << '\n';
    if (!out) base::fail(ErrorCode::kFile, "{} cannot be written", options_.output);
  }

  Options options_;
  Device device_;
  const Device::Impl& impl_;
  bench::GpuMonitor monitor_;
  // The output of the question's first variant, and for each number of keys per step the output of
  // the first variant with that number.
  std::vector<std::uint16_t> first_;
  std::map<int, std::vector<std::uint16_t>> outputs_;
};

// Compiles the kernels of all questions into a folder.
bool compile_ahead(const Options& options) {
  bench::AheadKernels ahead(options.arch.empty() ? options.device : options.arch);
  const auto wanted = [&](const std::string& name) {
    return options.question.empty() || options.question == name;
  };
  for (const attention::DeviceLimits& limits : ahead.limits()) {
    for (const bench::GpuQuestion& question : bench::gpu_questions(options.tiny)) {
      if (!wanted(question.name)) continue;
      for (const bench::QuestionVariant& one : question.variants) {
        const attention::LaunchPlan plan = plan_of(limits, question, one);
        ahead.add(ahead.compiler(), plan.spec);
        if (!plan.split.empty()) ahead.add(ahead.compiler(), plan.combine_spec);
      }
    }
  }
  if (wanted(bench::kL2Question)) {
    ahead.add(with_l2_kernel(*ahead.compiler()), l2_kernel(ahead.limits().front().arch));
  }
  return ahead.compile_into(options.folder);
}

// Prints the resources of every variant. A simulated device is enough for that.
bool compile_all(const Options& options) {
  const Device device = Device::open("sim:sm_90a");
  const jit::Compiler compiler(std::make_shared<const abi::NvrtcLibrary>(
                                   abi::open_nvrtc(abi::default_search(base::read_environment()))),
                               jit::TemplateSet::embedded(), jit::ImageKind::kCubin);
  bool good = true;
  for (const bench::GpuQuestion& question : bench::gpu_questions(options.tiny)) {
    if (!options.question.empty() && options.question != question.name) continue;
    for (const bench::QuestionVariant& one : question.variants) {
      const auto plan = plan_of(api::limits_of(api::inside(device)), question, one);
      const jit::CompiledKernel kernel = compiler.compile(plan.spec);
      const auto loop = bench::read_main_loop(bench::decode(kernel.image, kernel.symbol));
      const int spilled = kernel.usage.spill_store_bytes + kernel.usage.spill_load_bytes;
      const bool fenced =
          std::ranges::find(one.defines, "ANNULUS_RELEASE_TO_CLUSTER") != one.defines.end();
      good = good && spilled == 0 && kernel.usage.notes.empty() && (loop.fences > 0) == fenced;
      Json line = {{"question", question.name},
                   {"config", one.config},
                   {"defines", one.defines},
                   {"draws", one.draws},
                   {"registers", kernel.usage.registers},
                   {"spilled_bytes", spilled},
                   {"notes_of_ptxas", kernel.usage.notes},
                   {"instructions_of_a_step", loop.instructions},
                   {"powers_under_products", loop.powers_under_values},
                   {"fences_of_a_step", loop.fences}};
      note_prediction(bench::h200(), plan, line);
      std::printf("%s\n", line.dump().c_str());
    }
  }
  return good;
}

void list() {
  for (const bench::GpuQuestion& question : bench::gpu_questions(true)) {
    std::printf("%s\n", question.name.c_str());
  }
  std::printf("%s\n", bench::kL2Question);
}

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--tiny") {
      options.tiny = true;
      continue;
    }
    if (name == "--compile") {
      options.compile = true;
      continue;
    }
    if (++i == argc) return false;
    if (name == "--device") {
      options.device = argv[i];
    } else if (name == "--output") {
      options.output = argv[i];
    } else if (name == "--question") {
      options.question = argv[i];
    } else if (name == "--compile-into") {
      options.folder = argv[i];
    } else if (name == "--arch") {
      options.arch = argv[i];
    } else if (name == "--rounds") {
      options.rounds = std::max(1, std::atoi(argv[i]));
    } else {
      return false;
    }
  }
  return options.arch.empty() || !options.folder.empty();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 2 && std::string(argv[1]) == "--list") {
      list();
      return 0;
    }
    Options options;
    if (!parse(argc, argv, options)) {
      std::fprintf(
          stderr,
          "usage: %s --list | [--output FILE] [--device NAME] [--question NAME] [--rounds N] "
          "[--tiny] [--compile] [--compile-into DIR [--arch sm_90a]]\n",
          argv[0]);
      return 2;
    }
    if (!options.folder.empty()) return compile_ahead(options) ? 0 : 1;
    if (options.compile) return compile_all(options) ? 0 : 1;
    return Answers(options).answer_all() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_questions: %s\n", error.what());
    return 1;
  }
}
