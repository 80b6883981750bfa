#ifndef ANNULUS_SIMULATOR_MACHINE_ASYNC_COPIES_H_
#define ANNULUS_SIMULATOR_MACHINE_ASYNC_COPIES_H_

// cp.async of one warp (PTX ISA 9.0, section 9.7.9.25): the copies that were issued, and when their
// bytes land. The hardware may land a copy at any moment between its issue and the wait for its
// group, so the simulator draws a moment. Groups are counted for each lane, as in the ISA.

#include <array>
#include <cstdint>
#include <vector>

namespace annulus::simulator {

struct Mbarrier;
struct Warp;

class AsyncCopies {
 public:
  void reset();

  // Issues the copies of one instruction. `copy_bytes` bytes go to shared offset to[lane]. The
  // first source_bytes[lane] of them come from global address from[lane], and the rest are zero.
  void issue(Warp& warp, std::uint32_t mask, const std::uint32_t* to, const std::uint64_t* from,
             const std::uint32_t* source_bytes, std::uint32_t copy_bytes, bool checked);
  void commit(std::uint32_t mask);
  // Waits, for each lane of mask, until at most `pending` of its latest groups are in flight. With
  // `uncommitted` it also waits for copies that no commit has closed (cp.async.wait_all).
  void wait(Warp& warp, std::uint32_t mask, std::uint32_t pending, bool uncommitted, bool checked);

  // cp.async.mbarrier.arrive: each lane arrives at the mbarrier at offset[lane] when all copies
  // that it has issued have landed. A thread that waits for that phase has waited for the copies,
  // but for no other access of the lane.
  void arrive(Warp& warp, std::uint32_t mask, const std::uint32_t* offset);

  bool empty() const { return pending_.empty(); }
  // Checked mode: throws Fault if `lane` of a warp of the CTA writes to global memory that a copy
  // may still read.
  void check_sources(const Warp& warp, int lane, std::uint64_t address, std::uint32_t bytes) const;
  // Whether a lane of mask has issued copies that it has not waited for and that no mbarrier
  // counts.
  bool pending(std::uint32_t mask) const;
  // Called when lanes exit: lands the copies that their mbarriers count.
  void land_arrivals(Warp& warp, std::uint32_t mask);
  // Lands a copy that an arrival waits for, when no warp can continue without it. Returns false if
  // there is none.
  bool land_one(Warp& warp);

  // Lands some of the copies in flight. It is called after each turn of the warp if effects land at
  // drawn moments.
  void land_some(Warp& warp);

 private:
  struct Copy {
    std::uint32_t mask = 0;  // lanes that have not waited for the copy
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
  // Performs the arrivals whose copies have landed.
  void arrive_landed(Warp& warp);
  // The lanes of the arrival whose copies have all landed.
  std::uint32_t landed(const Arrival& arrival) const;
  // Moves the copies that the lane issued before the arrival to the open phase of the mbarrier.
  void leave_to(Warp& warp, const Arrival& arrival, int lane, const Mbarrier& mbarrier);

  std::vector<Copy> pending_;
  std::vector<Arrival> arrivals_;
  std::uint64_t issued_ = 0;
  std::array<std::uint32_t, 32> groups_{};  // number of committed groups of each lane
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_MACHINE_ASYNC_COPIES_H_
