#ifndef ANNULUS_SIMULATOR_MACHINE_CLUSTER_H_
#define ANNULUS_SIMULATOR_MACHINE_CLUSTER_H_

// The CTAs of a cluster, which take turns on one host thread, and what they share: clocks, bulk
// copies, the cluster's barrier. In a launch without clusters every CTA is a cluster of one.
//
// A shared::cluster address is
//   | rank + 1 : 8 | shared::cta address : 24 |      0 in place of rank + 1: the CTA that uses it

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
  Warp* running = nullptr;                 // whose instruction or effect happens; faults name it

  ClusterClocks clocks;
  BulkCopies copies;

  bool together = false;  // with other clusters of the launch (simulator/run/residents.h)
  bool least = false;     // its clock is the least: a warp may make an ordered access now
  bool held = false;      // a warp has come to an ordered access and waits for its cluster's turn

  // How many things happened that a warp may wait for, how often a warp looked for one in vain
  // since the last of them, and the value of `events` when one last did. Tests of mbarriers look,
  // and while clusters live together ordered accesses too. `tests` counts the former alone, since
  // the last of the latter: no other cluster can help a warp that tests an mbarrier.
  std::uint64_t events = 0;
  std::uint64_t polls = 0;
  std::uint64_t tests = 0;
  std::uint64_t polled_events = 0;
  void count_poll() {
    if (events != polled_events) polls = tests = 0;
    polled_events = events;
    ++polls;
  }

  Arrivals barrier;  // barrier.cluster; the lanes that have arrived are in Warp::cluster_arrived

  Cluster();
  ~Cluster();
};

// Where a shared::cluster address points.
struct SharedPlace {
  Cta* cta = nullptr;
  std::uint32_t offset = 0;
};
// Throws Fault where there is no such CTA. It does not look whether the offset is in bounds.
SharedPlace cluster_place(const Warp& warp, std::uint32_t address, int lane);

// Throws Fault unless the CTA is known to run, which is where `by` comes after something that the
// CTA did, and where some of its threads have not exited.
void check_started(const Warp& by, const Cta& cta, int lane);

// Ends the phase of barrier.cluster and wakes those that wait for it, if all lanes have arrived.
void complete_cluster_barrier(Cluster& cluster);

// Called after the last warp of the CTA has exited. Throws Fault where an access of another CTA to
// its shared memory is not known to have come before that.
void check_remote_seen(const Cta& cta);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_MACHINE_CLUSTER_H_
