#ifndef ANNULUS_RING_LOCAL_RING_H_
#define ANNULUS_RING_LOCAL_RING_H_

// Runs a planned ring whose ranks are all in this process. It steps the drivers of all ranks
// together, over a local transport.

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "ring/local_transport.h"
#include "ring/plan.h"
#include "ring/rank_driver.h"

namespace annulus::ring {

class LocalRing {
 public:
  // Gets the kernels, which may compile them, uploads the tile lists, and creates streams and
  // events. Requires: one device for each rank.
  LocalRing(PlannedRing plan, std::span<const RankDevice> devices);

  // RankPlan::launches is empty in this plan, because the launches have moved into the drivers. A
  // caller that counts tiles must do so before construction.
  const PlannedRing& plan() const { return plan_; }
  const RankDriver& driver(int rank) const { return drivers_[static_cast<std::size_t>(rank)]; }

  // See RingPlan::run.
  void run(std::span<const RingCall> calls) const;

 private:
  static std::vector<RankDriver> make_drivers(PlannedRing* plan,
                                              std::span<const RankDevice> devices);
  static LocalTransport make_transport(const PlannedRing& plan,
                                       std::span<const RankDevice> devices);
  int rounds() const { return static_cast<int>(plan_.world.rounds.rounds.size()); }
  void queue(std::span<const RingCall> calls) const;
  void check(std::span<const RingCall> calls) const;

  PlannedRing plan_;
  std::vector<RankDriver> drivers_;
  mutable LocalTransport transport_;
  mutable std::atomic<bool> busy_{false};
};

}  // namespace annulus::ring

#endif  // ANNULUS_RING_LOCAL_RING_H_
