// Measures how evenly works are distributed: the load of the busiest multiprocessor divided by the
// mean load, for plans on an H200 whose tile rows have different lengths and are not split. The
// tile scheduler of the configuration that the heuristic chooses deals the works. It runs on the
// simulator with one CTA on each multiprocessor. Instead of computing attention, a CTA waits on the
// simulator's virtual clock for the cycles that the pipe model predicts for its work
// (dealing/deal_works.cu). In one run all multiprocessors are equally fast. In five further runs,
// one for each seed, their speeds differ by up to 5 %. The output is the same on every machine.
//
//   dealing_bench [--filter TEXT] [--check]    --check: exits 1 if a target is missed

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "api/impl.h"
#include "attention/cost/pipe_model.h"
#include "attention/kernels/family.h"
#include "attention/plan/choose_config.h"
#include "attention/plan/plan.h"
#include "attention/plan/predict_plan.h"
#include "attention/run/forward.h"
#include "base/fail.h"
#include "base/random.h"
#include "device/buffer.h"
#include "gpu_problems.h"
#include "harness.h"
#include "jit/kernel_cache.h"

// tools/cmake/embed_files.cmake generates this function from the .cu files of dealing/.
namespace annulus::jit {
std::span<const EmbeddedFile> embedded_dealing();
}

namespace {

using namespace annulus;

constexpr double kEqualBar = 1.05, kUnequalBar = 1.10;
constexpr double kSpread = 0.05;
constexpr std::uint64_t kSeeds = 5;
// The cycles of one poll of the virtual clock, including the instructions around it. All CTAs wait
// by polling (simulator/run/virtual_clock.h).
constexpr double kPollCycles = 205;
// The largest number of polls of all CTAs in a launch. In a longer launch all cycles are scaled
// down. The time to draw a work is not scaled, so it has more weight there.
constexpr double kMaxPolls = 1.5e6;

struct Row {
  std::string name;
  Problem problem;
};

Problem bf16(std::int64_t heads, std::int64_t kv_heads, std::int64_t seq, std::int64_t dim,
             const Pattern& pattern) {
  Problem problem;
  problem.heads = heads;
  problem.kv_heads = kv_heads;
  problem.seq_q = problem.seq_k = seq;
  problem.dim_qk = problem.dim_v = dim;
  problem.pattern = pattern;
  problem.want_lse = true;  // the kernel writes its results there
  return problem;
}

// A layout with blocks of 128 x 128. Row r of head h keeps `kept(h, r)` blocks: the block on the
// diagonal, and others drawn at random.
template <typename Kept>
Pattern rows_of(std::int64_t seq, std::int64_t heads, const Kept& kept) {
  constexpr std::int64_t kBlock = 128;
  const std::int64_t count = seq / kBlock;
  BlockLayout layout;
  layout.block_rows = layout.block_columns = kBlock;
  layout.seq_q = layout.seq_k = seq;
  layout.heads = heads;
  layout.indptr = {0};
  base::Random random(23);
  std::vector<std::int32_t> all(static_cast<std::size_t>(count));
  for (std::int64_t head = 0; head < heads; ++head) {
    for (std::int64_t row = 0; row < count; ++row) {
      std::iota(all.begin(), all.end(), 0);
      std::swap(all[0], all[static_cast<std::size_t>(row)]);
      const std::int64_t blocks = std::clamp<std::int64_t>(kept(head, row), 1, count);
      for (std::int64_t i = 1; i < blocks; ++i) {
        const std::int64_t other = i + random.below(static_cast<std::uint32_t>(count - i));
        std::swap(all[static_cast<std::size_t>(i)], all[static_cast<std::size_t>(other)]);
      }
      std::sort(all.begin(), all.begin() + blocks);
      layout.indices.insert(layout.indices.end(), all.begin(), all.begin() + blocks);
      layout.indptr.push_back(static_cast<std::int64_t>(layout.indices.size()));
    }
  }
  return blocks(layout);
}

// A number below `count` that looks random. Different rows give different numbers.
std::int64_t shuffled(std::int64_t row, std::int64_t head, std::int64_t count) {
  return (row * 37 + head * 11) % count;
}

std::vector<Row> all_rows() {
  constexpr std::int64_t k16 = 16384;
  std::vector<Row> rows;
  const auto add = [&](std::string name, Problem problem) {
    rows.push_back({std::move(name), std::move(problem)});
  };
  add("D128 2k causal", bf16(32, 32, 2048, 128, causal()));
  add("D128 4k causal", bf16(32, 32, 4096, 128, causal()));
  add("D128 8k causal", bf16(16, 16, 8192, 128, causal()));
  add("D128 16k causal", bf16(16, 16, k16, 128, causal()));
  add("D256 16k causal", bf16(8, 8, k16, 256, causal()));
  add("D128 8k causal, 32/8 heads", bf16(32, 8, 8192, 128, causal()));
  const auto drawn_share = [](std::int64_t head, std::int64_t row) {
    base::Random random(static_cast<std::uint64_t>(1000 * head + row));
    return 1 + static_cast<std::int64_t>(random.below(row % 2 == 0 ? 8 : 64));
  };
  add("random rows of unlike density", bf16(16, 16, k16, 128, rows_of(k16, 1, drawn_share)));
  add("the same, for each head", bf16(16, 16, k16, 128, rows_of(k16, 16, drawn_share)));
  // The row of rank k has 128 / k^0.7 blocks. So no row is longer than a multiprocessor's share of
  // the work.
  const auto zipf = [](std::int64_t head, std::int64_t row) {
    const auto rank = static_cast<double>(1 + shuffled(row, head, 128));
    return static_cast<std::int64_t>(128 / std::pow(rank, 0.7));
  };
  add("Zipf lengths", bf16(16, 16, k16, 128, rows_of(k16, 1, zipf)));
  add("Zipf lengths, for each head", bf16(16, 16, k16, 128, rows_of(k16, 16, zipf)));
  const auto twentieth = [](std::int64_t head, std::int64_t row) {
    return shuffled(row, head, 128) % 20 == 0 ? 120 : 6;
  };
  add("one row in twenty long", bf16(16, 16, k16, 128, rows_of(k16, 1, twentieth)));
  add("one row in twenty long, 32/8 heads", bf16(32, 8, k16, 128, rows_of(k16, 1, twentieth)));
  add("hierarchical",
      bf16(16, 16, k16, 128, causal() & hierarchical({{1, 512}, {8, 2048}, {64, 8192}})));
  std::vector<std::int64_t> starts = {0};
  for (const int length : {6000, 100, 3000, 50, 900, 4000, 300, 1200}) {
    starts.push_back(starts.back() + length);
  }
  add("causal documents of unlike lengths", bf16(16, 16, k16, 128, causal() & documents(starts)));
  add("window and global rows", bf16(16, 16, k16, 128, window(255, 256) | global(1024)));
  add("causal window and global keys",
      bf16(32, 8, k16, 128, causal() & (window(1023, 0) | global(600))));
  Problem unlike = bf16(8, 8, 8192, 128, batches({causal(), causal() & window(511, 0)}));
  unlike.batch = 4;
  add("batches of causal and of window", unlike);
  return rows;
}

attention::DeviceLimits limits_of(const Device::Impl& device) {
  // The clock rates that the driver of an H200 reports.
  attention::DeviceLimits limits = api::limits_of(device);
  limits.clock_kilohertz = 1'980'000;
  limits.memory_clock_kilohertz = 3'201'000;
  limits.memory_bus_bits = 6144;
  return limits;
}

class Dealer {
 public:
  Dealer()
      : device_(Device::open(options())),
        impl_(api::inside(device_)),
        limits_(limits_of(impl_)),
        kernels_(impl_.context, compiler_of(impl_), impl_.disk) {}

  // Prints a line. Returns false if a target is missed.
  bool deal(const Row& row) {
    const double begin = bench::wall_seconds();
    attention::LaunchPlan plan =
        attention::make_plan(row.problem, attention::choose_config(row.problem, limits_), limits_,
                             {.dealt = attention::Dealt::kAsPays}, impl_.tiles.get());
    const attention::TileCounts tiles = attention::count_tiles(plan);
    const attention::PipeDevice model = attention::pipe_device(limits_);
    const attention::DealtWorks cost =
        attention::deal_works(model, plan.config, plan.features.dims, tiles,
                              attention::estimate_work(plan.config, plan.features, tiles));
    const attention::Prediction made = attention::predict(model, plan);
    const int cluster = attention::cta_shape(plan.config).cluster;
    plan.spec.file = "dealing/deal_works.cu";
    plan.spec.entry = cluster > 1 ? "deal_works_to_clusters" : "deal_works";
    const std::string how = plan.features.draws_work ? "drawn" : "counted off";
    const std::string config = attention::to_string(plan.config);
    const auto clusters = plan.shape.grid_x / static_cast<unsigned>(cluster);
    const auto works = attention::work_count(plan.problem, plan.group,
                                             attention::launched_rows(plan), plan.problem.batch);
    const double all = static_cast<double>(tiles.ctas) * cost.frame_cycles +
                       static_cast<double>(tiles.tiles()) * cost.tile_cycles;
    const double scale = std::min(1.0, kMaxPolls * kPollCycles * cluster / all);
    const attention::Forward forward(impl_.context, kernels_, std::move(plan),
                                     impl_.device_tiles.get());
    const auto run = [&](std::uint64_t seed) {
      return imbalance(forward, cost, scale, clusters, works, seed);
    };
    const double equal = run(0);
    double worst = 0;
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) worst = std::max(worst, run(seed));
    const bool good = equal <= kEqualBar && worst <= kUnequalBar;
    fmt::print("| {} | {} | {} | {} | {:.3f} | {:.3f} | {:.3f} |{}\n", row.name, config, how, works,
               made.predicted_imbalance, equal, worst, good ? "" : " missed");
    std::fflush(stdout);
    fmt::print(stderr, "{}: {:.1f} s\n", row.name, bench::wall_seconds() - begin);
    return good;
  }

 private:
  static DeviceOptions options() {
    DeviceOptions options;
    options.name = "sim:sm_90a";
    options.simulation.checked = false;
    return options;
  }
  static std::shared_ptr<const jit::Compiler> compiler_of(const Device::Impl& device) {
    return device.compiler->with(
        jit::TemplateSet::embedded()->with("dealing", jit::embedded_dealing()));
  }

  // Runs one launch, and returns the busiest multiprocessor's load divided by the mean. Seed 0: all
  // multiprocessors are equally fast.
  double imbalance(const attention::Forward& forward, const attention::DealtWorks& cost,
                   double scale, unsigned clusters, std::int64_t works, std::uint64_t seed) {
    device_.set_simulation({.checked = false, .seed = seed});
    base::Random random(seed);
    std::vector<float> costs = {static_cast<float>(cost.frame_cycles * scale),
                                static_cast<float>(cost.tile_cycles * scale),
                                static_cast<float>(kPollCycles)};
    for (unsigned cluster = 0; cluster < clusters; ++cluster) {
      const double slower = random.below(1001) / 1000.0;
      costs.push_back(static_cast<float>(seed == 0 ? 1 : 1 + kSpread * slower));
    }
    const attention::LaunchPlan& plan = forward.plan();
    const Problem& problem = plan.problem;
    const device::ContextPointer& context = impl_.context;
    const device::Buffer in = device::upload<float>(context, costs);
    const std::int64_t rows = problem.batch * problem.heads * plan.tiles->row_tiles;
    const device::Buffer out(
        context,
        4 * std::max(static_cast<std::size_t>(problem.batch * problem.heads * problem.seq_q),
                     clusters + static_cast<std::size_t>(rows)));
    device::fill_words_async(*context, out.address(), 0, out.bytes() / 4, nullptr);
    const device::Buffer unused(context, 256);
    const device::Buffer workspace(context, static_cast<std::size_t>(plan.workspace_bytes));
    Operands operands;
    operands.q = operands.k = operands.v = reinterpret_cast<const void*>(in.address());
    operands.o = reinterpret_cast<void*>(unused.address());
    operands.lse = reinterpret_cast<float*>(out.address());
    const auto strides = [&](std::int64_t heads, std::int64_t seq, std::int64_t dim) {
      return Strides{.batch = heads * seq * dim, .head = dim, .row = heads * dim};
    };
    operands.q_strides = strides(problem.heads, problem.seq_q, problem.dim_qk);
    operands.k_strides = strides(problem.kv_heads, problem.seq_k, problem.dim_qk);
    operands.v_strides = strides(problem.kv_heads, problem.seq_k, problem.dim_v);
    operands.o_strides = strides(problem.heads, problem.seq_q, problem.dim_v);
    forward.run(nullptr, operands, reinterpret_cast<void*>(workspace.address()));
    context->synchronize();
    std::vector<float> spent(clusters);
    std::vector<std::int32_t> taken(static_cast<std::size_t>(rows));
    device::copy_to_host(*context, spent.data(), out.address(), spent.size() * 4);
    device::copy_to_host(*context, taken.data(), out.address() + spent.size() * 4,
                         taken.size() * 4);
    // Of the rows and heads of a work, the kernel counts only the first.
    if (std::ranges::count(taken, 1) != works || std::ranges::count(taken, 0) != rows - works) {
      base::fail(ErrorCode::kInternal, "a work was not dealt out, or twice");
    }
    const double sum = std::accumulate(spent.begin(), spent.end(), 0.0);
    const double mean = sum / std::min<double>(clusters, static_cast<double>(works));
    return static_cast<double>(*std::ranges::max_element(spent)) / mean;
  }

  const Device device_;
  const Device::Impl& impl_;
  const attention::DeviceLimits limits_;
  jit::KernelCache kernels_;
};

}  // namespace

int main(int argc, char** argv) {
  std::string filter;
  bool check = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--check") == 0) {
      check = true;
    } else if (std::strcmp(argv[i], "--filter") == 0 && i + 1 < argc) {
      filter = argv[++i];
    } else {
      std::fprintf(stderr, "usage: dealing_bench [--filter TEXT] [--check]\n");
      return 2;
    }
  }
  try {
    Dealer dealer;
    bool good = true;
    std::puts(
        "| problem | configuration | works are | works | predicted | equally fast | 5 % apart |");
    std::puts("|---|---|---|---|---|---|---|");
    for (const Row& row : all_rows()) {
      if (row.name.find(filter) != std::string::npos) good = dealer.deal(row) && good;
    }
    return check && !good ? 1 : 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
