#ifndef ANNULUS_SIMULATOR_RUN_RESIDENTS_H_
#define ANNULUS_SIMULATOR_RUN_RESIDENTS_H_

// The clusters of a launch that live together, on one host thread. As many as fit on the device's
// multiprocessors have a place each. Every place has a clock of the work that it has done
// (simulator/run/virtual_clock.h), and the one whose clock is least has the next turn. When a
// cluster ends, the next one of the grid takes its place, and its clock.
//
// So a cluster that waits is overtaken by those that it waits for, and one that asks a counter for
// work again and again is served about when a chip would serve it. With one host thread the same
// seed is the same execution, and nothing that clusters share needs a lock.

#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <utility>
#include <vector>

#include "simulator/machine/cluster.h"
#include "simulator/run/launch.h"
#include "simulator/run/still_watch.h"

namespace annulus::simulator {

// Whether the clusters of a launch live together: those of a cooperative one always, others as
// SimulatorOptions::resident says or the kernel needs.
bool live_together(const LaunchRequest& request, const abi::SimulatorOptions& options,
                   std::uint64_t clusters);

class Residents {
 public:
  // `prepare` makes a cluster ready for start_cluster(). It is called for every place, at its first
  // cluster.
  Residents(const LaunchRequest& request, const abi::SimulatorOptions& options,
            std::uint64_t clusters, std::function<void(Cluster&)> prepare);

  // Runs all clusters. Throws Fault without its place, which is the running warp of running().
  void run();

  struct Place {
    Cluster cluster;
    std::uint64_t index = 0;  // of the cluster in the grid
    std::uint64_t clock = 0;
    std::uint64_t work = 0;  // of the cluster, as far as the clock has counted it
    bool taken = false;
  };
  // The place whose turn it is. Requires: run() has started a cluster.
  const Place& running() const { return *running_; }
  const std::vector<std::unique_ptr<Place>>& places() const { return places_; }

 private:
  void start(std::size_t number, std::uint64_t clock);
  // Runs the cluster of a place for some turns of its warps. False where it has ended.
  bool run_some(Place& place);
  [[noreturn]] void report();

  const LaunchRequest& request_;
  const abi::SimulatorOptions& options_;
  const std::uint64_t clusters_;
  const std::function<void(Cluster&)> prepare_;
  std::uint64_t next_ = 0;  // the first cluster that has not started
  std::vector<std::unique_ptr<Place>> places_;
  Place* running_ = nullptr;
  // Clocks with the numbers of their places, the least first.
  using Turn = std::pair<std::uint64_t, std::size_t>;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns_;
  std::vector<Warp*> ready_;
  StillWatch still_;
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_RUN_RESIDENTS_H_
