#ifndef ANNULUS_SIMULATOR_CHECK_CLUSTER_CLOCKS_H_
#define ANNULUS_SIMULATOR_CHECK_CLUSTER_CLOCKS_H_

// The order of accesses to shared memory, by vector clocks (FastTrack, Flanagan and Freund, PLDI
// 2009) over the agents of a cluster. An agent is anything whose accesses to shared memory have an
// order: a warp, the matrix unit that works for a warp (wgmma), or all bulk copies that report to
// one mbarrier.
//
// A warp's clock ticks at everything that releases: a barrier, an arrival, a proxy fence. Accesses
// of a warp are distinguished by lane, because the lanes of a warp are ordered among themselves
// only by bar.warp.sync and similar instructions. The clocks of other agents count groups of matrix
// products, or phases of an mbarrier.
//
// For each warp the class also stores which accesses the asynchronous proxy sees: accesses with a
// fence.proxy.async anywhere on the path from the access to the warp.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace annulus::simulator {

class ClusterClocks {
 public:
  using Agent = std::uint32_t;
  using Lanes = std::uint32_t;  // one bit for each lane

  // The first clock that is not used. Stamps have 20 bits for a clock, and SharedShadow needs the
  // three highest values for kBytesClock, kFlightClock and kAtomicClock.
  static constexpr std::uint32_t kMax = (1u << 20) - 4;
  static constexpr std::size_t kMaxWarps = 8 * 32;  // 8 CTAs of 1024 threads
  // In place of a lane, kCollective means all lanes of the warp together (ldmatrix), and kSeveral
  // means more than one lane.
  static constexpr int kCollective = 62;
  static constexpr int kSeveral = 63;

  // A set of accesses of an agent: the accesses of every lane at clocks below `all`, and those of
  // `lanes` at clocks up to and including `some`.
  struct Time {
    std::uint32_t all = 0;
    std::uint32_t some = 0;
    Lanes lanes = 0;

    bool covers(std::uint32_t clock, int lane) const {
      return clock < all || (clock <= some && of(lane));
    }
    void join(const Time& other);

   private:
    bool of(int lane) const {
      if (lane < 32) return ((lanes >> lane) & 1) != 0;
      // A collective access is over when any of its lanes continues.
      return lane == kCollective ? lanes != 0 : lanes == 0xffffffffu;
    }
  };

  struct Known {
    Time order;   // accesses that come before
    Time fenced;  // accesses that come before and that the asynchronous proxy sees
    Time over;    // accesses that have ended, though their writes may not be visible
  };
  // The accesses that come before a barrier, or before what a warp does next, by agent. If the
  // vector is shorter than the number of agents, no accesses of the other agents come before.
  using Vector = std::vector<Known>;

  // Starts a cluster: agents 0 ... warps - 1 are its warps, and the next `warps` agents are their
  // matrix units.
  void reset(std::uint32_t warps);
  Agent add();  // adds one more agent
  Agent matrix_unit(Agent warp) const { return warps_ + warp; }

  std::uint32_t warps() const { return warps_; }
  std::uint32_t clock(Agent warp) const { return clock_[warp]; }

  // bar.warp.sync: accesses of any lane so far come before accesses of any other lane from now on.
  void sync(Agent warp);
  // `lanes` of the warp release into `into` what comes before the warp, and their own accesses.
  // `whole` means that no other lane is left, so the accesses of all lanes are released.
  void release(Vector& into, Agent warp, Lanes lanes, bool whole);
  static void join(Vector& into, const Vector& from);
  // The warp passes a barrier that holds `from`. From now on these accesses come before the warp's.
  void acquire(const Vector& from, Agent warp);
  // Release and acquire by a single lane, which also order it among the lanes of its own warp.
  // Accesses of the releasing lane come before accesses of the acquiring lane, but not before
  // accesses of its neighbours. release_lane() does not end the clock; advance() ends it when all
  // lanes of the instruction have released.
  void release_lane(Vector& into, Agent warp, int lane);
  void acquire_lane(const Vector& from, Agent warp, int lane);
  // Accesses of `others` of the warp up to and including `clock` come before accesses of the lane.
  void learn_lane(Agent warp, int lane, Lanes others, std::uint32_t clock);
  // Release and acquire for scopes that do not include each other's threads. The acquiring warp
  // learns which accesses have ended, but it does not see what they wrote.
  void release_ended(Vector& into, Agent warp, Lanes lanes, bool whole);
  void acquire_ended(const Vector& from, Agent warp);
  // Ends the warp's clock and returns it, for a later call of learn().
  std::uint32_t advance(Agent warp);
  // The accesses of `other` up to and including this clock, and everything that comes before
  // `other`, come before accesses of the warp from now on.
  void learn(Agent warp, Agent other, std::uint32_t clock);
  // `lanes` execute fence.proxy.async.
  void fence(Agent warp, Lanes lanes, bool whole);
  // The warp has waited for all accesses of `agent` before `clock`.
  void wait(Agent warp, Agent agent, std::uint32_t clock);

  // Whether an access of `agent_lane` of `agent` at `clock` comes before an access that `lane` of
  // `warp` makes now.
  bool before(Agent agent, std::uint32_t clock, int agent_lane, Agent warp, int lane) const {
    if (agent == warp && (clock < sync_[warp] || agent_lane == lane)) return true;
    return known_[warp][agent].order.covers(clock, agent_lane) ||
           (agent == warp && !of_lanes_.empty() && lane_knows(warp, lane, clock, agent_lane));
  }
  // Whether such an access comes before an asynchronous operation that the warp starts now.
  bool before_async(Agent agent, std::uint32_t clock, int agent_lane, Agent warp) const {
    return known_[warp][agent].fenced.covers(clock, agent_lane);
  }
  // Whether such an access has ended when the warp starts an asynchronous write now.
  bool ended(Agent agent, std::uint32_t clock, int agent_lane, Agent warp, int lane) const {
    return before(agent, clock, agent_lane, warp, lane) ||
           known_[warp][agent].over.covers(clock, agent_lane);
  }
  // The first clock of `agent` that is not covered. Accesses of all its lanes at lower clocks come
  // before what the warp does now. With kEnded they have ended.
  template <bool kEnded = false>
  std::uint32_t all_before(Agent agent, Agent warp) const {
    const Known& known = known_[warp][agent];
    const std::uint32_t ordered = agent == warp ? sync_[warp] : known.order.all;
    return kEnded ? std::max(ordered, known.over.all) : ordered;
  }
  const Vector& known(Agent warp) const { return known_[warp]; }

 private:
  using LaneTimes = std::array<Time, 32>;

  void tick(Agent warp);
  LaneTimes& of_lanes(Agent warp);
  bool lane_knows(Agent warp, int lane, std::uint32_t clock, int other) const;
  // The warp's own accesses that are released if `lanes` release now.
  Time own(Agent warp, Lanes lanes, bool whole) const;

  std::uint32_t warps_ = 0;
  std::uint32_t agents_ = 0;
  std::array<std::uint32_t, kMaxWarps> clock_{};  // [warp]
  // [warp]: its own accesses before this clock come before accesses of all of its lanes now.
  std::vector<std::uint32_t> sync_;
  std::vector<Vector> known_;  // [warp][agent]
  // [warp][lane]: accesses of the warp that come before accesses of this lane now, in addition to
  // `sync_`. It is empty until a single lane acquires.
  std::vector<LaneTimes> of_lanes_;
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_CHECK_CLUSTER_CLOCKS_H_
