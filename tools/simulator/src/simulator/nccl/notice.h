#ifndef ANNULUS_SIMULATOR_NCCL_NOTICE_H_
#define ANNULUS_SIMULATOR_NCCL_NOTICE_H_

// What ranks of a communicator tell each other, and the inbox of a rank, from which it takes what
// it waits for in any order.

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

// What a message is a part of. Both sides of a message must say the same.
struct Label {
  std::int32_t call = 0;  // kSend for messages of pairs, else the number of the collective call
  std::int32_t type = 0;  // ncclDataType_t
  std::int32_t operation = 0;
  std::int32_t root = 0;
  std::uint64_t bytes = 0;

  friend bool operator==(const Label&, const Label&) = default;
};

// Messages of one channel between two ranks are numbered from 0 on.
enum class Channel : std::uint32_t { kPairs, kCollectives, kValues };

struct Notice {
  enum class Kind : std::uint32_t {
    kConnect,  // the first group that has messages between the two ranks was called
    kReady,    // the stream of the receiver has come to this message
    kData,     // the bytes of a message
    kTaken,    // the receiver has them: only now is the message sent
    kBye,      // the rank has finalized its communicator
  };
  Kind kind = Kind::kConnect;
  std::int32_t from = 0;
  Channel channel = Channel::kPairs;
  std::uint64_t number = 0;
  Label label = {};
  std::vector<std::byte> bytes = {};
  std::vector<std::uint8_t> written =
      {};  // a bit for each byte: it was ever written; empty: all were
};

class Inbox {
 public:
  using Kind = Notice::Kind;

  // `changed` is called, on any thread, after something has come.
  explicit Inbox(std::function<void()> changed) : changed_(std::move(changed)) {}

  void deliver(Notice notice);
  // The process of this rank has ended without a word.
  void lose(int rank);
  // Those that wait look again.
  void wake();

  bool has(Kind kind, int from, Channel channel, std::uint64_t number) const;
  std::optional<Notice> take(Kind kind, int from, Channel channel, std::uint64_t number);
  std::set<int> lost() const;

  // Waits until `ready` returns true, which is called again whenever something has come or
  // wake() was called. It may call the functions above.
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
  mutable std::mutex mutex_;  // guards the two below
  std::map<Key, Notice> notices_;
  std::set<int> lost_;
  std::mutex news_mutex_;  // guards below
  std::condition_variable came_;
  std::uint64_t news_ = 0;
};

}  // namespace annulus::simulator::nccl

#endif  // ANNULUS_SIMULATOR_NCCL_NOTICE_H_
