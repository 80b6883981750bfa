#ifndef ANNULUS_EXCHANGE_CONTROL_H_
#define ANNULUS_EXCHANGE_CONTROL_H_

// The control channel of a rank (annulus/communicator.h): a thread, the carrier, that sends and
// receives on the connections to all other ranks. What is told on it belongs to one of several
// numbered channels (channel.h).

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
  // Whether a wait for these ranks is in vain; it is asked now and then, and may throw.
  using InVain = std::function<bool(std::span<const int> awaited)>;
  // With `in_vain` the call ends where that says so; whoever had not come is late then.
  Gathered gather(std::span<const std::byte> own, std::chrono::milliseconds deadline,
                  const InVain& in_vain = {});
  std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> own,
                                                 std::chrono::milliseconds deadline);
  // Who did not come to a gather, and a sentence that names them; nothing where all came.
  std::optional<Notice> missing_in(const Gathered& gathered,
                                   std::chrono::milliseconds deadline) const;
  // As Rendezvous::regroup; the connections to the members move into the world.
  World regroup(const RegroupOptions& options);

  // The next channel, which all ranks open in one order. The bell is rung when a rank has gone or
  // closed the channel, a notice has come on it, or the ranks have gone on without this object.
  Channel* open_channel(std::shared_ptr<Bell> bell);
  // Tells the others that this rank does no more on it: whoever still waits for it waits in vain.
  void leave_channel(Channel* channel);
  void close_channel(Channel* channel) noexcept;
  // The channel of Rendezvous::post, which is always open.
  Channel* engine_channel() const { return engine_; }
  // Neither waits nor allocates. One thread at a time for each channel.
  void post(Channel* channel, const Position& position) noexcept;
  void tell(const Channel* channel, const Notice& notice);
  // Sends all other ranks a question, which the carrier of each answers, whatever its other threads
  // do. Returns its number. Ranks that answer have been there since; Known::answered says which.
  std::uint64_t ask();
  // What is known of the other ranks, in their order, and what they have told on the channel.
  struct Known {
    RankState state;  // gone also where it has left the channel
    std::optional<Notice> notice;
    bool dead = false;           // its connection has ended
    bool left = false;           // it has left the channel
    std::uint64_t answered = 0;  // the newest question that it has answered; 0: none
  };
  std::vector<Known> known(const Channel* channel) const;
  // Why this object is of no use any more, where the ranks have gone on without it or one of them
  // says that it will.
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
    std::deque<Share> shares;      // of calls that this rank has not finished
    std::uint64_t last_share = 0;  // the number of the newest
    bool deaf = false;             // nothing can be sent to it any more
    std::uint64_t answered = 0;    // the newest question of this rank that it has answered
    // What it says of the next generation. Where it has decided, all that follows is of that one,
    // and is left for whoever takes the connection.
    std::optional<std::vector<int>> survivors, decided;
    bool of_before = false;  // it still speaks of the generation before

    bool regroups() const { return survivors || decided; }
  };

  void carry();
  // Waits until something is to be done, but no longer than that, and does it.
  void turn(SteadyClock::duration longest);
  void serve_peers(const Poller& poller);  // with the lock held
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
  std::optional<std::string> end_text() const;  // with the lock held
  void require_enough(const std::vector<int>& members, int at_least) const;
  World move_on(const std::vector<int>& members);
  void wake() noexcept;
  bool all_arrived() const;

  const int rank_;
  const int ranks_;
  const std::int64_t generation_;
  const std::vector<int> members_;
  const std::uint64_t members_digest_;
  std::atomic<bool> busy_{false};  // a thread is in gather
  std::atomic<bool> ends_{false};
  Socket waker_;              // an eventfd
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable came_;
  std::vector<Peer> peers_;  // by rank; the own one has no link
  std::map<std::uint64_t, std::unique_ptr<Channel>> channels_;
  Channel* engine_ = nullptr;
  std::uint64_t opened_ = 0;  // the number of the newest channel of this rank
  std::uint64_t calls_ = 0;   // of gather
  std::uint64_t asked_ = 0;   // the number of the newest question of this rank
  std::optional<std::string> ended_;
  std::thread carrier_;
};

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_CONTROL_H_
