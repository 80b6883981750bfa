#include "simulator/run/launch.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>

#include "base/thread_pool.h"
#include "simulator/machine/cluster.h"
#include "simulator/machine/cta.h"
#include "simulator/program/fault_location.h"
#include "simulator/run/cta_init.h"
#include "simulator/run/residents.h"
#include "simulator/run/run_cluster.h"

namespace annulus::simulator {
namespace {

void add(const Counts& counts, abi::SimulatorCounters* totals) {
#define CTA_COUNTER(name, meaning) totals->name += counts.name;
#define CLASS_COUNTER(name, class, meaning) \
  totals->name += counts.by_class[static_cast<std::size_t>(Class::class)];
#define CLASS_SUM_COUNTER(name, meaning) \
  for (const std::uint64_t one : counts.by_class) totals->name += one;
#include "annulus/counters.def"
}

// A launch, which several host threads run.
class Launch {
 public:
  Launch(const LaunchRequest& request, GlobalMemory& memory, const abi::SimulatorOptions& options)
      : request_(request), memory_(memory), options_(options) {
    std::uint64_t ctas = 1;
    for (std::size_t d = 0; d < 3; ++d) {
      ctas *= request.grid[d];
      clusters_ *= request.grid[d] / request.cluster[d];
    }
    if (options.checked == 0 || request.operation == nullptr) return;
    const bool orders_blocks = request.program->orders_blocks && ctas > 1;
    races_.emplace(*request.detector, request.operation, orders_blocks);
    if (orders_blocks) order_.emplace(request.operation);
  }

  std::uint64_t clusters() const { return clusters_; }

  // Runs clusters, one after another, until none are left, and adds to *counters. Each host thread
  // calls it.
  void work(abi::SimulatorCounters* counters) {
    const IgnoredFaults ignored(options_.ignored);
    Cluster cluster;
    make_ready(cluster);
    while (run_next(cluster)) {
    }
    std::lock_guard lock(mutex_);
    count(cluster, counters);
  }

  // Runs all clusters co-resident on the calling thread, in place of work().
  void work_together(abi::SimulatorCounters* counters) {
    const IgnoredFaults ignored(options_.ignored);
    Residents residents(request_, options_, clusters_,
                        [this](Cluster& cluster) { make_ready(cluster); });
    try {
      residents.run();
    } catch (Fault& caught) {
      note(caught, residents.running().cluster, residents.running().index);
    }
    for (const auto& place : residents.places()) {
      if (place != nullptr) count(place->cluster, counters);
    }
  }

  // The fault of the lowest cluster that has one. For co-resident clusters it is the first fault.
  // Requires: all calls of work() have ended.
  const std::optional<Fault>& fault() const { return fault_; }

 private:
  void make_ready(Cluster& cluster) {
    prepare(cluster, request_, memory_);
    for (const auto& cta : cluster.ctas) {
      if (races_) cta->global.races = &*races_;
      if (order_) cta->global.order = &*order_;
    }
  }

  static void count(const Cluster& cluster, abi::SimulatorCounters* counters) {
    if (counters == nullptr) return;
    for (const auto& cta : cluster.ctas) add(cta->counts, counters);
  }

  // Stores the fault of a cluster, at its running warp, unless a lower cluster has had one.
  void note(Fault& fault, const Cluster& cluster, std::uint64_t index) {
    const Warp& warp = *cluster.running;
    std::copy_n(warp.cta->index, 3, fault.block);
    fault.warp = warp.index;
    locate(fault, *request_.program, warp.pc);
    std::lock_guard lock(mutex_);
    if (index >= first_fault_.load()) return;
    first_fault_ = index;
    fault_ = fault;
  }

  // Runs one more cluster. Returns false if none is left or a fault ends the launch. Clusters are
  // started in ascending order, so all clusters below the lowest fault run, and the reported fault
  // is always the same.
  bool run_next(Cluster& cluster) {
    const std::uint64_t index = next_.fetch_add(1);
    if (index >= clusters_ || index > first_fault_.load()) return false;
    try {
      run_cluster(cluster, request_, index, options_);
      return true;
    } catch (Fault& caught) {
      note(caught, cluster, index);
      return false;
    }
  }

  const LaunchRequest& request_;
  GlobalMemory& memory_;
  const abi::SimulatorOptions& options_;
  std::uint64_t clusters_ = 1;
  std::optional<LaunchShadow> races_;
  std::optional<BlockOrder> order_;
  std::atomic<std::uint64_t> next_{0};
  std::mutex mutex_;  // guards first_fault_, fault_ and the counters
  std::atomic<std::uint64_t> first_fault_{~std::uint64_t{0}};
  std::optional<Fault> fault_;
};

}  // namespace

void execute(const LaunchRequest& request, GlobalMemory& memory, base::ThreadPool& pool,
             const abi::SimulatorOptions& options, abi::SimulatorCounters* counters) {
  Launch launch(request, memory, options);
  std::uint64_t workers =
      std::min<std::uint64_t>(static_cast<std::uint64_t>(pool.threads()), launch.clusters());
  if (options.threads != 0) workers = std::min<std::uint64_t>(workers, options.threads);
  if (live_together(request, options, launch.clusters())) {
    launch.work_together(counters);
  } else if (workers <= 1) {
    launch.work(counters);
  } else {
    pool.parallel_for(static_cast<std::int64_t>(workers),
                      [&](std::int64_t, int) { launch.work(counters); });
  }
  if (counters != nullptr) {
    ++counters->launches;
    counters->faults += launch.fault().has_value();
  }
  if (launch.fault()) throw Fault(*launch.fault());
}

}  // namespace annulus::simulator
