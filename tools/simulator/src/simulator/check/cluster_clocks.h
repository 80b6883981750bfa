#ifndef ANNULUS_SIMULATOR_CHECK_CLUSTER_CLOCKS_H_
#define ANNULUS_SIMULATOR_CHECK_CLUSTER_CLOCKS_H_

// Which accesses to shared memory come before which, by vector clocks (FastTrack, Flanagan and
// Freund, PLDI 2009) over the agents of a cluster. An agent is anything that accesses shared memory
// in an order of its own: a warp; the matrix unit on behalf of a warp (wgmma); the bulk copies that
// report to one mbarrier, together.
//
// A warp's clock ticks at everything that releases: a barrier, an arrival, a proxy fence. Its
// accesses are told apart by lane, since the lanes of a warp are ordered among themselves only by
// bar.warp.sync and the like. The clock of another agent counts what its owner chooses: groups of
// matrix products, or the phases of an mbarrier.
//
// Besides the order itself each warp knows which accesses the asynchronous proxy sees, which are
// those with a fence.proxy.async anywhere on the way from the access to the warp.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace annulus::simulator {

class ClusterClocks {
 public:
  using Agent = std::uint32_t;
  using Lanes = std::uint32_t;  // a bit each

  // The first clock that is not used: stamps have 20 bits for one, and SharedShadow needs the three
  // highest values for kBytesClock, kFlightClock and kAtomicClock.
  static constexpr std::uint32_t kMax = (1u << 20) - 4;
  static constexpr std::size_t kMaxWarps = 8 * 32;  // 8 CTAs of 1024 threads
  // These stand in place of a lane for all lanes of the warp together (ldmatrix), and for more than
  // one lane.
  static constexpr int kCollective = 62;
  static constexpr int kSeveral = 63;

  // Which accesses of an agent come before something: those of every lane at clocks below `all`,
  // and those of `lanes` at clocks up to and including `some`.
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
      // A collective access is over when any of its lanes goes on.
      return lane == kCollective ? lanes != 0 : lanes == 0xffffffffu;
    }
  };

  struct Known {
    Time order;   // these accesses come before
    Time fenced;  // these come before and are seen by the asynchronous proxy
    Time over;    // these have ended, though what they wrote need not be seen
  };
  // What a barrier has seen, by agent. Where it is shorter than the number of agents, nothing is
  // known of the rest.
  using Vector = std::vector<Known>;

  // Starts a cluster: agents 0 ... warps - 1 are its warps, the next `warps` their matrix units.
  void reset(std::uint32_t warps);
  Agent add();  // adds one more agent
  Agent matrix_unit(Agent warp) const { return warps_ + warp; }

  std::uint32_t warps() const { return warps_; }
  std::uint32_t clock(Agent warp) const { return clock_[warp]; }

  // bar.warp.sync: what any lane did comes before what any other lane does from now on.
  void sync(Agent warp);
  // `lanes` of the warp release into `into` what the warp knows and what they did. `whole` says
  // that no other lane is left, so what all lanes did is released.
  void release(Vector& into, Agent warp, Lanes lanes, bool whole);
  static void join(Vector& into, const Vector& from);
  // The warp passes a barrier that has seen `from`, and knows it from now on.
  void acquire(const Vector& from, Agent warp);
  // Release and acquire by one lane, which order it among the lanes of its own warp too: what the
  // releasing lane did comes before what the acquiring lane does, and not before what its
  // neighbours do. The clock does not end with release_lane(): advance() ends it when all lanes of
  // the instruction have released.
  void release_lane(Vector& into, Agent warp, int lane);
  void acquire_lane(const Vector& from, Agent warp, int lane);
  // What `others` of the warp did up to and including `clock` comes before what the lane does.
  void learn_lane(Agent warp, int lane, Lanes others, std::uint32_t clock);
  // Release and acquire where the scopes do not include each other's threads: the acquiring warp
  // learns what has ended, but nothing that was written is ordered for it.
  void release_ended(Vector& into, Agent warp, Lanes lanes, bool whole);
  void acquire_ended(const Vector& from, Agent warp);
  // Ends the warp's clock and returns it, for a later learn().
  std::uint32_t advance(Agent warp);
  // What `other` knows, and what it did up to and including this clock, comes before what the warp
  // does from now on.
  void learn(Agent warp, Agent other, std::uint32_t clock);
  // fence.proxy.async by `lanes`.
  void fence(Agent warp, Lanes lanes, bool whole);
  // The warp has waited for all that `agent` did before `clock`.
  void wait(Agent warp, Agent agent, std::uint32_t clock);

  // Whether an access of `agent_lane` of `agent` at `clock` comes before what `lane` of `warp` does
  // now.
  bool before(Agent agent, std::uint32_t clock, int agent_lane, Agent warp, int lane) const {
    if (agent == warp && (clock < sync_[warp] || agent_lane == lane)) return true;
    return known_[warp][agent].order.covers(clock, agent_lane) ||
           (agent == warp && !of_lanes_.empty() && lane_knows(warp, lane, clock, agent_lane));
  }
  // Whether it comes before what an asynchronous operation does that the warp starts now.
  bool before_async(Agent agent, std::uint32_t clock, int agent_lane, Agent warp) const {
    return known_[warp][agent].fenced.covers(clock, agent_lane);
  }
  // Whether it has ended if the warp starts an asynchronous write now.
  bool ended(Agent agent, std::uint32_t clock, int agent_lane, Agent warp, int lane) const {
    return before(agent, clock, agent_lane, warp, lane) ||
           known_[warp][agent].over.covers(clock, agent_lane);
  }
  // The first clock of `agent` that is not covered: accesses of all its lanes at clocks below it
  // come before what the warp does now, or with kEnded have ended.
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
  // Which of the warp's own accesses are released, if `lanes` release now.
  Time own(Agent warp, Lanes lanes, bool whole) const;

  std::uint32_t warps_ = 0;
  std::uint32_t agents_ = 0;
  std::array<std::uint32_t, kMaxWarps> clock_{};  // [warp]
  // [warp]: its own accesses before this clock come before what any of its lanes does now.
  std::vector<std::uint32_t> sync_;
  std::vector<Vector> known_;  // [warp][agent]
  // [warp][lane]: accesses of the warp that come before what this lane does now, beyond `sync_`.
  // Empty until a lane acquires by itself.
  std::vector<LaneTimes> of_lanes_;
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_CHECK_CLUSTER_CLOCKS_H_
