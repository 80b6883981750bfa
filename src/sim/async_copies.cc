#include "sim/async_copies.h"

#include <algorithm>
#include <cstring>

#include "sim/context.h"

namespace annulus::sim {

void AsyncCopies::reset() {
  pending_.clear();
  groups_.fill(0);
}

void AsyncCopies::land(Context& context, Copy& copy) {
  for (std::uint32_t rest = copy.mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::size_t>(lowest_lane(rest));
    std::byte* to = context.shared.data() + copy.to[lane];
    const std::uint32_t bytes = copy.source_bytes[lane];
    std::memcpy(to, reinterpret_cast<const void*>(copy.from[lane]), bytes);
    std::memset(to + bytes, 0, copy.bytes - bytes);
  }
  copy.landed = true;
}

void AsyncCopies::issue(Context& context, std::uint32_t mask, const std::uint32_t* to,
                        const std::uint64_t* from, const std::uint32_t* source_bytes,
                        std::uint32_t copy_bytes, bool checked) {
  Copy& copy = pending_.emplace_back();
  copy.mask = mask;
  copy.bytes = copy_bytes;
  copy.landed = false;
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::size_t>(lowest_lane(rest));
    copy.to[lane] = to[lane];
    copy.from[lane] = from[lane];
    copy.source_bytes[lane] = source_bytes[lane];
    copy.group[lane] = groups_[lane];
    if (checked) {
      context.shadow.begin_flight(context.warp->index, static_cast<int>(lane), to[lane],
                                  copy_bytes);
    }
  }
  const bool early = context.landing == 1 || (context.landing == 0 && (context.dice.next() & 1));
  if (early) land(context, copy);
}

void AsyncCopies::commit(std::uint32_t mask) {
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    ++groups_[static_cast<std::size_t>(lowest_lane(rest))];
  }
}

void AsyncCopies::wait(Context& context, std::uint32_t mask, std::uint32_t pending,
                       bool uncommitted, bool checked) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    Copy& copy = pending_[i];
    std::uint32_t done = 0;
    for (std::uint32_t rest = copy.mask & mask; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<std::size_t>(lowest_lane(rest));
      // Groups 0 .. groups_[lane] - 1 are committed; the latest `pending` of them may stay.
      if (copy.group[lane] + pending < groups_[lane] || uncommitted) done |= 1u << lane;
    }
    if (done != 0) {
      if (!copy.landed) land(context, copy);
      if (checked) {
        for (std::uint32_t rest = done; rest != 0; rest &= rest - 1) {
          const int lane = lowest_lane(rest);
          context.shadow.end_flight(context.warp->index, lane,
                                    copy.to[static_cast<std::size_t>(lane)], copy.bytes);
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
}

bool AsyncCopies::pending(std::uint32_t mask) const {
  return std::any_of(pending_.begin(), pending_.end(),
                     [mask](const Copy& copy) { return (copy.mask & mask) != 0; });
}

void AsyncCopies::land_some(Context& context) {
  for (Copy& copy : pending_) {
    if (!copy.landed && (context.dice.next() & 1)) land(context, copy);
  }
}

}  // namespace annulus::sim
