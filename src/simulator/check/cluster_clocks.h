#ifndef ANNULUS_SIMULATOR_CHECK_CLUSTER_CLOCKS_H_
#define ANNULUS_SIMULATOR_CHECK_CLUSTER_CLOCKS_H_

// Who comes before whom in shared memory: vector clocks (FastTrack, Flanagan and Freund, PLDI 2009)
// over the agents of a cluster. An agent is whoever accesses shared memory in an order of its own:
// a warp; the matrix unit on behalf of a warp (wgmma); all that reports to one mbarrier.
//
// A warp's clock ticks at everything that releases: a barrier, an arrival, a proxy fence. Its
// accesses are told apart by lane, since the lanes of a warp are ordered among themselves only by
// bar.warp.sync and its like. For the other agents a clock is what their owner makes of it: the
// number of a group of matrix products, of a phase of an mbarrier.
//
// Beside the order itself each warp knows which accesses the asynchronous proxy sees
// (fence.proxy.async anywhere on the way from the access to it).

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

  static constexpr std::uint32_t kMax = (1u << 20) - 3;
  static constexpr std::size_t kMaxWarps = 8 * 32;  // of a cluster
  // In place of a lane: all lanes of the warp together (ldmatrix), or more than one.
  static constexpr int kCollective = 62;
  static constexpr int kSeveral = 63;

  // How far an agent's accesses come before something: those of every lane before clock `all`,
  // those of `lanes` up to and with clock `some`.
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
      // What all lanes do together is done when any of them goes on.
      return lane == kCollective ? lanes != 0 : lanes == 0xffffffffu;
    }
  };

  struct Known {
    Time order;   // comes before
    Time fenced;  // and is seen by the asynchronous proxy
    Time over;    // has ended, though what it wrote need not be seen: reads, and completed copies
  };
  // What a barrier has seen, by agent; shorter than the number of agents means nothing of the rest.
  using Vector = std::vector<Known>;

  // A cluster starts: agents 0 ... warps - 1 are its warps, the next `warps` their matrix units.
  void reset(std::uint32_t warps);
  Agent add();  // one more agent
  Agent matrix_unit(Agent warp) const { return warps_ + warp; }

  std::uint32_t warps() const { return warps_; }
  std::uint32_t clock(Agent warp) const { return clock_[warp]; }

  // bar.warp.sync: what any lane did comes before what any other does from now on.
  void sync(Agent warp);
  // `lanes` of the warp release into `into`. `whole`: no other lane is left, so all is released.
  void release(Vector& into, Agent warp, Lanes lanes, bool whole);
  static void join(Vector& into, const Vector& from);
  // The warp goes on from something that saw `from`.
  void acquire(const Vector& from, Agent warp);
  // The same two where the scopes do not include each other's threads: what was over is known to be
  // over, and nothing is seen.
  void release_ended(Vector& into, Agent warp, Lanes lanes, bool whole);
  void acquire_ended(const Vector& from, Agent warp);
  // fence.proxy.async by `lanes`.
  void fence(Agent warp, Lanes lanes, bool whole);
  // The warp has waited for all that `agent` did before `clock`.
  void wait(Agent warp, Agent agent, std::uint32_t clock);

  // Whether an access of `agent` comes before what `lane` of `warp` does now.
  bool before(Agent agent, std::uint32_t clock, int agent_lane, Agent warp, int lane) const {
    if (agent == warp && (clock < sync_[warp] || agent_lane == lane)) return true;
    return known_[warp][agent].order.covers(clock, agent_lane);
  }
  // Likewise before what an asynchronous operation that the warp starts now does.
  bool before_async(Agent agent, std::uint32_t clock, int agent_lane, Agent warp) const {
    return known_[warp][agent].fenced.covers(clock, agent_lane);
  }
  // Whether it has ended when the warp starts an asynchronous write now.
  bool ended(Agent agent, std::uint32_t clock, int agent_lane, Agent warp, int lane) const {
    return before(agent, clock, agent_lane, warp, lane) ||
           known_[warp][agent].over.covers(clock, agent_lane);
  }
  // Accesses of every lane of `agent` before this clock come before what the warp does now, or
  // with kEnded have ended.
  template <bool kEnded = false>
  std::uint32_t all_before(Agent agent, Agent warp) const {
    const Known& known = known_[warp][agent];
    const std::uint32_t ordered = agent == warp ? sync_[warp] : known.order.all;
    return kEnded ? std::max(ordered, known.over.all) : ordered;
  }
  const Vector& known(Agent warp) const { return known_[warp]; }

 private:
  void tick(Agent warp);
  // What the warp's own accesses are to others, if `lanes` release now.
  Time own(Agent warp, Lanes lanes, bool whole) const;

  std::uint32_t warps_ = 0;
  std::uint32_t agents_ = 0;
  std::array<std::uint32_t, kMaxWarps> clock_{};  // [warp]
  std::vector<std::uint32_t> sync_;  // [warp] accesses before this clock are ordered for all lanes
  std::vector<Vector> known_;        // [warp][agent]
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_CHECK_CLUSTER_CLOCKS_H_
