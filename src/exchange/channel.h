#ifndef ANNULUS_EXCHANGE_CHANNEL_H_
#define ANNULUS_EXCHANGE_CHANNEL_H_

// A channel carries the messages of ranks about one operation that they perform together: how far
// each rank is, and why a rank stops. Channel 0 belongs to the engine (Rendezvous::post), and each
// communicator has its own channel.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "annulus/communicator.h"
#include "exchange/frames.h"

namespace annulus::exchange {

// A position that one thread writes and another thread reads. Neither thread waits for the other.
class PostedPosition {
 public:
  void write(const Position& position) noexcept;
  // Returns the number of positions written so far, times two. It is odd if a write is in progress;
  // then *position may be torn. If it is even, *position is consistent.
  std::uint64_t read(Position* position) const noexcept;

 private:
  std::atomic<std::uint64_t> writes_{0};  // twice the number of writes
  std::atomic<std::int64_t> generation_{0};
  std::atomic<std::int64_t> run_{0};
  std::atomic<std::int64_t> round_{0};
};

// Wakes a thread that waits for an event. Any thread may ring it.
class Bell {
 public:
  void ring() noexcept {
    rung_.fetch_add(1, std::memory_order_release);
    rung_.notify_all();
  }
  std::uint32_t rung() const noexcept { return rung_.load(std::memory_order_acquire); }
  // Returns after the bell was rung since rung() returned `before`.
  void wait(std::uint32_t before) const noexcept { rung_.wait(before, std::memory_order_acquire); }

 private:
  std::atomic<std::uint32_t> rung_{0};
};

struct Channel {
  // The messages that arrived from another rank.
  struct Heard {
    bool posted = false;
    Position position;
    std::chrono::steady_clock::time_point when;  // the arrival of the position
    std::optional<Notice> notice;                // the first notice
    bool closed = false;
    // the number of this rank's last position that was sent to the other rank
    std::uint64_t told = 0;
  };

  std::uint64_t number = 0;
  PostedPosition posted;       // the position of this rank
  std::shared_ptr<Bell> bell;  // rung when the state of other ranks has changed; may be null
  std::vector<Heard> heard;    // indexed by rank
};

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_CHANNEL_H_
