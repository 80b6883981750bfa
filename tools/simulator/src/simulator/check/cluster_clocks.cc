#include "simulator/check/cluster_clocks.h"

#include <algorithm>
#include <bit>

namespace annulus::simulator {

void ClusterClocks::Time::join(const Time& other) {
  // Lanes are stored only if their time is later than `all`. If both times have lanes, the lanes of
  // both get the larger `some`. This may order too much, which hides a race, but it never reports a
  // false one.
  const std::uint32_t most = std::max(all, other.all);
  const bool mine = some >= most && lanes != 0;
  const bool theirs = other.some >= most && other.lanes != 0;
  lanes = (mine ? lanes : 0) | (theirs ? other.lanes : 0);
  some = std::max(mine ? some : 0, theirs ? other.some : 0);
  all = most;
}

void ClusterClocks::reset(std::uint32_t warps) {
  warps_ = warps;
  agents_ = 2 * warps;
  std::fill_n(clock_.begin(), warps, 1u);
  sync_.assign(warps, 1);
  of_lanes_.clear();
  known_.resize(warps);
  for (Vector& known : known_) known.assign(agents_, Known{});
}

ClusterClocks::Agent ClusterClocks::add() {
  for (Vector& known : known_) known.emplace_back();
  return agents_++;
}

void ClusterClocks::tick(Agent warp) {
  // The clock stops at the end of its range. Later races are missed, but no false one is reported.
  if (clock_[warp] + 1 < kMax) ++clock_[warp];
}

void ClusterClocks::sync(Agent warp) {
  tick(warp);
  sync_[warp] = clock_[warp];
}

ClusterClocks::Time ClusterClocks::own(Agent warp, Lanes lanes, bool whole) const {
  if (whole) return {clock_[warp] + 1, 0, 0};
  Time time{sync_[warp], clock_[warp], lanes};
  for (Lanes rest = of_lanes_.empty() ? 0 : lanes; rest != 0; rest &= rest - 1) {
    time.join(of_lanes_[warp][static_cast<std::size_t>(std::countr_zero(rest))]);
  }
  return time;
}

void ClusterClocks::join(Vector& into, const Vector& from) {
  if (into.size() < from.size()) into.resize(from.size());
  for (std::size_t agent = 0; agent < from.size(); ++agent) {
    into[agent].order.join(from[agent].order);
    into[agent].fenced.join(from[agent].fenced);
    into[agent].over.join(from[agent].over);
  }
}

void ClusterClocks::release(Vector& into, Agent warp, Lanes lanes, bool whole) {
  join(into, known_[warp]);
  into[warp].order.join(own(warp, lanes, whole));
  tick(warp);
}

void ClusterClocks::acquire(const Vector& from, Agent warp) {
  Vector& known = known_[warp];
  const std::size_t count = std::min(from.size(), known.size());
  for (std::size_t agent = 0; agent < count; ++agent) {
    known[agent].order.join(from[agent].order);
    known[agent].fenced.join(from[agent].fenced);
    known[agent].over.join(from[agent].over);
  }
  if (warp >= count) return;
  // The warp's own entry states which of its lanes met at the barrier. If all 32 did, they are
  // ordered among each other, up to and including the clock `some`.
  const Time& own = from[warp].order;
  const bool everyone = own.lanes == 0xffffffffu;
  sync_[warp] = std::max(sync_[warp], everyone ? std::max(own.all, own.some + 1) : own.all);
}

ClusterClocks::LaneTimes& ClusterClocks::of_lanes(Agent warp) {
  if (of_lanes_.empty()) of_lanes_.resize(warps_);
  return of_lanes_[warp];
}

// An access of all lanes together comes after another access if it does so for each lane. For an
// access of several lanes it is not recorded which lanes they are. It counts as known if any lane
// knows it, which may hide a race but never reports a false one.
bool ClusterClocks::lane_knows(Agent warp, int lane, std::uint32_t clock, int other) const {
  const LaneTimes& times = of_lanes_[warp];
  const int as = other == kSeveral ? kCollective : other;
  const auto covers = [&](const Time& time) { return time.covers(clock, as); };
  return lane < 32 ? covers(times[static_cast<std::size_t>(lane)])
                   : std::ranges::all_of(times, covers);
}

void ClusterClocks::release_lane(Vector& into, Agent warp, int lane) {
  join(into, known_[warp]);
  into[warp].order.join(own(warp, Lanes{1} << lane, false));
}

void ClusterClocks::acquire_lane(const Vector& from, Agent warp, int lane) {
  Vector& known = known_[warp];
  const std::size_t count = std::min(from.size(), known.size());
  for (std::size_t agent = 0; agent < count; ++agent) {
    Time& order =
        agent == warp ? of_lanes(warp)[static_cast<std::size_t>(lane)] : known[agent].order;
    order.join(from[agent].order);
    known[agent].fenced.join(from[agent].fenced);
    known[agent].over.join(from[agent].over);
  }
}

void ClusterClocks::learn_lane(Agent warp, int lane, Lanes others, std::uint32_t clock) {
  of_lanes(warp)[static_cast<std::size_t>(lane)].join({0, clock, others});
}

std::uint32_t ClusterClocks::advance(Agent warp) {
  const std::uint32_t clock = clock_[warp];
  tick(warp);
  return clock;
}

void ClusterClocks::learn(Agent warp, Agent other, std::uint32_t clock) {
  Known& of_other = known_[warp][other];
  if (of_other.order.all > clock) return;
  join(known_[warp], known_[other]);
  of_other.order.join({clock + 1, 0, 0});
}

void ClusterClocks::release_ended(Vector& into, Agent warp, Lanes lanes, bool whole) {
  const Vector& known = known_[warp];
  if (into.size() < known.size()) into.resize(known.size());
  for (std::size_t agent = 0; agent < known.size(); ++agent) {
    into[agent].over.join(known[agent].order);
    into[agent].over.join(known[agent].over);
  }
  into[warp].over.join(own(warp, lanes, whole));
  tick(warp);
}

void ClusterClocks::acquire_ended(const Vector& from, Agent warp) {
  Vector& known = known_[warp];
  const std::size_t count = std::min(from.size(), known.size());
  for (std::size_t agent = 0; agent < count; ++agent) {
    known[agent].over.join(from[agent].order);
    known[agent].over.join(from[agent].over);
  }
}

void ClusterClocks::fence(Agent warp, Lanes lanes, bool whole) {
  Vector& known = known_[warp];
  for (Known& one : known) one.fenced.join(one.order);
  known[warp].fenced.join(own(warp, lanes, whole));
  tick(warp);
}

void ClusterClocks::wait(Agent warp, Agent agent, std::uint32_t clock) {
  known_[warp][agent].order.join({clock, 0, 0});
}

}  // namespace annulus::simulator
