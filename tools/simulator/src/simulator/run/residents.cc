#include "simulator/run/residents.h"

#include <algorithm>

#include "base/math.h"
#include "simulator/machine/cta.h"
#include "simulator/machine/random.h"
#include "simulator/run/cta_init.h"
#include "simulator/run/deadlock.h"
#include "simulator/run/run_cluster.h"
#include "simulator/run/virtual_clock.h"

namespace annulus::simulator {
namespace {

std::uint64_t ctas_of_cluster(const LaunchRequest& request) {
  return std::uint64_t{request.cluster[0]} * request.cluster[1] * request.cluster[2];
}

// An upper bound of the bytes of this machine that a resident CTA takes.
std::uint64_t host_bytes(const LaunchRequest& request, const abi::SimulatorOptions& options,
                         std::uint64_t ctas) {
  const std::uint64_t threads =
      std::uint64_t{request.block[0]} * request.block[1] * request.block[2];
  const std::uint64_t warps = base::ceil_div(threads, std::uint64_t{kLanes});
  const Program& program = *request.program;
  const std::uint64_t page = 4096;
  const std::uint64_t shared =
      std::uint64_t{program.dynamic_shared_offset} + request.dynamic_shared_bytes;
  std::uint64_t bytes =
      warps * (program.register_bytes + 2 * page) + threads * 2 * program.info.local_bytes + shared;
  if (options.checked == 0) return bytes;
  // A word of shared memory has a stamp of its writer and, for each warp, of its reads.
  bytes += shared / 4 * (8 + 4 * warps);
  // Each warp has three clocks for every warp of the grid, if blocks can order themselves.
  if (program.orders_blocks) bytes += warps * 12 * warps * ctas;
  return bytes;
}

// The number of co-resident clusters. If they would take too much memory of this machine, there are
// fewer; a kernel cannot rely on more than the device has left for it. But there is at least a CTA
// for each multiprocessor of the largest device. In a cooperative launch all clusters are resident.
std::uint64_t count_places(const LaunchRequest& request, const abi::SimulatorOptions& options,
                           std::uint64_t clusters) {
  if (request.cooperative) return clusters;
  constexpr std::uint64_t kBudget = std::uint64_t{1} << 30;
  constexpr std::uint64_t kMultiprocessors = 132;
  const std::uint64_t size = ctas_of_cluster(request);
  const std::uint64_t fit = request.resident_ctas != 0 ? request.resident_ctas : clusters * size;
  const std::uint64_t affordable =
      std::max(kBudget / host_bytes(request, options, clusters * size), kMultiprocessors);
  return std::clamp<std::uint64_t>(std::min(fit, affordable) / size, 1, clusters);
}

}  // namespace

bool live_together(const LaunchRequest& request, const abi::SimulatorOptions& options,
                   std::uint64_t clusters) {
  constexpr std::uint32_t kAlone = 1;
  constexpr std::uint32_t kTogether = 2;
  if (clusters <= 1) return false;
  if (request.cooperative) return true;
  if (options.resident == kAlone) return false;
  return request.program->lives_together || options.resident == kTogether;
}

Residents::Residents(const LaunchRequest& request, const abi::SimulatorOptions& options,
                     std::uint64_t clusters, std::function<void(Cluster&)> prepare)
    : request_(request),
      options_(options),
      clusters_(clusters),
      prepare_(std::move(prepare)),
      still_(request) {
  places_.resize(count_places(request, options, clusters));
}

// Clusters start at nearly the same time. A random draw decides which is first at a counter.
void Residents::run() {
  constexpr std::uint32_t kStart = 32;
  Xoshiro256 random(options_.seed);
  for (std::size_t number = 0; number < places_.size(); ++number) {
    start(number, random.below(kStart));
  }
  while (!turns_.empty()) {
    const std::size_t number = turns_.top().second;
    turns_.pop();
    Place& place = *places_[number];
    if (run_some(place)) {
      turns_.emplace(place.clock, number);
    } else if (next_ < clusters_) {
      start(number, place.clock);
    }
  }
}

void Residents::start(std::size_t number, std::uint64_t clock) {
  if (places_[number] == nullptr) {
    places_[number] = std::make_unique<Place>();
    prepare_(places_[number]->cluster);
    places_[number]->cluster.together = true;
  }
  Place& place = *places_[number];
  running_ = &place;
  place.index = next_++;
  place.clock = clock;
  start_cluster(place.cluster, request_, place.index, options_);
  place.work = work_done(place.cluster);
  place.taken = true;
  still_.start(place.cluster);
  turns_.emplace(clock, number);
}

// The first turn of a warp may begin with an ordered access. More turns follow, so that data in the
// processor's caches is used more than once. But no turn follows one in which a warp has reached
// such an access.
bool Residents::run_some(Place& place) {
  constexpr std::uint64_t kSlice = 4000;
  Cluster& cluster = place.cluster;
  running_ = &place;
  cluster.least = true;
  cluster.held = false;
  const std::uint64_t end = place.work + kSlice;
  while (place.work < end && !cluster.held) {
    if (!run_turn(cluster, request_, options_, ready_)) {
      end_cluster(cluster);
      still_.end(cluster);
      place.taken = false;
      return false;
    }
    cluster.least = false;
    const std::uint64_t work = work_done(cluster);
    place.clock += work - place.work;
    place.work = work;
    if (still_.turned(cluster)) report();
  }
  return true;
}

// Throws the Fault of clusters that wait for ever, at the lowest of them.
void Residents::report() {
  std::vector<Place*> alive;
  for (const auto& place : places_) {
    if (place->taken) alive.push_back(place.get());
  }
  std::ranges::sort(alive, {}, &Place::index);
  running_ = alive.front();
  std::vector<Cluster*> clusters;
  for (Place* place : alive) clusters.push_back(&place->cluster);
  report_polls(clusters, (clusters_ - next_) * clusters.front()->ctas.size());
}

}  // namespace annulus::simulator
