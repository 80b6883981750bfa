#ifndef ANNULUS_SIMULATOR_MACHINE_MBARRIERS_H_
#define ANNULUS_SIMULATOR_MACHINE_MBARRIERS_H_

// The mbarriers of a CTA (PTX ISA 9.0, section 9.7.13.15). Their state is stored outside of shared
// memory. The eight opaque bytes do not hold it, because only mbarrier instructions may touch them.
//
// A phase is over when all expected arrivals have happened and no transaction bytes are open. A
// warp that observes this comes after every arrival of that phase and of earlier phases
// (simulator/machine/arrivals.h). The bulk copies that report to an mbarrier are one agent of
// simulator/check/cluster_clocks.h, whose clock counts the phases.

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/check/cluster_clocks.h"
#include "simulator/machine/arrivals.h"

namespace annulus::simulator {

struct Cluster;
struct Cta;
struct Warp;

struct Mbarrier {
  std::uint32_t offset = 0;  // in shared memory
  bool valid = false;
  std::uint32_t expected = 0;  // arrivals in a phase
  std::uint32_t pending = 0;   // arrivals of the phase that have not happened yet
  std::int64_t bytes = 0;      // bytes still expected; below 0: bytes completed before they were
                               // expected
  std::uint32_t phase = 0;     // number of phases that are over
  std::uint32_t observed = 0;  // number of phases whose end a wait has observed

  // For checked mode.
  ClusterClocks::Agent agent = 0;
  std::uint32_t first_clock = 1;  // the agent's clock in phase 0
  Arrivals near;                  // the arrivals of the CTA's threads and of bulk copies
  Arrivals far;  // the arrivals of other CTAs of the cluster, if the scopes include them
  ClusterClocks::Agent init_warp = 0;  // the warp that initialised the mbarrier, and when
  std::uint32_t init_clock = 0;
  int init_lane = 0;
  std::uint32_t fence_clock = 0;  // the clock of fence.mbarrier_init after that, or 0

  struct Landing {  // the last bulk copy that reported here, and its phase
    std::uint32_t clock = 0;
    Warp* issuer = nullptr;
    int lane = 0;
    std::uint32_t pc = 0;
  };
  Landing landed;

  std::uint32_t clock() const { return first_clock + phase; }
};

class Mbarriers {
 public:
  static constexpr std::uint32_t kMaxCount = (1u << 20) - 1;  // the limit of arrivals, and of bytes

  void reset(std::uint32_t shared_bytes);

  // In all of these functions, `owner` is the CTA whose shared memory holds the mbarrier, and `by`
  // is the warp that runs an instruction for `lane`. They throw Fault for an operation that the ISA
  // leaves undefined. Only a warp of the owner can initialise or invalidate an mbarrier.
  void init(const Warp& by, std::uint32_t offset, std::uint32_t count, int lane);
  void invalidate(const Warp& by, std::uint32_t offset, int lane);
  // The mbarrier at `offset`, for an operation by a warp. Throws Fault unless there is an mbarrier
  // and its initialisation comes before. `async` means that the operation uses the asynchronous
  // proxy.
  Mbarrier& use(Cta& owner, const Warp& by, std::uint32_t offset, int lane, bool async);

  void expect(Cta& owner, Mbarrier& mbarrier, std::uint32_t bytes, int lane);
  // Adds one to the arrivals that the open phase expects. Later phases are not changed.
  static void expect_one_more(Mbarrier& mbarrier, int lane);
  void complete(Cta& owner, Mbarrier& mbarrier, std::uint32_t bytes, int lane);
  // With `drop`, all later phases expect fewer arrivals too. Without `may_complete`, it is a fault
  // if this arrival ends the phase.
  void arrive(Cta& owner, Mbarrier& mbarrier, std::uint32_t count, bool drop, bool may_complete,
              int lane);

  // At the end of a CTA: throws Fault unless a wait has observed the phase of every bulk copy.
  void check_landings_seen(Cluster& cluster) const;

  // A warp executes fence.mbarrier_init, at this clock.
  void fence_inits(ClusterClocks::Agent warp, std::uint32_t clock);

  // "the mbarrier at shared address 1032 (phase 3, 1 of 2 arrivals and 16384 bytes missing)"
  static std::string describe(const Mbarrier& mbarrier);
  // The mbarrier at `offset`, or null.
  const Mbarrier* find(std::uint32_t offset) const;

 private:
  void end_phase_if_over(Cta& owner, Mbarrier& mbarrier);

  std::vector<Mbarrier> all_;
  std::vector<std::uint16_t> index_;  // [offset / 8]: index into all_ plus 1, or 0 if there never
                                      // was an mbarrier
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_MACHINE_MBARRIERS_H_
