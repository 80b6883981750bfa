#include "planner/prepared_ring.h"

#include "attention/problem/operands.h"
#include "base/fail.h"
#include "base/span.h"
#include "base/work.h"
#include "planner/choices.h"
#include "planner/describe.h"
#include "planner/fit.h"
#include "planner/millis.h"
#include "ring/agreement.h"
#include "ring/rank_error.h"

namespace annulus::planner {
namespace {

void require_agreement(std::span<const RankRequest> ranks) {
  std::vector<ring::Terms> terms;
  for (const RankRequest& rank : ranks) {
    // The driver's name is part of it, since a real driver and the simulator cannot copy to each
    // other's memory.
    const std::string device = fmt::format("{}, {}", jit::to_string(rank.planner.limits.arch),
                                           rank.planner.context->driver().name());
    terms.push_back(ring::terms_of(*rank.problem, *rank.shards, rank.options->route, device,
                                   rank.options->config));
  }
  ring::require_agreement(terms);
}

void check(std::span<const RankRequest> ranks) {
  if (ranks.empty()) {
    base::fail(ErrorCode::kInvalidArgument, "a ring of 0 ranks; give at least one");
  }
  require_agreement(ranks);
  const Problem& problem = *ranks[0].problem;
  validate(problem);
  validate(*ranks[0].shards, problem);
  if (static_cast<std::size_t>(ranks[0].shards->ranks()) != ranks.size()) {
    base::fail(ErrorCode::kInvalidArgument, "{} ranks, but shards for {}", ranks.size(),
               ranks[0].shards->ranks());
  }
  if (problem.dtype == Dtype::kFloat8E4M3) {
    base::fail(ErrorCode::kUnsupported,
               "a ring has no scales to go with e4m3 operands; give it bf16 or fp16 ones");
  }
  if (problem.carry_in || problem.carry_out) {
    base::fail(ErrorCode::kUnsupported,
               "a ring carries its state from step to step itself; carry_in and carry_out of its "
               "problem must be false");
  }
}

// The options of one rank. Throws for what a ring cannot follow.
void check(const RankRequest& rank, int number) {
  const RingOptions& options = *rank.options;
  if (options.route != Route::kAuto && options.route != Route::kDirect &&
      options.route != Route::kRing) {
    base::fail(ErrorCode::kInvalidArgument, "route {} is neither auto, direct nor ring",
               static_cast<int>(options.route));
  }
  if (options.kv_splits > 1) {
    base::fail(ErrorCode::kUnsupported,
               "kv_splits is {}, but a ring's launches are not split: they carry their state from "
               "step to step; leave it 0",
               options.kv_splits);
  }
  if (options.block_rows != 0 || options.block_columns != 0) {
    base::fail(ErrorCode::kUnsupported,
               "block_rows and block_columns are {} and {}, but a ring counts no block density; "
               "leave them 0, or ask a plan of the whole problem",
               options.block_rows, options.block_columns);
  }
  if (!options.strides) return;
  Problem local = *rank.problem;
  local.seq_q = ring::rows_of_rank(rank.shards->q, number);
  local.seq_k = ring::rows_of_rank(rank.shards->k, number);
  attention::check_rows_given(local, *options.strides);
}

// The options that the ring is planned with: rank 0's, unless its choice is a configuration that
// does not take another rank's strides. That rank's then rule, since all launches run one
// configuration.
const PlanOptions& ruling_options(std::span<const RankRequest> ranks, const Problem& largest,
                                  const attention::DeviceLimits& limits,
                                  const attention::Segments& segments) {
  const PlanOptions* ruling = ranks[0].options;
  const Subject subject{.problem = largest, .segments = segments};
  const attention::KernelConfig first = untuned(subject, limits, *ruling).config;
  for (const RankRequest& rank : ranks) {
    if (attention::why_not(first, largest, rank.options->strides)) ruling = rank.options;
  }
  return *ruling;
}

}  // namespace

std::shared_ptr<const PreparedRing> prepare_ring(std::span<const RankRequest> ranks) {
  check(ranks);
  const Problem& problem = *ranks[0].problem;
  const ShardMap& shards = *ranks[0].shards;
  const Planner& first = ranks[0].planner;
  const base::Work work(ranks[0].options->work, "planning a ring");
  const base::Span span("plan a ring", first.device);
  std::vector<attention::DeviceLimits> limits;
  std::vector<ring::RankDevice> devices;
  std::vector<RankOfRing> described;
  for (const RankRequest& rank : ranks) {
    const Planner& planner = rank.planner;
    const int number = static_cast<int>(limits.size());
    limits.push_back(ring::of_rank(number, [&] {
      check(rank, number);
      return limits_for(planner.limits, *rank.options);
    }));
    devices.push_back(
        {planner.context, planner.kernels.get(), planner.limits.arch, planner.check_operands});
    described.push_back({planner.device, planner.context->info()});
  }
  const Clock::time_point start = Clock::now();
  const Problem largest = ring::largest_hop(problem, shards);
  const ring::World world = ring::plan_world(problem, shards, ranks[0].options->route);
  const attention::Segments segments = ring::segments_of(world);
  const PlanOptions& options = ruling_options(ranks, largest, limits[0], segments);
  const Choices choices =
      choose({.problem = largest, .segments = segments}, limits[0], options, *first.tuned);
  return with_first_that_works(
      choices, *first.tuned, first.log,
      [&](const attention::Choice& choice, const std::string& origin) {
        ring::PlannedRing plan = ring::plan_ring(world, limits, choice);
        for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
          require_workspace(plan.ranks[rank].workspace.bytes, *ranks[rank].options);
        }
        RingInfo info = describe(plan, described);
        info.tuned = origin;
        // Counted before PreparedRing moves the launches out of the plan.
        auto tiles = count_tiles(plan);
        const Clock::time_point planned = Clock::now();
        const auto prepared = std::make_shared<PreparedRing>(std::move(plan), devices);
        const Clock::time_point ready = Clock::now();
        for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
          info.ranks[rank].device_bytes =
              prepared->ring.driver(static_cast<int>(rank)).device_bytes();
        }
        info.compile_ms = millis(ready - planned);
        info.plan_ms = millis(ready - start) - info.compile_ms;
        first.log.write(base::LogLevel::kInfo,
                        "ring of {} ranks, {}, {}: {} bytes sent of {} ({:.1f} ms)", ranks.size(),
                        info.config, info.route_reason, info.bytes_sent, info.bytes_plain_ring,
                        info.compile_ms);
        for (const RankRequest& rank : ranks) {
          rank.planner.context->tally().add(base::Count::ring_plans);
        }
        prepared->info = std::move(info);
        prepared->tiles = std::move(tiles);
        return std::shared_ptr<const PreparedRing>(prepared);
      });
}

}  // namespace annulus::planner
