#ifndef ANNULUS_SIMULATOR_MACHINE_FLIGHTS_H_
#define ANNULUS_SIMULATOR_MACHINE_FLIGHTS_H_

// For checked mode: the global memory that bulk copies of a CTA read or write, if the CTA has not
// waited for the copies yet. It is wrong to read what a store has not written yet, and to overwrite
// what a load has not read yet. Both mistakes do no harm as long as the copies are quick. A store
// is over when its thread has waited for its group without .read. A load is over when a thread of
// the CTA has observed the phase of the mbarrier that counts the load.

#include <cstdint>
#include <vector>

namespace annulus::simulator {

struct Warp;

struct Flight {
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };
  std::vector<Range> ranges;
  bool writes = false;
  bool reduces = false;  // a reduction, which other reductions may overlap
  const Warp* issuer = nullptr;
  int lane = 0;
  std::uint32_t pc = 0;
  std::uint32_t group = 0;     // a store's group in its lane
  std::uint32_t mbarrier = 0;  // the offset of a load's mbarrier
  std::uint32_t clock = 0;     // the clock of a load's mbarrier in its phase

  std::uint64_t begin() const { return ranges.front().begin; }  // the lowest address
  std::uint64_t end() const { return ranges.back().end; }       // one past the highest address
};

class Flights {
 public:
  void reset() { flights_.clear(); }
  bool empty() const { return flights_.empty(); }

  // Requires: the ranges ascend. If there are no ranges, nothing is added.
  void add(Flight flight);
  // Removes the stores that are over, after the lane has waited for all but the latest `left` of
  // its `committed` groups. Visits each of them.
  template <typename Visit>
  void finish_stores(const Warp& warp, int lane, std::uint32_t committed, std::uint32_t left,
                     Visit visit) {
    std::erase_if(flights_, [&](const Flight& flight) {
      const bool over = flight.writes && flight.issuer == &warp && flight.lane == lane &&
                        flight.group + left < committed;
      if (over) visit(flight);
      return over;
    });
  }
  // Removes the loads that are over, after a thread has observed the end of all phases of the
  // mbarrier before this clock.
  void finish_loads(std::uint32_t mbarrier, std::uint32_t clock);

  // Throws Fault if an access by `lane` of a warp of the CTA conflicts with a copy that is under
  // way.
  void check(const Warp& by, int lane, std::uint64_t address, std::uint32_t bytes, bool writes,
             bool reduces) const;

 private:
  std::vector<Flight> flights_;
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_MACHINE_FLIGHTS_H_
