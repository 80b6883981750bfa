#ifndef ANNULUS_PLANNER_RING_PREPARED_RANK_H_
#define ANNULUS_PLANNER_RING_PREPARED_RANK_H_

// Plans one rank of a ring while the other ranks are planned by other callers at the same time. The
// ranks exchange over the communicator what all must agree on: the terms, rank 0's choice, and
// whether every rank can run it.

#include <memory>

#include "exchange/rank.h"
#include "planner/planner.h"
#include "ring/communicator_transport.h"
#include "ring/rank_driver.h"

namespace annulus::planner {

class PreparedRank {
 public:
  PreparedRank(ring::RankPlan plan, int rounds, const ring::RankDevice& device,
               const std::shared_ptr<exchange::Rank>& rank)
      : driver_(std::move(plan), rounds, device), transport_(rank, driver_.plan().schedule) {}

  const ring::RankDriver& driver() const { return driver_; }
  // Implements RingRankPlan::run.
  std::int64_t run(const RingCall& call) const;

  RingInfo info;

 private:
  void queue(const RingCall& call) const;

  ring::RankDriver driver_;
  mutable ring::CommunicatorTransport transport_;
  mutable std::atomic<bool> busy_{false};
};

// Throws as annulus::plan_ring does for one rank, with the same error code on every rank.
std::shared_ptr<const PreparedRank> prepare_rank(const Planner& planner,
                                                 const std::shared_ptr<exchange::Rank>& rank,
                                                 const Problem& problem, const ShardMap& shards,
                                                 const RingOptions& options);

}  // namespace annulus::planner

#endif  // ANNULUS_PLANNER_RING_PREPARED_RANK_H_
