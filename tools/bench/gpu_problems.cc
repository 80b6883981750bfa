#include "gpu_problems.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "base/random.h"

namespace annulus::bench {
namespace {

Problem bf16(std::int64_t heads, std::int64_t kv_heads, std::int64_t seq, std::int64_t dim) {
  Problem problem;
  problem.heads = heads;
  problem.kv_heads = kv_heads;
  problem.seq_q = problem.seq_k = seq;
  problem.dim_qk = problem.dim_v = dim;
  return problem;
}

GpuProblem dense_problem(std::string name, const Problem& problem, double bar) {
  GpuProblem made;
  made.name = std::move(name);
  made.problem = problem;
  made.flop = flop_of(problem, 1);
  made.bar_tflops = bar;
  return made;
}

GpuProblem causal_problem(std::string name, Problem problem, double bar) {
  problem.pattern = causal();
  GpuProblem made;
  made.name = std::move(name);
  made.problem = problem;
  const auto rows = static_cast<double>(problem.seq_q);
  made.density = (rows + 1) / (2 * rows);
  made.flop = flop_of(problem, made.density);
  made.bar_tflops = bar;
  return made;
}

}  // namespace

double flop_of(const Problem& problem, double density) {
  return 2.0 * static_cast<double>(problem.dim_qk + problem.dim_v) *
         static_cast<double>(problem.heads * problem.batch) * static_cast<double>(problem.seq_q) *
         static_cast<double>(problem.seq_k) * density;
}

GpuProblem sparse_problem(std::string name, Problem problem, std::int64_t block,
                          std::int64_t layouts, std::int64_t kept, double bar) {
  GpuProblem made;
  made.name = std::move(name);
  made.block = block;
  made.layouts = layouts;
  const std::int64_t blocks_of_row = problem.seq_k / block;
  made.kept = std::min(kept, blocks_of_row);
  BlockLayout layout;
  layout.block_rows = layout.block_columns = block;
  layout.seq_q = problem.seq_q;
  layout.seq_k = problem.seq_k;
  layout.heads = layouts;
  layout.indptr = {0};
  base::Random random(std::uint64_t{17} + static_cast<std::uint64_t>(block * 1000 + kept));
  std::vector<std::int32_t> all(static_cast<std::size_t>(blocks_of_row));
  for (std::int64_t row = 0; row < layouts * (problem.seq_q / block); ++row) {
    std::iota(all.begin(), all.end(), 0);
    for (std::int64_t i = 0; i < made.kept; ++i) {
      const auto other = i + static_cast<std::int64_t>(
                                 random.below(static_cast<std::uint32_t>(blocks_of_row - i)));
      std::swap(all[static_cast<std::size_t>(i)], all[static_cast<std::size_t>(other)]);
    }
    std::sort(all.begin(), all.begin() + made.kept);
    layout.indices.insert(layout.indices.end(), all.begin(), all.begin() + made.kept);
    layout.indptr.push_back(static_cast<std::int64_t>(layout.indices.size()));
  }
  made.indices = layout.indices;
  problem.pattern = blocks(layout);
  made.problem = problem;
  made.density = static_cast<double>(made.kept) / static_cast<double>(blocks_of_row);
  made.flop = flop_of(problem, made.density);
  made.bar_tflops = bar;
  return made;
}

std::vector<GpuProblem> gpu_problems(bool tiny) {
  const std::int64_t seq = tiny ? 256 : 16384;
  const std::int64_t many = tiny ? 512 : 40960;
  const std::int64_t heads = tiny ? 2 : 16;
  const std::string s = tiny ? "256" : "16k", m = tiny ? "512" : "40k";
  std::vector<GpuProblem> all;
  const std::string full = fmt::format("D128 {} full", s);
  all.push_back(dense_problem(full, bf16(heads, heads, seq, 128), 700));
  all.push_back(
      causal_problem(fmt::format("D128 {} causal", s), bf16(heads, heads, seq, 128), 670));
  all.push_back(
      dense_problem(fmt::format("D64 {} full", s), bf16(2 * heads, 2 * heads, seq, 64), 520));
  all.push_back(
      dense_problem(fmt::format("D256 {} full", s), bf16(heads / 2, heads / 2, seq, 256), 760));

  GpuProblem everything = sparse_problem(fmt::format("D128 {} list that keeps everything", s),
                                         bf16(heads, heads, seq, 128), 128, 1, seq / 128, 0);
  everything.dense = full;
  everything.bar_share = 1 / 1.02;
  all.push_back(everything);

  const std::string long_full = fmt::format("D128 {} full", m);
  all.push_back(dense_problem(long_full, bf16(heads, heads, many, 128), 0));
  const auto tenth = [&](std::int64_t block) {
    return std::max<std::int64_t>(1, many / block / 10);
  };
  const auto sparse = [&](const std::string& kind, std::int64_t kv_heads, std::int64_t block,
                          std::int64_t layouts, std::int64_t kept, double bar, double share) {
    all.push_back(sparse_problem(fmt::format("D128 {} {}", m, kind),
                                 bf16(heads, kv_heads, many, 128), block, layouts, kept, bar));
    all.back().dense = long_full;
    all.back().bar_share = share;
  };
  sparse("block 128, 90 % sparse", heads, 128, heads, tenth(128), 600, 0.95);
  sparse("block 64, 90 % sparse, a layout for all heads", heads / 2, 64, 1, tenth(64), 600, 0);
  sparse("block 64, 90 % sparse, a layout for each head", heads, 64, heads, tenth(64), 530, 0);
  for (const std::int64_t steps : {4, 12, 32, 64, 128}) {
    if (tiny && steps > 4) break;
    sparse(fmt::format("block 128, {} steps a row", steps), heads, 128, heads, steps, 0,
           steps >= 32   ? 0.95
           : steps >= 12 ? 0.90
                         : 0);
  }
  return all;
}

}  // namespace annulus::bench
