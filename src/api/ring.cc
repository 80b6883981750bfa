// The public handle of a ring: the few lines that lead into src/ring.
#include "annulus/ring.h"

#include <chrono>

#include "api/impl.h"
#include "base/fail.h"
#include "ring/agreement.h"
#include "ring/local_ring.h"
#include "ring/picture.h"

namespace annulus::inline v0 {

struct RingPlan::Impl {
  Impl(ring::PlannedRing plan, std::span<const ring::RankDevice> devices)
      : ring(std::move(plan), devices) {}

  ring::LocalRing ring;
  RingInfo info;
  std::vector<std::vector<std::int64_t>> tiles;  // [rank][launch]
};

namespace {

double millis(std::chrono::steady_clock::time_point from,
              std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

void check(std::span<const RingRank> ranks) {
  if (ranks.empty()) {
    base::fail(ErrorCode::kInvalidArgument, "a ring of 0 ranks; give at least one");
  }
  std::vector<ring::Terms> terms;
  for (const RingRank& rank : ranks) {
    // Two drivers, a real one and the simulator, know nothing of each other's memory.
    const std::string device = fmt::format("{}, {}", rank.device.info().architecture,
                                           api::inside(rank.device).context->driver().name());
    terms.push_back(ring::terms_of(rank.problem, rank.shards, device, rank.options.config));
  }
  ring::require_agreement(terms);
  const Problem& problem = ranks[0].problem;
  validate(problem);
  validate(ranks[0].shards, problem);
  if (static_cast<std::size_t>(ranks[0].shards.ranks()) != ranks.size()) {
    base::fail(ErrorCode::kInvalidArgument, "{} ranks, but shards for {}", ranks.size(),
               ranks[0].shards.ranks());
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
  for (const RingRank& rank : ranks) {
    if (rank.options.split_rows <= 1) continue;
    base::fail(ErrorCode::kUnsupported,
               "split_rows is {}, but a ring's launches are not split: they carry their state from "
               "step to step; leave it 0",
               rank.options.split_rows);
  }
}

// What rank 0 has tuned for a launch of the largest shards; nothing where the caller has asked for
// a configuration.
std::optional<autotune::TunedStore::Found> find_tuned(std::span<const RingRank> ranks) {
  const RingRank& first = ranks[0];
  const Device::Impl& device = api::inside(first.device);
  if (!first.options.config.empty() || device.tuned->empty()) return std::nullopt;
  return device.tuned->find(autotune::shape_key(ring::largest_hop(first.problem, first.shards)));
}

RingInfo describe(const ring::PlannedRing& plan, std::span<const RingRank> ranks) {
  RingInfo info;
  info.kernel = "mma_forward";
  info.config = attention::to_string(plan.choice.config);
  info.schedule = ring::describe(plan.schedule);
  std::int64_t shards = 0;
  for (std::size_t at = 0; at < ranks.size(); ++at) {
    const int rank = static_cast<int>(at);
    const ring::RankPlan& planned = plan.ranks[at];
    RingRankInfo of_rank;
    of_rank.device = ranks[at].device.info().name;
    of_rank.rows_q = planned.problem.seq_q;
    of_rank.rows_k = planned.problem.seq_k;
    for (const attention::LaunchPlan& launch : planned.launches) {
      of_rank.launches += static_cast<int>(launch.launches.size());
      of_rank.full_tiles += launch.tiles->full_tiles;
      of_rank.partial_tiles += launch.tiles->partial_tiles;
      of_rank.device_bytes += launch.device_bytes;
    }
    of_rank.bytes_sent = plan.schedule.bytes_sent(rank);
    of_rank.bytes_received = plan.schedule.bytes_received(rank);
    of_rank.workspace_bytes = planned.workspace.bytes;
    info.bytes_sent += of_rank.bytes_sent;
    shards += plan.packed[at].bytes;
    info.ranks.push_back(std::move(of_rank));
  }
  info.bytes_plain_ring = shards * static_cast<std::int64_t>(ranks.size() - 1);
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

// With one configuration for all ranks; empty: the heuristic's.
RingPlan make_ring(std::span<const RingRank> ranks, const std::string& config,
                   const std::string& tuned) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<attention::DeviceLimits> limits;
  std::vector<ring::RankDevice> devices;
  for (const RingRank& rank : ranks) {
    const Device::Impl& device = api::inside(rank.device);
    limits.push_back(api::limits_of(device));
    devices.push_back({device.context, device.kernels.get(), device.arch});
  }
  ring::PlannedRing plan = ring::plan_ring(ranks[0].problem, ranks[0].shards, limits, config);
  RingInfo info = describe(plan, ranks);
  info.tuned = tuned;
  auto tiles = count_tiles(plan);
  const auto planned = std::chrono::steady_clock::now();
  const auto impl = std::make_shared<RingPlan::Impl>(std::move(plan), devices);
  info.plan_ms = millis(start, planned);
  info.compile_ms = millis(planned, std::chrono::steady_clock::now());
  api::inside(ranks[0].device)
      .log.write(base::LogLevel::kInfo, "ring of {} ranks, {}: {} bytes sent of {} ({:.1f} ms)",
                 ranks.size(), info.config, info.bytes_sent, info.bytes_plain_ring,
                 info.compile_ms);
  impl->info = std::move(info);
  impl->tiles = std::move(tiles);
  return RingPlan(impl);
}

}  // namespace

RingPlan plan_ring(std::span<const RingRank> ranks) {
  check(ranks);
  if (const auto found = find_tuned(ranks)) {
    try {
      return make_ring(ranks, attention::to_string(found->entry.config),
                       found->path.empty() ? "memory" : found->path);
    } catch (const Error& error) {
      api::give_up_tuned(api::inside(ranks[0].device), *found, error);
    }
  }
  return make_ring(ranks, ranks[0].options.config, "");
}

RingPlan plan_ring(std::span<const Device> devices, const Problem& problem, const ShardMap& shards,
                   const PlanOptions& options) {
  std::vector<RingRank> ranks;
  for (const Device& device : devices) ranks.push_back({device, problem, shards, options});
  return plan_ring(ranks);
}

int RingPlan::ranks() const { return impl_->ring.plan().schedule.ranks; }
const RingInfo& RingPlan::info() const { return impl_->info; }

namespace {

const ring::RankPlan& rank_at(const ring::LocalRing& ring, int rank) {
  if (rank < 0 || rank >= ring.plan().schedule.ranks) {
    base::fail(ErrorCode::kInvalidArgument, "rank {} of a ring of {}", rank,
               ring.plan().schedule.ranks);
  }
  return ring.plan().ranks[static_cast<std::size_t>(rank)];
}

}  // namespace

const Problem& RingPlan::rank_problem(int rank) const { return rank_at(impl_->ring, rank).problem; }

std::size_t RingPlan::workspace_bytes(int rank) const {
  return static_cast<std::size_t>(rank_at(impl_->ring, rank).workspace.bytes);
}

void RingPlan::run(std::span<const RingCall> calls) const { impl_->ring.run(calls); }

std::string RingPlan::picture_svg() const { return ring::draw(impl_->ring.plan(), impl_->tiles); }

}  // namespace annulus::inline v0
