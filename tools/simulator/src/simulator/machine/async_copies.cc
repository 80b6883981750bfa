#include "simulator/machine/async_copies.h"

#include <algorithm>
#include <cstring>

#include "simulator/machine/cluster.h"
#include "simulator/machine/cta.h"

namespace annulus::simulator {

void AsyncCopies::reset() {
  pending_.clear();
  arrivals_.clear();
  issued_ = 0;
  groups_.fill(0);
}

void AsyncCopies::land(Warp& warp, Copy& copy) {
  for (std::uint32_t rest = copy.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::size_t>(lowest_lane(rest));
    std::byte* to = warp.cta->shared.data() + copy.to[lane];
    const std::uint32_t bytes = copy.source_bytes[lane];
    std::memcpy(to, reinterpret_cast<const void*>(copy.from[lane]), bytes);
    std::memset(to + bytes, 0, copy.bytes - bytes);
  }
  copy.landed = true;
}

void AsyncCopies::issue(Warp& warp, std::uint32_t mask, const std::uint32_t* to,
                        const std::uint64_t* from, const std::uint32_t* source_bytes,
                        std::uint32_t copy_bytes, bool checked) {
  Cta& cta = *warp.cta;
  Copy& copy = pending_.emplace_back();
  copy.mask = mask;
  copy.bytes = copy_bytes;
  copy.landed = false;
  copy.number = issued_++;
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::size_t>(lowest_lane(rest));
    copy.to[lane] = to[lane];
    copy.from[lane] = from[lane];
    copy.source_bytes[lane] = source_bytes[lane];
    copy.group[lane] = groups_[lane];
    if (checked) {
      cta.shadow.begin_flight(warp.index, static_cast<int>(lane), to[lane], copy_bytes);
    }
  }
  const bool early = cta.landing == 1 || (cta.landing == 0 && (cta.random.next() & 1));
  if (early) land(warp, copy);
}

void AsyncCopies::commit(std::uint32_t mask) {
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    ++groups_[static_cast<std::size_t>(lowest_lane(rest))];
  }
}

void AsyncCopies::wait(Warp& warp, std::uint32_t mask, std::uint32_t pending, bool uncommitted,
                       bool checked) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    Copy& copy = pending_[i];
    std::uint32_t done = 0;
    for (std::uint32_t rest = copy.mask & mask; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<std::size_t>(lowest_lane(rest));
      // Groups 0 .. groups_[lane] - 1 are committed. The latest `pending` of them may stay in
      // flight.
      if (copy.group[lane] + pending < groups_[lane] || uncommitted) done |= 1u << lane;
    }
    if (done != 0) {
      if (!copy.landed) land(warp, copy);
      if (checked) {
        for (std::uint32_t rest = done; rest != 0; rest &= rest - 1) {
          const int lane = lowest_lane(rest);
          warp.cta->shadow.end_flight(warp.index, lane, copy.to[static_cast<std::size_t>(lane)],
                                      copy.bytes);
        }
      }
      copy.mask &= ~done;
    }
    if (copy.mask != 0) {
      if (kept != i) pending_[kept] = copy;
      ++kept;
    }
  }
  pending_.resize(kept);
  arrive_landed(warp);
}

void AsyncCopies::arrive(Warp& warp, std::uint32_t mask, const std::uint32_t* offset) {
  Arrival& arrival = arrivals_.emplace_back();
  arrival.mask = mask;
  std::copy_n(offset, arrival.offset.size(), arrival.offset.begin());
  arrival.after = issued_;
  arrival.pc = warp.pc;
  arrive_landed(warp);
}

std::uint32_t AsyncCopies::landed(const Arrival& arrival) const {
  std::uint32_t ready = arrival.mask;
  for (const Copy& copy : pending_) {
    if (copy.number < arrival.after && !copy.landed) ready &= ~copy.mask;
  }
  return ready;
}

void AsyncCopies::leave_to(Warp& warp, const Arrival& arrival, int lane, const Mbarrier& mbarrier) {
  SharedShadow& shadow = warp.cta->shadow;
  const bool checked = warp.cta->checked;
  std::uint32_t record = 0;
  if (checked) {
    record = shadow.add({.kind = SharedShadow::Foreign::kCopy,
                         .agent = mbarrier.agent,
                         .clock = mbarrier.clock(),
                         .lane = lane,
                         .pc = arrival.pc,
                         .what = fmt::format("a copy of lane {} of warp {}", lane, warp.index)});
  }
  for (Copy& copy : pending_) {
    if (copy.number >= arrival.after || ((copy.mask >> lane) & 1) == 0) continue;
    if (checked) shadow.end_flight(copy.to[static_cast<std::size_t>(lane)], copy.bytes, record);
    copy.mask &= ~(1u << lane);
  }
  std::erase_if(pending_, [](const Copy& copy) { return copy.mask == 0; });
}

// A fault is reported at the instruction that requested the arrival.
void AsyncCopies::arrive_landed(Warp& warp) {
  if (arrivals_.empty()) return;
  const std::uint32_t pc = warp.pc;
  Cta& cta = *warp.cta;
  for (Arrival& arrival : arrivals_) {
    const std::uint32_t ready = landed(arrival);
    arrival.mask &= ~ready;
    warp.pc = arrival.pc;
    for (std::uint32_t rest = ready; rest != 0; rest &= rest - 1) {
      const int lane = lowest_lane(rest);
      const std::uint32_t offset = arrival.offset[static_cast<std::size_t>(lane)];
      Mbarrier& mbarrier = cta.mbarriers.use(cta, warp, offset, lane, false);
      leave_to(warp, arrival, lane, mbarrier);
      cta.mbarriers.arrive(cta, mbarrier, 1, false, true, lane);
    }
  }
  warp.pc = pc;
  std::erase_if(arrivals_, [](const Arrival& arrival) { return arrival.mask == 0; });
}

void AsyncCopies::land_arrivals(Warp& warp, std::uint32_t mask) {
  for (const Arrival& arrival : arrivals_) {
    for (Copy& copy : pending_) {
      const std::uint32_t left = copy.mask & arrival.mask & mask;
      if (left != 0 && copy.number < arrival.after && !copy.landed) land(warp, copy);
    }
  }
  arrive_landed(warp);
}

bool AsyncCopies::land_one(Warp& warp) {
  for (const Arrival& arrival : arrivals_) {
    for (Copy& copy : pending_) {
      if (copy.landed || copy.number >= arrival.after || (copy.mask & arrival.mask) == 0) continue;
      land(warp, copy);
      arrive_landed(warp);
      return true;
    }
  }
  return false;
}

void AsyncCopies::check_sources(const Warp& warp, int lane, std::uint64_t address,
                                std::uint32_t bytes) const {
  for (const Copy& copy : pending_) {
    for (std::uint32_t rest = copy.mask; rest != 0; rest &= rest - 1) {
      const auto by = static_cast<std::size_t>(lowest_lane(rest));
      if (address >= copy.from[by] + copy.source_bytes[by] || address + bytes <= copy.from[by]) {
        continue;
      }
      report_at(FaultKind::kInFlight, lane,
                "write of {} bytes at global address {:#x}, which a cp.async of lane {} of warp {} "
                "may still read; wait for the copy first",
                bytes, address, by, warp.index);
    }
  }
}

bool AsyncCopies::pending(std::uint32_t mask) const {
  return std::any_of(pending_.begin(), pending_.end(),
                     [mask](const Copy& copy) { return (copy.mask & mask) != 0; });
}

void AsyncCopies::land_some(Warp& warp) {
  for (Copy& copy : pending_) {
    if (!copy.landed && (warp.cta->random.next() & 1)) land(warp, copy);
  }
  arrive_landed(warp);
}

}  // namespace annulus::simulator
