#ifndef ANNULUS_SIMULATOR_MACHINE_CLUSTER_H_
#define ANNULUS_SIMULATOR_MACHINE_CLUSTER_H_

// The CTAs of a cluster, which run side by side on one host thread, and what they share: clocks,
// bulk copies, the cluster's barrier. A launch without clusters has clusters of one.
//
// A shared::cluster address is
//   | rank + 1 : 8 | shared::cta address : 24 |      rank + 1 = 0: the CTA that uses it

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "simulator/check/cluster_clocks.h"
#include "simulator/machine/arrivals.h"
#include "simulator/machine/bulk_copies.h"

namespace annulus::simulator {

struct Cta;
struct Warp;

constexpr std::uint32_t kRankShift = 24;

struct Cluster {
  std::vector<std::unique_ptr<Cta>> ctas;  // by rank
  Warp* running = nullptr;                 // whose instruction, or effect, is at work

  ClusterClocks clocks;
  BulkCopies copies;

  // Things that somebody may wait for, and tests of an mbarrier that found nothing since the last.
  std::uint64_t events = 0;
  std::uint64_t polls = 0;
  std::uint64_t polled_events = 0;

  Arrivals barrier;  // barrier.cluster: who has arrived is kept by the warps

  Cluster();
  ~Cluster();
};

// Where a shared::cluster address points.
struct SharedPlace {
  Cta* cta = nullptr;
  std::uint32_t offset = 0;
};
// Throws Fault where there is no such CTA; whether the offset is in bounds is not looked at.
SharedPlace cluster_place(const Warp& warp, std::uint32_t address, int lane);

// The CTA is known to run: `by` comes after something it did. Otherwise throws Fault.
void check_started(const Warp& by, const Cta& cta, int lane);

// Lets those go on that wait for barrier.cluster, if all have arrived.
void complete_cluster_barrier(Cluster& cluster);

// After the last warp of the CTA has left: nobody may touch its shared memory any more.
void check_remote_seen(const Cta& cta);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_MACHINE_CLUSTER_H_
