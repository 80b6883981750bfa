#include "planner/describe.h"

#include <algorithm>
#include <array>

#include "attention/plan/predict_plan.h"
#include "attention/tiles/tile_counts.h"
#include "base/fail.h"

namespace annulus::planner {
namespace {

double block_density(const Problem& problem, const PlanOptions& options,
                     const attention::TileList& tiles) {
  if (options.block_rows < 0 || options.block_columns < 0 ||
      (options.block_rows == 0) != (options.block_columns == 0)) {
    base::fail(ErrorCode::kInvalidArgument,
               "blocks of {} x {} cannot be counted; give two positive sizes, or 0 and 0 for the "
               "compute tile's",
               options.block_rows, options.block_columns);
  }
  if (options.block_rows == 0) return attention::tile_density(problem, tiles).value;
  return attention::block_density(problem, options.block_rows, options.block_columns).value;
}

// Adds the kernel of one branch: its resources, and the number of its CTAs that run at a time. With
// several branches, PlanInfo has the largest resources and the smallest number of CTAs.
void add_kernel(const attention::Forward& forward, PlanInfo* info) {
  const auto& kernel = forward.lookup().kernel;
  if (kernel == nullptr) return;
  const device::FunctionAttributes attributes = kernel->function.attributes();
  const int fit = kernel->function.blocks_per_multiprocessor(
      info->threads, static_cast<std::size_t>(info->shared_bytes));
  if (info->source == "none" || fit < info->blocks_per_multiprocessor) {
    info->blocks_per_multiprocessor = fit;
  }
  info->registers = std::max(info->registers, attributes.registers);
  info->local_bytes = std::max(info->local_bytes, attributes.local_bytes);
  // With several kernels, PlanInfo has the slowest source: "compiled" before "disk" before
  // "memory".
  const std::string source = jit::to_string(forward.lookup().origin);
  if (info->source == "none" || info->source == "memory" || source == "compiled") {
    info->source = source;
  }
}

// Adds the launches and tiles of one branch.
void add_branch(const attention::LaunchPlan& plan, const PlanOptions& options, PlanInfo* info) {
  info->decisions.insert(info->decisions.end(), plan.decisions.begin(), plan.decisions.end());
  info->specialised_source += jit::source_text(plan.spec);
  if (!plan.split.empty()) info->specialised_source += jit::source_text(plan.combine_spec);
  info->launches += static_cast<int>(plan.launches.size()) * (plan.split.empty() ? 1 : 2);
  info->full_tiles += plan.tiles->full_tiles;
  info->partial_tiles += plan.tiles->partial_tiles;
  info->block_density.value += block_density(plan.problem, options, *plan.tiles);
  info->device_bytes += plan.device_bytes;
  if (plan.launches.empty()) return;
  info->ctas += attention::launched_rows(plan) * plan.problem.heads * plan.problem.batch;
}

RingRankInfo describe_rank(const ring::RankPlan& planned, const RankOfRing& on) {
  RingRankInfo info;
  info.device = on.device;
  info.rows_q = planned.problem.seq_q;
  info.rows_k = planned.problem.seq_k;
  for (const attention::LaunchPlan& launch : planned.launches) {
    info.launches += static_cast<int>(launch.launches.size());
    info.full_tiles += launch.tiles->full_tiles;
    info.partial_tiles += launch.tiles->partial_tiles;
  }
  const auto micros = [&](const attention::PipeDevice& device) {
    double all = 0;
    for (const attention::LaunchPlan& launch : planned.launches) {
      all += attention::predict(device, launch).predicted_micros;
    }
    return all;
  };
  info.predicted_micros = micros(attention::pipe_device(on.info));
  const attention::PredictedRange range =
      attention::predict_range(on.info, info.predicted_micros, micros);
  info.min_micros = range.least;
  info.max_micros = range.most;
  info.bytes_sent = planned.schedule.rows_sent() * planned.form.row_bytes;
  info.bytes_received = planned.schedule.rows_received() * planned.form.row_bytes;
  info.workspace_bytes = planned.workspace.bytes;
  return info;
}

}  // namespace

BranchPlans plans_of(const attention::BranchedForward& forward) {
  BranchPlans plans;
  for (const attention::Forward& branch : forward.branches()) plans.push_back(&branch.plan());
  return plans;
}

PlanInfo describe(const BranchPlans& plans, const PlanOptions& options) {
  const attention::LaunchPlan& first = *plans.front();
  PlanInfo info;
  info.kernel = first.spec.family;
  info.config = attention::to_string(first.config);
  info.general = first.features.general;
  info.tile_rows = first.config.tile_rows;
  info.tile_columns = first.config.tile_columns;
  info.threads = static_cast<int>(first.shape.threads);
  info.shared_bytes = first.shape.shared_bytes;
  for (const attention::Rejected& rejected : first.rejected) {
    info.rejected.push_back(
        fmt::format("{}: {}", attention::to_string(rejected.config), rejected.reason));
  }
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (plans.size() > 1) {
      info.decisions.push_back(fmt::format("branch {} of {}: {}", i + 1, plans.size(),
                                           plans[i]->problem.pattern.to_string()));
    }
    add_branch(*plans[i], options, &info);
  }
  return info;
}

PlanInfo describe(const attention::BranchedForward& forward, const PlanOptions& options) {
  PlanInfo info = describe(plans_of(forward), options);
  info.source = "none";
  for (const attention::Forward& branch : forward.branches()) add_kernel(branch, &info);
  return info;
}

namespace {

// The part of the description that is the same for all ranks.
RingInfo describe_world(const ring::World& world, const attention::Choice& choice) {
  RingInfo info;
  info.config = attention::to_string(choice.config);
  const ring::Rounds& rounds = world.rounds;
  const std::int64_t row_bytes = ring::packed_form(world.problem).row_bytes;
  info.route = rounds.route;
  info.route_reason = rounds.reason;
  info.rounds = static_cast<int>(rounds.rounds.size());
  info.messages = rounds.messages;
  info.bytes_sent = rounds.rows_sent * row_bytes;
  info.bytes_needed = rounds.rows_needed * row_bytes;
  info.bytes_relayed = rounds.rows_relayed * row_bytes;
  info.bytes_plain_ring = world.problem.seq_k * row_bytes * (world.ranks() - 1);
  return info;
}

}  // namespace

RingInfo describe(const ring::PlannedRing& plan, std::span<const RankOfRing> ranks) {
  RingInfo info = describe_world(plan.world, plan.choice);
  info.kernel = plan.kernel;
  info.schedule = ring::describe(ring::schedule_of(plan));
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    info.ranks.push_back(describe_rank(plan.ranks[rank], ranks[rank]));
  }
  return info;
}

RingInfo describe(const ring::World& world, const attention::Choice& choice,
                  const ring::RankPlan& plan, const RankOfRing& on) {
  RingInfo info = describe_world(world, choice);
  info.kernel = ring::kernel_of(world, choice, {&plan, 1}, on.arch);
  info.schedule = ring::describe(plan.schedule, plan.packed.count(), plan.rank,
                                 static_cast<int>(world.rounds.rounds.size()));
  info.ranks.push_back(describe_rank(plan, on));
  return info;
}

std::vector<std::vector<std::int64_t>> count_tiles(const ring::PlannedRing& plan) {
  std::vector<std::vector<std::int64_t>> tiles;
  for (const ring::RankPlan& rank : plan.ranks) {
    tiles.emplace_back();
    for (const attention::LaunchPlan& launch : rank.launches) {
      tiles.back().push_back(launch.tiles->full_tiles + launch.tiles->partial_tiles);
    }
  }
  return tiles;
}

PlanPrediction predict(const BranchPlans& plans, const device::DeviceInfo& device) {
  PlanPrediction whole;
  std::array<double, 6> busy{};
  double cycles = 0;
  double longest = 0;
  for (const attention::LaunchPlan* plan : plans) {
    const attention::Prediction made = attention::predict(attention::pipe_device(device), *plan);
    whole.predicted_micros += made.predicted_micros;
    cycles += made.predicted_cycles;
    for (std::size_t i = 0; i < busy.size(); ++i) busy[i] += made.predicted_busy[i];
    if (whole.predicted_limit.empty() || made.predicted_cycles > longest) {
      longest = made.predicted_cycles;
      whole.predicted_limit = attention::to_string(made.predicted_limit);
    }
  }
  const attention::PredictedRange range = attention::predict_range(
      device, whole.predicted_micros, [&](const attention::PipeDevice& varied) {
        double all = 0;
        for (const attention::LaunchPlan* plan : plans) {
          all += attention::predict(varied, *plan).predicted_micros;
        }
        return all;
      });
  whole.min_micros = range.least;
  whole.max_micros = range.most;
  for (std::size_t i = 0; i < busy.size(); ++i) {
    whole.predicted_busy.emplace_back(attention::to_string(static_cast<attention::Limit>(i)),
                                      cycles > 0 ? busy[i] / cycles : 0);
  }
  return whole;
}

}  // namespace annulus::planner
