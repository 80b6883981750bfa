#ifndef ANNULUS_SIMULATOR_MACHINE_ASYNC_COPIES_H_
#define ANNULUS_SIMULATOR_MACHINE_ASYNC_COPIES_H_

// cp.async of one warp (PTX ISA 9.0, section 9.7.9.25): the copies that were issued, and when their
// bytes land. The hardware may land a copy at any moment between its issue and the wait for its
// group, so the simulator draws one. Groups are counted per lane, as in the ISA.

#include <array>
#include <cstdint>
#include <vector>

namespace annulus::simulator {

struct Mbarrier;
struct Warp;

class AsyncCopies {
 public:
  void reset();

  // Issues the copies of one instruction: `copy_bytes` go to shared offset to[lane], of which the
  // first source_bytes[lane] come from global address from[lane] and the rest are zero.
  void issue(Warp& warp, std::uint32_t mask, const std::uint32_t* to, const std::uint64_t* from,
             const std::uint32_t* source_bytes, std::uint32_t copy_bytes, bool checked);
  void commit(std::uint32_t mask);
  // Waits, for each lane of mask, until at most `pending` of its latest groups are in flight.
  // `uncommitted` also waits for copies that no commit has closed (cp.async.wait_all).
  void wait(Warp& warp, std::uint32_t mask, std::uint32_t pending, bool uncommitted, bool checked);

  // cp.async.mbarrier.arrive: each lane arrives at the mbarrier at offset[lane] when all copies
  // that it has issued have landed. Who waits for that phase has waited for the copies, and for
  // nothing else that the lane did.
  void arrive(Warp& warp, std::uint32_t mask, const std::uint32_t* offset);

  bool empty() const { return pending_.empty(); }
  // Checked mode: throws Fault where a write of global memory by `lane` of a warp of the CTA is to
  // what a copy may still read.
  void check_sources(const Warp& warp, int lane, std::uint64_t address, std::uint32_t bytes) const;
  // Whether a lane of mask has copies that were neither waited for nor left to an mbarrier.
  bool pending(std::uint32_t mask) const;
  // Lanes exit: what they have left to mbarriers lands.
  void land_arrivals(Warp& warp, std::uint32_t mask);
  // Lands a copy that an arrival waits for, when no warp can go on without it. False: there is
  // none.
  bool land_one(Warp& warp);

  // Lands some of what is in flight. It is called behind each turn of the warp when effects land at
  // drawn moments.
  void land_some(Warp& warp);

 private:
  struct Copy {
    std::uint32_t mask = 0;  // lanes not waited for yet
    std::uint32_t bytes = 0;
    bool landed = false;
    std::array<std::uint32_t, 32> to;
    std::array<std::uint64_t, 32> from;
    std::array<std::uint32_t, 32> source_bytes;
    std::array<std::uint32_t, 32> group;
    std::uint64_t number = 0;  // ascending
  };
  struct Arrival {
    std::uint32_t mask = 0;  // lanes that have yet to arrive
    std::array<std::uint32_t, 32> offset{};
    std::uint64_t after = 0;  // copies with lower numbers have to land first
    std::uint32_t pc = 0;
  };

  static void land(Warp& warp, Copy& copy);
  // Makes the arrivals whose copies have landed.
  void arrive_landed(Warp& warp);
  // The lanes of the arrival whose copies have landed.
  std::uint32_t landed(const Arrival& arrival) const;
  // What the lane copied before the arrival belongs to the open phase of the mbarrier now.
  void leave_to(Warp& warp, const Arrival& arrival, int lane, const Mbarrier& mbarrier);

  std::vector<Copy> pending_;
  std::vector<Arrival> arrivals_;
  std::uint64_t issued_ = 0;
  std::array<std::uint32_t, 32> groups_{};  // committed so far, per lane
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_MACHINE_ASYNC_COPIES_H_
