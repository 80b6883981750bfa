// Prints the configuration that the library chooses for sixty problems on an H200 and an A100, next
// to the best of all legal configurations, both by the pipe model
// (src/attention/cost/pipe_model.h). Nothing is compiled and no GPU is used. The table shows how
// much time is lost because the library chooses among shipped configurations, with estimates,
// instead of searching all of them.
//
//   model choices           prints the table
//   model choices --check   the same; exits 1 if a choice takes more than kBar of the best time

#include <fmt/core.h>

#include <cstdio>
#include <exception>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attention/cost/pipe_model.h"
#include "attention/kernels/family.h"
#include "attention/plan/choose_config.h"
#include "attention/plan/plan.h"
#include "attention/plan/predict_plan.h"
#include "attention/tiles/pattern_facts.h"
#include "gpu_problems.h"
#include "model/model.h"
#include "published.h"

namespace {

using namespace annulus;

constexpr double kBar = 1.05;

struct Shape {
  std::string name;
  device::DeviceInfo device;
  Problem problem;
};

Problem problem_of(std::int64_t batch, std::int64_t heads, std::int64_t kv_heads,
                   std::int64_t seq_q, std::int64_t seq_k, std::int64_t dim,
                   const char* pattern = nullptr) {
  Problem made;
  made.batch = batch;
  made.heads = heads;
  made.kv_heads = kv_heads;
  made.seq_q = seq_q;
  made.seq_k = seq_k;
  made.dim_qk = made.dim_v = dim;
  if (pattern != nullptr) made.pattern = Pattern::parse(pattern);
  return made;
}

// A problem with a tenth of the blocks in each row, drawn separately for each head.
Problem sparse(std::int64_t block) {
  const std::int64_t rows = 8192 / block, seq = rows * block;
  return bench::sparse_problem("", problem_of(1, 16, 16, seq, seq, 128), block, 16, rows / 10, 0)
      .problem;
}

std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (const device::DeviceInfo& device : {bench::h200(), bench::a100()}) {
    const char* chip = device.major == 9 ? "H200" : "A100";
    const auto add = [&](const std::string& name, Problem problem) {
      all.push_back({fmt::format("{} {}", chip, name), device, std::move(problem)});
    };
    constexpr std::int64_t kLong = 16384;
    for (const int dim : {64, 96, 128, 256}) {
      add(fmt::format("D{} 16k dense", dim), problem_of(1, 16, 16, kLong, kLong, dim));
      add(fmt::format("D{} 16k causal", dim), problem_of(1, 16, 16, kLong, kLong, dim, "causal"));
    }
    add("D128 1k dense", problem_of(1, 16, 16, 1024, 1024, 128));
    add("D64 4k causal", problem_of(1, 16, 16, 4096, 4096, 64, "causal"));
    add("D128 2k causal, 32 heads over 8", problem_of(1, 32, 8, 2048, 2048, 128, "causal"));
    add("D128 8k causal, 32 heads over 8", problem_of(1, 32, 8, 8192, 8192, 128, "causal"));
    add("D128 32k window of 1024",
        problem_of(1, 16, 16, 2 * kLong, 2 * kLong, 128, "causal & window(1023,0)"));
    for (const int block : {8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 192, 256}) {
      add(fmt::format("D128 8k, 10 % of blocks of {}", block), sparse(block));
    }
    add("decode of 32 sequences of 4k", problem_of(32, 32, 8, 1, 4096, 128, "causal"));
    add("decode of 4 sequences of 32k", problem_of(4, 32, 8, 1, 2 * kLong, 128, "causal"));
    add("8 tokens of 8 sequences of 16k", problem_of(8, 32, 8, 8, kLong, 128, "causal"));
  }
  return all;
}

attention::DeviceLimits limits_of(const device::DeviceInfo& device) {
  const jit::Arch arch = device.major == 9 ? jit::Arch{90, 'a'} : jit::Arch{80, '\0'};
  return {.arch = arch,
          .multiprocessors = device.multiprocessors,
          .shared_bytes_per_block = static_cast<int>(attention::shared_limit(arch)),
          .clock_kilohertz = device.clock_kilohertz,
          .memory_clock_kilohertz = device.memory_clock_kilohertz,
          .memory_bus_bits = device.memory_bus_bits};
}

// Computes the predicted times of configurations for one problem.
class Judge {
 public:
  explicit Judge(const Shape& shape)
      : problem_(shape.problem),
        limits_(limits_of(shape.device)),
        device_(attention::pipe_device(limits_)),
        dims_{problem_.dim_qk, problem_.dim_v} {}

  attention::Choice chosen() const { return attention::choose_config(problem_, limits_); }

  bool legal(const attention::KernelConfig& config) const {
    if (attention::why_not(config, problem_.dtype)) return false;
    if (attention::why_not(config, dims_, limits_)) return false;
    if (attention::why_spills(config, dims_, limits_.arch)) return false;
    const attention::Footprint taken = attention::footprint(config, dims_);
    if (taken.least_registers > taken.max_registers) return false;
    // Choosing also uses reasons that concern time. Only these reasons, like legality, do not
    // concern time.
    const attention::SuitQuestion question = {
        problem_, attention::finest_blocks(problem_.pattern.node()), limits_.arch};
    return !family_of(config).why_unsuited(config, question);
  }

  double micros(const attention::KernelConfig& config) {
    const std::pair tile(config.tile_rows, config.tile_columns);
    auto at = counts_.find(tile);
    if (at == counts_.end()) {
      at = counts_.emplace(tile, attention::count_tiles(problem_, tile.first, tile.second)).first;
    }
    const attention::TileCounts& tiles = at->second;
    // If multiprocessors would be idle, the plan splits rows.
    if (tiles.ctas < limits_.multiprocessors && attention::supports_kv_splits(config)) {
      return attention::predict(device_, attention::make_plan(problem_, {config, "", {}}, limits_,
                                                              {.kv_splits = 0}))
          .predicted_micros;
    }
    return attention::predict(
               device_, config, dims_, tiles,
               attention::estimate_work(config, attention::features_of(problem_), tiles),
               attention::least_bytes(problem_))
        .predicted_micros;
  }

 private:
  const Problem& problem_;
  const attention::DeviceLimits limits_;
  const attention::PipeDevice device_;
  const attention::Dims dims_;
  std::map<std::pair<int, int>, attention::TileCounts> counts_;
};

struct Best {
  attention::KernelConfig config;
  double micros = std::numeric_limits<double>::infinity();
};

Best best_of(Judge& judge) {
  Best best;
  const attention::AddCandidates look = [&](std::span<const attention::KernelConfig> alike) {
    for (const attention::KernelConfig& config : alike) {
      if (!judge.legal(config)) continue;
      if (const double micros = judge.micros(config); micros < best.micros) best = {config, micros};
    }
  };
  for (const attention::Family* family : attention::families()) {
    family->enumerate(look);
  }
  return best;
}

int run(bool check) {
  std::printf("| problem | chosen | us | best legal | us | over it |\n|---|---|---|---|---|---|\n");
  double worst = 0;
  for (const Shape& shape : shapes()) {
    Judge judge(shape);
    const attention::KernelConfig chosen = judge.chosen().config;
    const double micros = judge.micros(chosen);
    const Best best = best_of(judge);
    const double over = micros / best.micros;
    worst = std::max(worst, over);
    std::printf("| %s | %s | %.1f | %s | %.1f | %.3f |\n", shape.name.c_str(),
                attention::to_string(chosen).c_str(), micros,
                attention::to_string(best.config).c_str(), best.micros, over);
  }
  std::printf("\nworst %.3f\n", worst);
  return check && worst > kBar ? 1 : 0;
}

}  // namespace

int annulus::bench::choices(int argc, char** argv) {
  const std::string option = argc > 1 ? argv[1] : "";
  if (argc > 2 || (!option.empty() && option != "--check")) {
    std::fprintf(stderr, "usage: model choices [--check]\n");
    return 2;
  }
  try {
    return run(!option.empty());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "choices: %s\n", error.what());
    return 2;
  }
}
