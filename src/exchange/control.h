#ifndef ANNULUS_EXCHANGE_CONTROL_H_
#define ANNULUS_EXCHANGE_CONTROL_H_

// The control channel of a rank (annulus/communicator.h): a thread, the carrier, sends and receives
// on the connections to all other ranks. Every message belongs to one of several numbered channels
// (channel.h).

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "annulus/communicator.h"
#include "exchange/channel.h"
#include "exchange/meeting.h"
#include "exchange/survivors.h"

namespace annulus::exchange {

class Control {
 public:
  explicit Control(World world);
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  std::int64_t generation() const { return generation_; }
  const std::vector<int>& members() const { return members_; }
  std::uint64_t members_digest() const { return members_digest_; }
  // Whether the awaited ranks can no longer arrive, so that waiting is useless. It is called from
  // time to time, and may throw.
  using InVain = std::function<bool(std::span<const int> awaited)>;
  // If `in_vain` is given, the call ends when it returns true. Ranks that have not arrived by then
  // are reported as late.
  Gathered gather(std::span<const std::byte> own, std::chrono::milliseconds deadline,
                  const InVain& in_vain = {});
  std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> own,
                                                 std::chrono::milliseconds deadline);
  // The ranks that did not arrive at a gather, with a sentence that names them. Nothing if all
  // arrived.
  std::optional<Notice> missing_in(const Gathered& gathered,
                                   std::chrono::milliseconds deadline) const;
  // Implements Rendezvous::regroup. The connections to the members move into the returned World.
  World regroup(const RegroupOptions& options);

  // Opens the next channel. All ranks open channels in the same order. The bell is rung when a rank
  // has gone or has closed the channel, when a notice has arrived on it, or when the ranks have
  // continued without this object.
  Channel* open_channel(std::shared_ptr<Bell> bell);
  // Informs the other ranks that this rank sends nothing more on the channel, so that none waits
  // for it.
  void leave_channel(Channel* channel);
  void close_channel(Channel* channel) noexcept;
  // The channel of Rendezvous::post, which is always open.
  Channel* engine_channel() const { return engine_; }
  // Neither waits nor allocates. Only one thread at a time may post on a channel.
  void post(Channel* channel, const Position& position) noexcept;
  void tell(const Channel* channel, const Notice& notice);
  // Sends a question to all other ranks and returns its number. The carrier thread of each rank
  // answers, even if the rank's other threads are busy or blocked. A rank that has answered was
  // alive after the question was sent. Known::answered has the newest question that a rank
  // answered.
  std::uint64_t ask();
  // The state of the other ranks, in their order, and what they sent on the channel.
  struct Known {
    RankState state;  // `gone` is also set if the rank has left the channel
    std::optional<Notice> notice;
    bool dead = false;           // its connection has ended
    bool left = false;           // it has left the channel
    std::uint64_t answered = 0;  // the newest question that the rank has answered; 0 if none
  };
  std::vector<Known> known(const Channel* channel) const;
  // The reason why this object cannot be used any more: the ranks have continued without it, or one
  // of them has announced that it will. Nothing if it can be used.
  std::optional<std::string> ended() const;

 private:
  struct Share {
    std::uint64_t number = 0;
    std::vector<std::byte> bytes;
  };
  struct Peer {
    Link link;
    int rank = 0;
    bool gone = false;
    std::string reason;
    std::deque<Share> shares;      // the shares of calls that this rank has not completed
    std::uint64_t last_share = 0;  // the number of the newest share
    bool deaf = false;             // nothing can be sent to the peer any more
    std::uint64_t answered = 0;    // the newest question of this rank that the peer has answered
    // The lists that the peer sent about the next generation. After it has sent `decided`, all that
    // follows belongs to the next generation and is left unread for the new owner of the
    // connection.
    std::optional<std::vector<int>> survivors, decided;
    bool of_before = false;  // the peer's frames still belong to the previous generation

    bool regroups() const { return survivors || decided; }
  };

  void carry();
  // Waits until there is something to do, but at most `longest`, and does it.
  void turn(SteadyClock::duration longest);
  void serve_peers(const Poller& poller);  // the caller holds the lock
  void take_frames(Peer* peer);
  void take(Peer* peer, Frame frame);
  bool take_of_channel(Peer* peer, const Frame& frame);
  bool take_of_question(Peer* peer, const Frame& frame);
  void put(Peer* peer, Link::Bytes frame);
  void tell_positions(Peer* peer);
  static void tell_position(Peer* peer, Channel* channel);
  void drop(Peer* peer, const std::string& reason);
  Channel* channel_at(std::uint64_t number);
  void ring_all() noexcept;
  void say_to_all(FrameKind kind, std::uint64_t number, std::span<const std::byte> bytes);
  void judge(Survivors* survivors) const;
  std::string left_out_text(int by) const;
  std::optional<std::string> end_text() const;  // the caller holds the lock
  void require_enough(const std::vector<int>& members, int at_least) const;
  World move_on(const std::vector<int>& members);
  void wake() noexcept;
  bool all_arrived() const;

  const int rank_;
  const int ranks_;
  const std::int64_t generation_;
  const std::vector<int> members_;
  const std::uint64_t members_digest_;
  std::atomic<bool> busy_{false};  // whether a thread is in gather()
  std::atomic<bool> ends_{false};
  Socket waker_;              // an eventfd that wakes the carrier
  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable came_;
  std::vector<Peer> peers_;  // indexed by rank; this rank's own entry has no link
  std::map<std::uint64_t, std::unique_ptr<Channel>> channels_;
  Channel* engine_ = nullptr;
  std::uint64_t opened_ = 0;  // the number of the newest channel of this rank
  std::uint64_t calls_ = 0;   // the number of calls of gather
  std::uint64_t asked_ = 0;   // the number of the newest question of this rank
  std::optional<std::string> ended_;
  std::thread carrier_;
};

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_CONTROL_H_
