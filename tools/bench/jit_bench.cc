// Measures the time to get a kernel before its first launch from the compiler, from disk and from
// memory.

#include <unistd.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "attention/kernels/family.h"
#include "attention/kernels/kernel_source.h"
#include "attention/plan/plan.h"
#include "base/fail.h"
#include "batch/batch_plan.h"
#include "harness.h"
#include "jit/kernel_cache.h"
#include "support/simulator.h"

namespace {

using namespace annulus;

// The spec of causal attention for any lengths, without carried state.
jit::KernelSpec causal_spec(const attention::ShippedConfig& shipped) {
  attention::KernelFeatures features = {
      .dims = shipped.dims, .tile_order = kernels::TileOrder::kBand, .mask = "m.causal(q, k)"};
  const bool hopper = shipped.reach == attention::Reach::kHopper;
  return attention::kernel_spec(shipped.config, features,
                                hopper ? jit::Arch{90, 'a'} : jit::Arch{80, '\0'});
}

// The kernel that a plan compiles for a problem on an H200: H32 with 8 key heads, S16384, D128.
jit::KernelSpec planned(Pattern pattern) {
  Problem problem;
  problem.heads = 32;
  problem.kv_heads = 8;
  problem.seq_q = problem.seq_k = 16384;
  problem.dim_qk = problem.dim_v = 128;
  problem.pattern = std::move(pattern);
  const attention::DeviceLimits limits = {{90, 'a'}, 132, 227 * 1024};
  return attention::make_plan(problem, attention::choose_config(problem, limits), limits,
                              {.dealt = attention::Dealt::kAsPays})
      .spec;
}

// Every row of blocks keeps the block on the diagonal, and every eighth block before it.
std::shared_ptr<const BlockLayout> kept_blocks() {
  auto layout = std::make_shared<BlockLayout>(BlockLayout{.block_rows = 128,
                                                          .block_columns = 128,
                                                          .seq_q = 16384,
                                                          .seq_k = 16384,
                                                          .indptr = {0},
                                                          .indices = {},
                                                          .partial = {}});
  for (std::int32_t row = 0; row < 128; ++row) {
    for (std::int32_t column = row % 8; column <= row; column += 8) {
      layout->indices.push_back(column);
    }
    layout->indptr.push_back(static_cast<std::int64_t>(layout->indices.size()));
  }
  return layout;
}

// The kernel that decodes sixteen requests of H32 with 8 key heads, D128, from pages of 16 rows.
jit::KernelSpec decoding(const attention::DeviceLimits& limits) {
  BatchProblem problem;
  problem.heads = 32;
  problem.kv_heads = 8;
  problem.dim_qk = problem.dim_v = 128;
  problem.pattern = causal();
  problem.page_rows = 16;
  problem.most = {.requests = 16, .rows = 16, .rows_of_one = 1, .keys_of_one = 4096};
  return batch::make_plan(problem, {}, limits).classes.front().spec;
}

// The most common masks of engines and models, with their names in docs/patterns.md.
std::vector<std::pair<const char*, Pattern>> common_masks() {
  return {{"dense", Pattern::parse("dense")},
          {"causal", Pattern::parse("causal")},
          {"sliding window", Pattern::parse("causal & window(4095, 0)")},
          {"sinks and window", Pattern::parse("causal & (sink(64) | window(1023, 0))")},
          {"window and global", Pattern::parse("window(255, 255) | global(64)")},
          {"prefix", Pattern::parse("prefix(1000) | causal")},
          {"documents", Pattern::parse("causal & documents([0, 3000, 9000, 12000])")},
          {"hierarchical", Pattern::parse("preset(hierarchical_long_range)")},
          {"list of blocks", blocks(kept_blocks())},
          {"causal in a list of blocks", causal() & blocks(kept_blocks())}};
}

// Milliseconds of an action. If one thread computes and nothing waits, pass the processor time of
// the process as `clock`. It equals the wall time on an idle machine, and it excludes other
// programs.
double milliseconds(double (*clock)(), const std::function<void()>& action) {
  const double start = clock();
  action();
  return (clock() - start) * 1e3;
}

}  // namespace

int main(int argc, char** argv) {
  bench::Bench bench("jit_bench", argc, argv);
  const auto nvrtc = std::make_shared<const abi::NvrtcLibrary>(
      abi::open_nvrtc(abi::default_search(base::read_environment())));
  const auto templates = jit::TemplateSet::embedded();
  const auto cubin =
      std::make_shared<const jit::Compiler>(nvrtc, templates, jit::ImageKind::kCubin);
  const auto ptx = std::make_shared<const jit::Compiler>(nvrtc, templates, jit::ImageKind::kPtx);

  const auto compile = [](std::shared_ptr<const jit::Compiler> compiler, jit::KernelSpec spec) {
    return [compiler, spec] {
      return milliseconds(bench::process_seconds, [&] { compiler->compile(spec); });
    };
  };
  constexpr std::pair<int, double> kBars[] = {{64, 190}, {128, 260}, {256, 430}};
  std::optional<jit::KernelSpec> d128;
  for (const auto& [dim, bar] : kBars) {
    for (const attention::ShippedConfig& shipped : attention::shipped_configs()) {
      if (shipped.dims.qk != dim || shipped.dims.v != dim) continue;
      if (shipped.config.family != &attention::mma_family) continue;
      bench.add({fmt::format("to cubin, D{} {}", dim, to_string(shipped.config)), "ms", bar, true},
                compile(cubin, causal_spec(shipped)));
      if (dim == 128 && !d128) d128 = causal_spec(shipped);
    }
  }
  // Each measurement warms up once, so no measured compilation is the first of the process.
  constexpr std::pair<const char*, double> kHopper[] = {{"wgmma m128 n128 w8 s2", 590},
                                                        {"wgmma m128 n64 w8 s2", 420}};
  for (const auto& [config, bar] : kHopper) {
    const attention::ShippedConfig at = {
        {128, 128}, *attention::parse_config(config), attention::Reach::kHopper};
    bench.add({fmt::format("to cubin, D128 {}", config), "ms", bar, true},
              compile(cubin, causal_spec(at)));
  }
  for (const auto& [name, pattern] : common_masks()) {
    bench.add({fmt::format("to cubin, planned for an H200: {}", name), "ms", 800, true},
              compile(cubin, planned(pattern)));
  }
  for (const auto& [name, limits] :
       {std::pair{"an A100", attention::DeviceLimits{{80, '\0'}, 108, 163 * 1024}},
        std::pair{"an H200", attention::DeviceLimits{{90, 'a'}, 132, 227 * 1024}}}) {
    bench.add({fmt::format("to cubin, D128 decoding on {}", name), "ms", 190, true},
              compile(cubin, decoding(limits)));
  }
  bench.add({"to PTX with lines, the first of D128", "ms", 0, true}, compile(ptx, *d128));

  std::string folder = (std::filesystem::temp_directory_path() / "annulus-bench-XXXXXX").string();
  if (!mkdtemp(folder.data())) return 1;
  const auto disk = std::make_shared<jit::DiskCache>(jit::DiskCacheOptions{.folder = folder});
  const jit::KernelRequest request = cubin->prepare(*d128);
  const jit::CompiledKernel kernel = cubin->compile(request);
  disk->store(request.key, kernel);
  bench.add({"cubin from disk, read and verified", "ms", 1, true}, [&] {
    return milliseconds(bench::wall_seconds, [&] {
      if (!disk->find(request.key)) base::fail(ErrorCode::kInternal, "the kernel is not on disk");
    });
  });
  bench.add({"cubin to disk, synced", "ms", 0, true}, [&] {
    return milliseconds(bench::wall_seconds, [&] { disk->store(request.key, kernel); });
  });

  // This is measured on the simulator, whose loader parses PTX. A real driver copies a cubin
  // instead.
  const device::DriverPointer driver = test::simulator_driver();
  const auto context = device::Context::retain(driver, test::number_of_simulated(*driver, "sm_80"));
  const jit::KernelRequest simulated = ptx->prepare(*d128);
  jit::KernelCache warm(context, ptx, disk);
  warm.get(simulated);
  const auto fresh = [&] { return jit::KernelCache(context, ptx, disk).get(simulated); };
  bench.add({"PTX from disk, read and verified", "ms", 1, true}, [=] { return fresh().disk_ms; });
  bench.add({"PTX into a module of the simulator", "ms", 0, true}, [=] { return fresh().load_ms; });
  constexpr int kHits = 100'000;
  bench.add({"kernel in memory", "us", 1, true}, [&] {
    const auto hits = [&] {
      for (int i = 0; i < kHits; ++i) {
        if (warm.get(simulated).origin != jit::Origin::kMemory) {
          base::fail(ErrorCode::kInternal, "the kernel is not in memory");
        }
      }
    };
    return milliseconds(bench::wall_seconds, hits) * 1e3 / kHits;
  });
  bench.add({"spec to request", "us", 0, true}, [&] {
    return milliseconds(bench::wall_seconds, [&] { cubin->prepare(*d128); }) * 1e3;
  });

  const int code = bench.run();
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return code;
}
