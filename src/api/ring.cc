// The functions of a ring's public handle. Each has a few lines that call src/planner and src/ring.
#include "annulus/ring.h"

#include "api/communicator_impl.h"
#include "api/impl.h"
#include "base/fail.h"
#include "planner/ring/prepared_rank.h"
#include "planner/ring/prepared_ring.h"
#include "ring/picture.h"

namespace annulus::inline v0 {

struct RingPlan::Impl {
  std::shared_ptr<const planner::PreparedRing> prepared;
  base::ProcessMark process{};
};

Problem ring_step(const Problem& problem, const ShardMap& shards) {
  validate(problem);
  validate(shards, problem);
  return ring::tuned_step(problem, shards);
}

namespace {

// A ring is counted as the step by which it is tuned, on the device whose tuned results it uses.
void count_step(const Device& device, const Problem& problem, const ShardMap& shards,
                const RingOptions& options) {
  api::count_shape(api::inside(device), {ring::tuned_step(problem, shards), options});
}

}  // namespace

RingPlan plan_ring(std::span<const RingRank> ranks) {
  std::vector<planner::RankRequest> requests;
  for (const RingRank& rank : ranks) {
    requests.push_back(
        {api::planner_of(api::inside(rank.device)), &rank.problem, &rank.shards, &rank.options});
  }
  RingPlan plan(std::make_shared<const RingPlan::Impl>(planner::prepare_ring(requests)));
  const RingRank& first = ranks.front();
  count_step(first.device, first.problem, first.shards, first.options);
  return plan;
}

RingPlan plan_ring(std::span<const Device> devices, const Problem& problem, const ShardMap& shards,
                   const RingOptions& options) {
  std::vector<planner::RankRequest> requests;
  for (const Device& device : devices) {
    requests.push_back({api::planner_of(api::inside(device)), &problem, &shards, &options});
  }
  RingPlan plan(std::make_shared<const RingPlan::Impl>(planner::prepare_ring(requests)));
  count_step(devices.front(), problem, shards, options);
  return plan;
}

namespace {

const ring::RankPlan& rank_at(const planner::PreparedRing& prepared, int rank) {
  const ring::PlannedRing& plan = prepared.ring.plan();
  if (rank < 0 || rank >= plan.world.ranks()) {
    base::fail(ErrorCode::kInvalidArgument, "rank {} of a ring of {}", rank, plan.world.ranks());
  }
  return plan.ranks[static_cast<std::size_t>(rank)];
}

}  // namespace

int RingPlan::ranks() const { return impl_->prepared->ring.plan().world.ranks(); }
const RingInfo& RingPlan::info() const { return impl_->prepared->info; }

const Problem& RingPlan::rank_problem(int rank) const {
  return rank_at(*impl_->prepared, rank).problem;
}

std::size_t RingPlan::workspace_bytes(int rank) const {
  return static_cast<std::size_t>(rank_at(*impl_->prepared, rank).workspace.bytes);
}

void RingPlan::run(std::span<const RingCall> calls) const {
  impl_->process.check("ring");
  impl_->prepared->ring.run(calls);
}

std::string RingPlan::picture_svg() const {
  return ring::draw(impl_->prepared->ring.plan(), impl_->prepared->tiles);
}

struct RingRankPlan::Impl {
  std::shared_ptr<const planner::PreparedRank> prepared;
  int ranks = 0;
  base::ProcessMark process{};
};

RingRankPlan plan_ring(const Device& device, const Communicator& communicator,
                       const Problem& problem, const ShardMap& shards, const RingOptions& options) {
  const std::shared_ptr<exchange::Rank> rank = api::inside(communicator);
  RingRankPlan plan(std::make_shared<const RingRankPlan::Impl>(RingRankPlan::Impl{
      planner::prepare_rank(api::planner_of(api::inside(device)), rank, problem, shards, options),
      rank->info().ranks}));
  if (plan.rank() == 0) count_step(device, problem, shards, options);
  return plan;
}

int RingRankPlan::rank() const { return impl_->prepared->driver().plan().rank; }
int RingRankPlan::ranks() const { return impl_->ranks; }
const RingInfo& RingRankPlan::info() const { return impl_->prepared->info; }
const Problem& RingRankPlan::rank_problem() const {
  return impl_->prepared->driver().plan().problem;
}
std::size_t RingRankPlan::workspace_bytes() const {
  return static_cast<std::size_t>(impl_->prepared->driver().plan().workspace.bytes);
}

std::int64_t RingRankPlan::run(const RingCall& call) const {
  impl_->process.check("ring");
  return impl_->prepared->run(call);
}

}  // namespace annulus::inline v0
