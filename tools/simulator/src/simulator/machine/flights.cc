#include "simulator/machine/flights.h"

#include <algorithm>
#include <utility>

#include "simulator/fault/fault.h"
#include "simulator/machine/cta.h"

namespace annulus::simulator {

void Flights::add(Flight flight) {
  if (flight.ranges.empty()) return;
  flights_.push_back(std::move(flight));
}

void Flights::finish_loads(std::uint32_t mbarrier, std::uint32_t clock) {
  std::erase_if(flights_, [&](const Flight& flight) {
    return !flight.writes && flight.mbarrier == mbarrier && flight.clock < clock;
  });
}

void Flights::check(const Warp& by, int lane, std::uint64_t address, std::uint32_t bytes,
                    bool writes, bool reduces) const {
  for (const Flight& flight : flights_) {
    if (!writes && !flight.writes) continue;
    // In CUTLASS all lanes of a warp may execute the same store, which the hardware performs once.
    const bool same = flight.issuer == &by && flight.pc == by.pc && flight.writes && writes;
    if (same && !by.cta->strict) continue;
    if (reduces && flight.reduces) continue;
    if (address >= flight.end() || address + bytes <= flight.begin()) continue;
    // The first range that ends above the address.
    const auto range = std::ranges::upper_bound(flight.ranges, address, {},
                                                [](const Flight::Range& one) { return one.end; });
    if (range == flight.ranges.end() || range->begin >= address + bytes) continue;
    report_at(FaultKind::kInFlight, lane,
              "{} of {} bytes at global address {:#x}, which a bulk copy of lane {} of warp {} may "
              "still {}; {} has to come first",
              writes ? "write" : "read", bytes, address, flight.lane, flight.issuer->index,
              flight.writes ? "write" : "read",
              flight.writes ? "cp.async.bulk.wait_group without .read" : "a wait for its mbarrier");
  }
}

}  // namespace annulus::simulator
