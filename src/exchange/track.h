#ifndef ANNULUS_EXCHANGE_TRACK_H_
#define ANNULUS_EXCHANGE_TRACK_H_

// The messages of a communicator that are in progress on the device: groups that were queued and
// have not ended. An event is recorded before each group and another one after it. The host reads
// from the events how far the device is, without waiting for it.
//
// A group belongs to a round of a run. A rank that has passed the last round of a run, but has
// reached no round of the next run, is at Place{run + 1, kBefore}.
//
// One thread adds the groups that it queues, and one thread at a time calls look(). Neither thread
// waits for the other.

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
  static constexpr std::int64_t kBefore = -1;   // the place before the first round
  static constexpr std::int64_t kMeeting = -1;  // the run of a rank whose communicator is not open
  std::int64_t run = 0;
  std::int64_t round = kBefore;
  friend auto operator<=>(const Place&, const Place&) = default;
};

class Track {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Track(device::ContextPointer context);

  // Called before a group is queued on `stream`, and after it is queued.
  void begin(abi::CUstream stream);
  void end(abi::CUstream stream, const Place& place) { add(stream, place, true); }
  // Called after the last group of the run, and also for a run without groups.
  void end_run(abi::CUstream stream, std::int64_t run) {
    add(stream, {run + 1, Place::kBefore}, false);
  }

  // The progress of the device.
  struct Look {
    Place passed;             // everything before this place has ended
    std::optional<Place> at;  // the group that the device has reached
    Clock::time_point since;  // the time since which the device has been seen at the group
    bool under_way = false;   // a group has not ended
  };
  Look look();

 private:
  // Only rarely are more groups in progress. Then the last entry stands for all further groups.
  static constexpr std::size_t kEntries = 512;

  struct Entry {
    device::Event reached, done;
    std::atomic<bool> is_group{false};
    std::atomic<std::uint64_t> place{0};  // encoded by packed()
  };

  void add(abi::CUstream stream, const Place& place, bool is_group);
  Entry& entry(std::uint64_t number) { return entries_[number % kEntries]; }
  bool full() const;

  std::vector<Entry> entries_;
  std::atomic<std::uint64_t> added_{0};  // written by the thread that queues
  std::atomic<std::uint64_t> taken_{0};  // written by the thread that looks; the newest entry stays
  // The state of the thread that looks.
  Place passed_;
  std::uint64_t seen_ = ~std::uint64_t{0};  // the entry that the device has reached
  Clock::time_point since_;
};

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_TRACK_H_
