#ifndef ANNULUS_SIMULATOR_MACHINE_ASYNC_COPIES_H_
#define ANNULUS_SIMULATOR_MACHINE_ASYNC_COPIES_H_

// cp.async of one warp (PTX ISA 9.0, section 9.7.9.25): the copies that were issued, and when their
// bytes land. The hardware may land a copy at any moment between its issue and the wait for its
// group, so the simulator draws one. Groups are counted per lane, as in the ISA.

#include <array>
#include <cstdint>
#include <vector>

namespace annulus::simulator {

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

  bool empty() const { return pending_.empty(); }
  // Whether a lane of mask has copies that were not waited for.
  bool pending(std::uint32_t mask) const;

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
  };

  static void land(Warp& warp, Copy& copy);

  std::vector<Copy> pending_;
  std::array<std::uint32_t, 32> groups_{};  // committed so far, per lane
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_MACHINE_ASYNC_COPIES_H_
