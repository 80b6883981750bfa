#include "planner/ring/prepared_ring.h"

#include "attention/problem/operands.h"
#include "base/fail.h"
#include "base/span.h"
#include "base/work.h"
#include "jit/missing_kernel.h"
#include "planner/choices.h"
#include "planner/describe.h"
#include "planner/fit.h"
#include "planner/millis.h"
#include "ring/agreement.h"
#include "ring/rank_error.h"
#include "shape_log/shape_line.h"

namespace annulus::planner {
namespace {

void check(std::span<const RankRequest> ranks) {
  if (ranks.empty()) {
    base::fail(ErrorCode::kInvalidArgument, "a ring of 0 ranks; give at least one");
  }
  std::vector<ring::Terms> terms;
  for (const RankRequest& rank : ranks) terms.push_back(terms_of(rank));
  ring::require_agreement(terms);
  check_problem(ranks[0]);
  if (static_cast<std::size_t>(ranks[0].shards->ranks()) != ranks.size()) {
    base::fail(ErrorCode::kInvalidArgument, "{} ranks, but shards for {}", ranks.size(),
               ranks[0].shards->ranks());
  }
}

// The options that the ring is planned with: rank 0's, unless rank 0's choice is a configuration
// that does not support another rank's strides. Then the options of that rank are used, because all
// launches run one configuration.
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
  const jit::KernelsFor wanted([&] {
    return fmt::format("a ring of {} ranks over {}", ranks.size(),
                       shape_log::wanted_by(problem, *ranks[0].options));
  });
  std::vector<attention::DeviceLimits> limits;
  std::vector<ring::RankDevice> devices;
  std::vector<RankOfRing> described;
  for (const RankRequest& rank : ranks) {
    const Planner& planner = rank.planner;
    const int number = static_cast<int>(limits.size());
    limits.push_back(ring::of_rank(number, [&] {
      check_options(rank, number);
      return limits_for(planner.limits, *rank.options);
    }));
    devices.push_back(
        {planner.context, planner.kernels.get(), planner.limits.arch, planner.check_operands});
    described.push_back({planner.device, planner.context->info(), planner.limits.arch});
  }
  const Clock::time_point start = Clock::now();
  const Problem largest = ring::largest_hop(problem, shards);
  const ring::World world = ring::plan_world(problem, shards, ranks[0].options->route);
  const attention::Segments segments = ring::segments_of(world);
  const PlanOptions& options = ruling_options(ranks, largest, limits[0], segments);
  const Problem step = ring::tuned_step(problem, shards);
  const Choices choices = choose({.problem = largest, .segments = segments, .step = &step},
                                 limits[0], options, *first.tuned);
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
