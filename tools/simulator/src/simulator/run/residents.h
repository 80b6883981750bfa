#ifndef ANNULUS_SIMULATOR_RUN_RESIDENTS_H_
#define ANNULUS_SIMULATOR_RUN_RESIDENTS_H_

// The co-resident clusters of a launch, on one host thread. There is a place for each cluster that
// fits on the device's multiprocessors. Every place has a clock of the work that it has done
// (simulator/run/virtual_clock.h), and the place with the smallest clock has the next turn. When a
// cluster ends, the next one of the grid takes over its place and its clock.
//
// So clusters that a cluster waits for overtake it, and a cluster that takes work from a counter in
// a loop gets it at about the same moments as on a chip. With one host thread the same seed gives
// the same execution, and data that clusters share needs no lock.

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

// Whether the clusters of a launch are co-resident. In a cooperative launch they always are.
// Otherwise it depends on SimulatorOptions::resident and on the kernel.
bool live_together(const LaunchRequest& request, const abi::SimulatorOptions& options,
                   std::uint64_t clusters);

class Residents {
 public:
  // `prepare` makes a cluster ready for start_cluster(). It is called once for every place.
  Residents(const LaunchRequest& request, const abi::SimulatorOptions& options,
            std::uint64_t clusters, std::function<void(Cluster&)> prepare);

  // Runs all clusters. Throws Fault without its place, which is the running warp of running().
  void run();

  struct Place {
    Cluster cluster;
    std::uint64_t index = 0;  // the cluster's index in the grid
    std::uint64_t clock = 0;
    std::uint64_t work = 0;  // the work of the cluster that the clock has counted so far
    bool taken = false;
  };
  // The place whose turn it is. Requires: run() has started a cluster.
  const Place& running() const { return *running_; }
  const std::vector<std::unique_ptr<Place>>& places() const { return places_; }

 private:
  void start(std::size_t number, std::uint64_t clock);
  // Runs the cluster of a place for some turns of its warps. Returns false if it has ended.
  bool run_some(Place& place);
  [[noreturn]] void report();

  const LaunchRequest& request_;
  const abi::SimulatorOptions& options_;
  const std::uint64_t clusters_;
  const std::function<void(Cluster&)> prepare_;
  std::uint64_t next_ = 0;  // the first cluster that has not started
  std::vector<std::unique_ptr<Place>> places_;
  Place* running_ = nullptr;
  // Clocks with the numbers of their places, the smallest first.
  using Turn = std::pair<std::uint64_t, std::size_t>;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns_;
  std::vector<Warp*> ready_;
  StillWatch still_;
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_RUN_RESIDENTS_H_
