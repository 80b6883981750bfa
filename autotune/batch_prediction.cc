#include "autotune/batch_prediction.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "autotune/batch_verify.h"
#include "base/math.h"
#include "batch/batch_plan.h"
#include "pattern/evaluate.h"

namespace annulus::autotune {
namespace {

using attention::KernelConfig;
using attention::KernelWork;
using attention::PipeDevice;
using batch::StepRequest;

// The number of keys on this rank that at least one of the queries [first, first + count) of a
// request sees. It is the mean over the heads that differ.
double seen_keys(const BatchProblem& problem, const StepRequest& request, std::int64_t first,
                 std::int64_t count) {
  pattern::Evaluator evaluator(problem.pattern, {.seq_k = request.keys});
  const std::int64_t at = request.keys - request.queries + first;
  const std::int64_t heads = problem.pattern.distinct_heads(problem.heads);
  std::int64_t all = 0;
  for (std::int64_t head = 0; head < heads; ++head) {
    for (const pattern::Interval& run :
         evaluator.range(head, {at, at + count}, {0, request.keys}).any) {
      all += held_keys(problem.interleave, run.end) - held_keys(problem.interleave, run.begin);
    }
  }
  const double seen = static_cast<double>(all) / static_cast<double>(heads);
  if (problem.block_keys == 0) return seen;
  return std::min(seen, static_cast<double>(problem.max_blocks * problem.block_keys));
}

// The step with the numbers of keys that the kernels of few queries process.
std::vector<StepRequest> seen_step(const BatchProblem& problem,
                                   const std::vector<StepRequest>& step) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> known;
  std::vector<StepRequest> seen;
  for (const StepRequest& request : step) {
    const auto [at, is_new] = known.try_emplace({request.queries, request.keys}, 0);
    if (is_new) at->second = std::llround(seen_keys(problem, request, 0, request.queries));
    seen.push_back({request.queries, at->second});
  }
  return seen;
}

// The work for a tile of rows and a tile of keys, for many queries. Products and bytes are exact. A
// warp's instructions are estimated as in batch::decode_tile_work, per element of its lanes.
KernelWork tile_work(const KernelConfig& any, const attention::Dims& dims) {
  const batch::BatchConfig config = batch::batch_config(any);
  const double rows = config.tile_rows, columns = config.tile_columns, warps = config.warps;
  const auto both = static_cast<double>(dims.qk + dims.v);
  const double elements = rows * columns;
  const double bytes = columns * both * batch::kElementBytes;
  KernelWork work;
  work.matrix_flop = 2 * elements * both;
  work.special_lanes = elements;
  // The copies write K and V once, and every warp or warpgroup reads them.
  const double readers = config.kernel->by_maps ? warps / 4 : warps;
  work.shared_wavefronts = (1 + readers) * bytes / 128;
  work.read_bytes = bytes;
  work.warp_instructions = warps * 120 + elements / 32 * 5.3 + work.matrix_flop / (2 * 16 * 8 * 16);
  return work;
}

// The work of a step of many queries, for all column blocks of all heads.
KernelWork step_work(const BatchProblem& problem, const KernelConfig& config,
                     const std::vector<StepRequest>& step) {
  // The number of row tiles of a request that are sampled. Each sample stands for an equal number
  // of tiles.
  constexpr std::int64_t kSamples = 64;
  const batch::Packing packing = batch::pack(problem, config.tile_rows);
  double tiles = 0, rows = 0;  // tiles of keys, rows of queries
  std::map<std::pair<std::int64_t, std::int64_t>, double> known;
  for (const StepRequest& request : step) {
    const std::int64_t count = base::ceil_div(request.queries, packing.tile_queries);
    rows += static_cast<double>(count);
    const auto [at, is_new] = known.try_emplace({request.queries, request.keys}, 0);
    if (is_new) {
      const std::int64_t samples = std::min(count, kSamples);
      double sum = 0;
      for (std::int64_t i = 0; i < samples; ++i) {
        const std::int64_t first = (2 * i + 1) * count / (2 * samples) * packing.tile_queries;
        const std::int64_t queries = std::min(packing.tile_queries, request.queries - first);
        sum += std::ceil(seen_keys(problem, request, first, queries) / config.tile_columns);
      }
      at->second = sum * static_cast<double>(count) / static_cast<double>(samples);
    }
    tiles += at->second;
  }
  const auto columns = static_cast<double>(packing.columns);
  const attention::Dims dims = {problem.dim_qk, problem.dim_v};
  const double row_bytes = static_cast<double>(config.tile_rows) * batch::kElementBytes;
  KernelWork work = tile_work(config, dims);
  for (double KernelWork::*quantity :
       {&KernelWork::matrix_flop, &KernelWork::special_lanes, &KernelWork::shared_wavefronts,
        &KernelWork::read_bytes, &KernelWork::warp_instructions}) {
    work.*quantity *= tiles * columns;
  }
  work.read_bytes += rows * columns * row_bytes * static_cast<double>(dims.qk);
  work.written_bytes = rows * columns * row_bytes * static_cast<double>(dims.v);
  return work;
}

// The least cycles in which the pipes of all multiprocessors can do the work.
double least_cycles(const PipeDevice& pipes, const KernelConfig& config, const KernelWork& work) {
  const double matrix = batch::kernel_of(config).by_maps ? pipes.wgmma_flop : pipes.matrix_flop;
  const double cycles = std::max(
      {work.matrix_flop / matrix, work.special_lanes / pipes.special_lanes,
       work.warp_instructions / pipes.issue_slots, work.shared_wavefronts / pipes.shared_wavefronts,
       (work.read_bytes + work.written_bytes) / pipes.l2_bytes});
  return cycles / pipes.multiprocessors;
}

double few_queries_cycles(const PipeDevice& pipes, const attention::DeviceLimits& limits,
                          const tuned::BatchTarget& target, const KernelConfig& config) {
  const batch::BatchPlanData plan = plan_with(config, target.problem, target.options, limits);
  const std::vector<StepRequest> step = seen_step(plan.problem, target.step);
  return batch::predict_step(pipes, plan.problem, class_of(plan, config), step).predicted_micros *
         pipes.clock_hertz * 1e-6;
}

}  // namespace

double predicted_cycles(const PipeDevice& pipes, const attention::DeviceLimits& limits,
                        const tuned::BatchTarget& target, const KernelConfig& config) {
  if (target.requests == batch::RequestClass::kFewQueries) {
    return few_queries_cycles(pipes, limits, target, config);
  }
  return least_cycles(pipes, config,
                      step_work(batch::with_bounds(target.problem), config, target.step));
}

double predicted_cycles(const PipeDevice& pipes, const attention::DeviceLimits& limits,
                        const tuned::BatchTarget& target, const KernelConfig& config,
                        const KernelWork& counted, const BatchProblem& small_problem,
                        const std::vector<StepRequest>& small) {
  if (target.requests == batch::RequestClass::kFewQueries) {
    return few_queries_cycles(pipes, limits, target, config);
  }
  const KernelWork whole =
      attention::extend_work(counted, step_work(small_problem, config, small),
                             step_work(batch::with_bounds(target.problem), config, target.step));
  return least_cycles(pipes, config, whole);
}

}  // namespace annulus::autotune
