#ifndef ANNULUS_SIMULATOR_NCCL_NOTICE_H_
#define ANNULUS_SIMULATOR_NCCL_NOTICE_H_

// The notices that ranks of a communicator send each other, and the inbox of a rank, from which the
// rank can take notices in any order.

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

namespace annulus::simulator::nccl {

// The call that a message belongs to. Both sides of a message must have equal labels.
struct Label {
  std::int32_t call = 0;  // kSend for messages of pairs, else the number of the collective call
  std::int32_t type = 0;  // ncclDataType_t
  std::int32_t operation = 0;
  std::int32_t root = 0;
  std::uint64_t bytes = 0;

  friend bool operator==(const Label&, const Label&) = default;
};

// The messages of a channel between two ranks are numbered from 0.
enum class Channel : std::uint32_t { kPairs, kCollectives, kValues };

struct Notice {
  enum class Kind : std::uint32_t {
    kConnect,  // the first group with messages between the two ranks was called
    kReady,    // the stream of the receiver has reached this message
    kData,     // the bytes of a message
    kTaken,    // the receiver has the bytes; only now is the message complete for the sender
    kBye,      // the rank has finalized its communicator
  };
  Kind kind = Kind::kConnect;
  std::int32_t from = 0;
  Channel channel = Channel::kPairs;
  std::uint64_t number = 0;
  Label label = {};
  std::vector<std::byte> bytes = {};
  std::vector<std::uint8_t> written =
      {};  // a bit for each byte: whether it was ever written; empty: all were
};

class Inbox {
 public:
  using Kind = Notice::Kind;

  // `changed` is called, on any thread, after a notice has arrived.
  explicit Inbox(std::function<void()> changed) : changed_(std::move(changed)) {}

  void deliver(Notice notice);
  // The process of this rank has ended without a notice.
  void lose(int rank);
  // Makes the threads that wait check their condition again.
  void wake();

  bool has(Kind kind, int from, Channel channel, std::uint64_t number) const;
  std::optional<Notice> take(Kind kind, int from, Channel channel, std::uint64_t number);
  std::set<int> lost() const;

  // Waits until `ready` returns true. It is called again after every arrival and after wake(). It
  // may call the functions above.
  template <typename Ready>
  void wait(Ready ready) {
    std::unique_lock lock(news_mutex_);
    while (true) {
      const std::uint64_t seen = news_;
      lock.unlock();
      if (ready()) return;
      lock.lock();
      came_.wait(lock, [&] { return news_ != seen; });
    }
  }

 private:
  using Key = std::tuple<Kind, int, Channel, std::uint64_t>;
  static Key key_of(const Notice& notice) {
    return {notice.kind, notice.from, notice.channel, notice.number};
  }

  const std::function<void()> changed_;
  mutable std::mutex mutex_;  // guards the two members below
  std::map<Key, Notice> notices_;
  std::set<int> lost_;
  std::mutex news_mutex_;  // guards the members below
  std::condition_variable came_;
  std::uint64_t news_ = 0;
};

}  // namespace annulus::simulator::nccl

#endif  // ANNULUS_SIMULATOR_NCCL_NOTICE_H_
