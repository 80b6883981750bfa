#ifndef ANNULUS_EXCHANGE_CONTROL_H_
#define ANNULUS_EXCHANGE_CONTROL_H_

// The control channel of a rank (annulus/rendezvous.h): a thread, the carrier, that sends and
// receives on the connections to all other ranks.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "annulus/rendezvous.h"
#include "exchange/meeting.h"

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

class Control {
 public:
  explicit Control(World world);
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  Gathered gather(std::span<const std::byte> own, std::chrono::milliseconds deadline);
  std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> own,
                                                 std::chrono::milliseconds deadline);
  void post(const Position& position) noexcept;
  std::vector<RankState> states() const;

 private:
  struct Share {
    std::uint64_t number = 0;
    std::vector<std::byte> bytes;
  };
  struct Peer {
    Link link;
    RankState state;
    std::deque<Share> shares;      // of calls that this rank has not finished
    std::uint64_t last_share = 0;  // the number of the newest
    std::uint64_t told = 0;        // of the last position that was sent to it
    bool deaf = false;             // nothing can be sent to it any more
  };

  void carry();
  // Waits until something is to be done, but no longer than that, and does it.
  void turn(SteadyClock::duration longest);
  void serve_peers(const Poller& poller);  // with the lock held
  void take_frames(Peer* peer);
  void take(Peer* peer, Frame frame);
  void tell_position(Peer* peer);
  void drop(Peer* peer, const std::string& reason);
  void wake() noexcept;
  bool all_arrived() const;

  const int rank_;
  const int ranks_;
  PostedPosition posted_;
  std::atomic<bool> busy_{false};  // a thread is in gather
  std::atomic<bool> ends_{false};
  Socket waker_;              // an eventfd
  mutable std::mutex mutex_;  // guards the peers and calls_
  std::condition_variable came_;
  std::vector<Peer> peers_;  // by rank; the own one has no link
  std::uint64_t calls_ = 0;  // of gather
  std::thread carrier_;
};

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_CONTROL_H_
