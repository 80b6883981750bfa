#ifndef ANNULUS_SIMULATOR_MACHINE_CLUSTER_H_
#define ANNULUS_SIMULATOR_MACHINE_CLUSTER_H_

// The CTAs of a cluster, which take turns on one host thread, and the state that they share:
// clocks, bulk copies, the barrier of the cluster. In a launch without clusters every CTA is a
// cluster of one.
//
// A shared::cluster address is
//   | rank + 1 : 8 | shared::cta address : 24 |      0 in place of rank + 1: the CTA of the instruction

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
  Warp* running = nullptr;  // the warp whose instruction or effect runs; faults name it

  ClusterClocks clocks;
  BulkCopies copies;

  bool together = false;  // other clusters of the launch are resident too
                          // (simulator/run/residents.h)
  bool least = false;     // no resident cluster has a smaller clock, so a warp may make an ordered
                          // access now
  bool held = false;      // a warp waits at an ordered access until it is the cluster's turn

  // `events` counts the events that a warp may wait for. `polls` counts how often warps have
  // checked for an event without success since the last event, and `polled_events` is the value of
  // `events` at the last such check. Tests of mbarriers are such checks. While several clusters are
  // resident, ordered accesses are such checks too. `tests` counts only the tests of mbarriers
  // since the last ordered access: no other cluster can help a warp that tests an mbarrier.
  std::uint64_t events = 0;
  std::uint64_t polls = 0;
  std::uint64_t tests = 0;
  std::uint64_t polled_events = 0;
  void count_poll() {
    if (events != polled_events) polls = tests = 0;
    polled_events = events;
    ++polls;
  }

  Arrivals barrier;  // arrivals at barrier.cluster; Warp::cluster_arrived has the lanes

  Cluster();
  ~Cluster();
};

// The place that a shared::cluster address means.
struct SharedPlace {
  Cta* cta = nullptr;
  std::uint32_t offset = 0;
};
// Throws Fault if the cluster has no such CTA. It does not check whether the offset is in bounds.
SharedPlace cluster_place(const Warp& warp, std::uint32_t address, int lane);

// Throws Fault unless it is certain that the CTA runs. That is so if `by` comes after an action of
// the CTA, and some threads of the CTA have not exited.
void check_started(const Warp& by, const Cta& cta, int lane);

// If all lanes have arrived, ends the phase of barrier.cluster and wakes the lanes that wait for
// it.
void complete_cluster_barrier(Cluster& cluster);

// Called after the last warp of the CTA has exited. Throws Fault unless every access of another CTA
// to its shared memory is known to come before the exit.
void check_remote_seen(const Cta& cta);

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_MACHINE_CLUSTER_H_
