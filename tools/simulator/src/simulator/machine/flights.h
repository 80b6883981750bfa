#ifndef ANNULUS_SIMULATOR_MACHINE_FLIGHTS_H_
#define ANNULUS_SIMULATOR_MACHINE_FLIGHTS_H_

// For checked mode: what the bulk copies of a CTA read from global memory, or write there, that the
// CTA has not waited for. Reading what a store has yet to write is as wrong as overwriting what a
// load has yet to read, and both go well while the copies are quick. A store is over when its
// thread has waited for its group without .read, and a load when a thread of the CTA has seen the
// phase of the mbarrier that counts it.

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
  bool reduces = false;  // a write that others may be added to
  const Warp* issuer = nullptr;
  int lane = 0;
  std::uint32_t pc = 0;
  std::uint32_t group = 0;     // of a store, in its lane
  std::uint32_t mbarrier = 0;  // of a load, its offset
  std::uint32_t clock = 0;     // of a load, that of the mbarrier in its phase

  std::uint64_t begin() const { return ranges.front().begin; }  // the lowest address
  std::uint64_t end() const { return ranges.back().end; }       // above the highest
};

class Flights {
 public:
  void reset() { flights_.clear(); }
  bool empty() const { return flights_.empty(); }

  // Requires: ranges that ascend. Adds nothing where there are none.
  void add(Flight flight);
  // The lane has waited for all but its `left` latest groups of `committed`. Visits what is over.
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
  // A thread has seen the end of all phases of the mbarrier before this clock.
  void finish_loads(std::uint32_t mbarrier, std::uint32_t clock);

  // Throws Fault where an access by `lane` of a warp of the CTA conflicts with one that is under
  // way.
  void check(const Warp& by, int lane, std::uint64_t address, std::uint32_t bytes, bool writes,
             bool reduces) const;

 private:
  std::vector<Flight> flights_;
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_MACHINE_FLIGHTS_H_
