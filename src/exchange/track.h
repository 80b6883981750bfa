#ifndef ANNULUS_EXCHANGE_TRACK_H_
#define ANNULUS_EXCHANGE_TRACK_H_

// What of a communicator's messages is under way on the device: groups that were queued and have
// not ended. Each has an event in front of it and one behind it, so that the host can tell how far
// the device is without waiting for it.
//
// A group belongs to a round of a run. Where a rank has passed a run's last round, it is on its way
// to the next run, of which it has come to no round yet: Place{run + 1, kBefore}.
//
// One thread adds what it queues, and one at a time looks; neither waits for the other.

#include <atomic>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "device/stream.h"

namespace annulus::exchange {

struct Place {
  static constexpr std::int64_t kBefore = -1;   // no round yet
  static constexpr std::int64_t kMeeting = -1;  // the run of a rank whose communicator is not open
  std::int64_t run = 0;
  std::int64_t round = kBefore;
  friend auto operator<=>(const Place&, const Place&) = default;
};

class Track {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Track(device::ContextPointer context);

  // In front of a group that is to be queued on `stream`, and behind it when it is.
  void begin(abi::CUstream stream);
  void end(abi::CUstream stream, const Place& place) { add(stream, place, true); }
  // Behind the last group of run `run`, also where it has none.
  void end_run(abi::CUstream stream, std::int64_t run) {
    add(stream, {run + 1, Place::kBefore}, false);
  }

  // What the device has done.
  struct Look {
    Place passed;             // everything that comes before it has ended
    std::optional<Place> at;  // the group whose turn it is
    Clock::time_point since;  // since when the device has been seen to be there
    bool under_way = false;   // something has not ended
  };
  Look look();

 private:
  // More groups than that are under way rarely; then the last entry stands for all further ones.
  static constexpr std::size_t kEntries = 512;

  struct Entry {
    device::Event reached, done;
    std::atomic<bool> is_group{false};
    std::atomic<std::uint64_t> place{0};  // as packed()
  };

  void add(abi::CUstream stream, const Place& place, bool is_group);
  Entry& entry(std::uint64_t number) { return entries_[number % kEntries]; }
  bool full() const;

  std::vector<Entry> entries_;
  std::atomic<std::uint64_t> added_{0};  // by the thread that queues
  std::atomic<std::uint64_t> taken_{0};  // by the one that looks; the newest entry stays
  // What the thread that looks knows.
  Place passed_;
  std::uint64_t seen_ = ~std::uint64_t{0};  // the entry that has been reached
  Clock::time_point since_;
};

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_TRACK_H_
