#ifndef ANNULUS_EXCHANGE_CHANNEL_H_
#define ANNULUS_EXCHANGE_CHANNEL_H_

// What ranks tell each other on the control channel about one thing that they do together: how far
// they are in it, and why they do not go on. Channel 0 is the engine's (Rendezvous::post), and each
// communicator has one of its own.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "annulus/communicator.h"
#include "exchange/frames.h"

namespace annulus::exchange {

// A position that one thread writes and another reads, neither of which waits for the other.
class PostedPosition {
 public:
  void write(const Position& position) noexcept;
  // How many were written, or an odd number while one is; the position is whole where it is even.
  std::uint64_t read(Position* position) const noexcept;

 private:
  std::atomic<std::uint64_t> writes_{0};  // twice the number of them
  std::atomic<std::int64_t> generation_{0};
  std::atomic<std::int64_t> run_{0};
  std::atomic<std::int64_t> round_{0};
};

// Wakes a thread that waits until something has happened. Any thread may ring it.
class Bell {
 public:
  void ring() noexcept {
    rung_.fetch_add(1, std::memory_order_release);
    rung_.notify_all();
  }
  std::uint32_t rung() const noexcept { return rung_.load(std::memory_order_acquire); }
  // Returns when it has been rung since rung() was `before`.
  void wait(std::uint32_t before) const noexcept { rung_.wait(before, std::memory_order_acquire); }

 private:
  std::atomic<std::uint32_t> rung_{0};
};

struct Channel {
  // What was heard from another rank.
  struct Heard {
    bool posted = false;
    Position position;
    std::chrono::steady_clock::time_point when;  // the position has come
    std::optional<Notice> notice;                // the first
    bool closed = false;
    std::uint64_t told = 0;  // of the last own position that was sent to it
  };

  std::uint64_t number = 0;
  PostedPosition posted;       // of this rank
  std::shared_ptr<Bell> bell;  // rung when others have to be looked at; may be null
  std::vector<Heard> heard;    // by rank
};

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_CHANNEL_H_
