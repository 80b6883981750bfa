#include "exchange/track.h"

#include <algorithm>

namespace annulus::exchange {
namespace {

// Encodes a place as one number. The order of the numbers is the order of the places.
constexpr int kRoundBits = 20;

std::uint64_t packed(const Place& place) {
  return static_cast<std::uint64_t>(place.run) << kRoundBits |
         static_cast<std::uint64_t>(place.round + 1);
}

Place unpacked(std::uint64_t number) {
  constexpr std::uint64_t kMask = (std::uint64_t{1} << kRoundBits) - 1;
  return {static_cast<std::int64_t>(number >> kRoundBits),
          static_cast<std::int64_t>(number & kMask) - 1};
}

}  // namespace

Track::Track(device::ContextPointer context) : entries_(kEntries) {
  for (Entry& entry : entries_) {
    entry.reached = device::Event(context);
    entry.done = device::Event(context);
  }
}

bool Track::full() const {
  return added_.load(std::memory_order_relaxed) - taken_.load(std::memory_order_acquire) ==
         kEntries;
}

void Track::begin(abi::CUstream stream) {
  if (!full()) entry(added_.load(std::memory_order_relaxed)).reached.record(stream);
}

// The newest entry is never removed, so its event may be recorded again. The thread that looks
// reads the place before it queries the event. The place is stored after the event is recorded, so
// the event of a place that is read was recorded.
void Track::add(abi::CUstream stream, const Place& place, bool is_group) {
  const std::uint64_t added = added_.load(std::memory_order_relaxed);
  const bool again = full();
  Entry& at = entry(again ? added - 1 : added);
  at.done.record(stream);
  if (is_group || !again) at.is_group.store(is_group, std::memory_order_relaxed);
  at.place.store(packed(place), std::memory_order_release);
  if (!again) added_.store(added + 1, std::memory_order_release);
}

Track::Look Track::look() {
  Look look;
  std::uint64_t next = taken_.load(std::memory_order_relaxed);
  const std::uint64_t added = added_.load(std::memory_order_acquire);
  for (; next < added; ++next) {
    Entry& at = entry(next);
    const Place place = unpacked(at.place.load(std::memory_order_acquire));
    const bool is_group = at.is_group.load(std::memory_order_relaxed);
    if (!at.done.done()) {
      look.under_way = true;
      if (!is_group || !at.reached.done()) break;
      if (seen_ != next) {
        seen_ = next;
        since_ = Clock::now();
      }
      look.at = place;
      look.since = since_;
      break;
    }
    passed_ = std::max(passed_, place);
    if (next + 1 < added) taken_.store(next + 1, std::memory_order_release);
  }
  look.passed = passed_;
  return look;
}

}  // namespace annulus::exchange
