#ifndef ANNULUS_EXCHANGE_RANK_H_
#define ANNULUS_EXCHANGE_RANK_H_

// One rank's end of a communicator (annulus/communicator.h): every wait for NCCL is bounded, and
// what failed is given up once.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "annulus/communicator.h"
#include "device/stream.h"
#include "exchange/control.h"
#include "exchange/history.h"
#include "exchange/nccl.h"
#include "exchange/track.h"
#include "exchange/watch.h"

namespace annulus::exchange {

// The control channel of the ranks, if they have one.
using ControlPointer = std::shared_ptr<Control>;

// A channel of it for as long as this lives. None where there is no control channel.
class OpenChannel {
 public:
  OpenChannel(ControlPointer control, std::shared_ptr<Bell> bell)
      : control_(std::move(control)),
        channel_(control_ ? control_->open_channel(std::move(bell)) : nullptr) {}
  ~OpenChannel() {
    if (channel_ == nullptr) return;
    leave();
    control_->close_channel(channel_);
  }
  OpenChannel(const OpenChannel&) = delete;
  OpenChannel& operator=(const OpenChannel&) = delete;

  operator Channel*() const { return channel_; }
  // Tells the others that this rank does no more on it, if they have not been told.
  void leave() noexcept {
    if (channel_ == nullptr || left_) return;
    left_ = true;
    try {
      control_->leave_channel(channel_);
    } catch (const std::bad_alloc&) {
      // They find that its messages do not come.
    }
  }

 private:
  const ControlPointer control_;
  Channel* const channel_;
  bool left_ = false;
};

// Throws Error{kInvalidArgument} for options that are none.
void check_options(const CommunicatorOptions& options);

class Rank {
 public:
  using Clock = std::chrono::steady_clock;

  // As Communicator::open and Communicator::borrow; `control` may be null.
  static std::unique_ptr<Rank> open(device::ContextPointer context, NcclPointer nccl,
                                    const CommunicatorId& id, int ranks, int rank,
                                    const CommunicatorOptions& options, ControlPointer control);
  static std::unique_ptr<Rank> borrow(device::ContextPointer context, NcclPointer nccl,
                                      abi::NcclComm comm, const CommunicatorOptions& options,
                                      ControlPointer control);
  ~Rank();
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  const CommunicatorInfo& info() const { return info_; }
  const device::ContextPointer& context() const { return context_; }
  Control* control() const { return control_.get(); }
  const abi::NcclLibrary& nccl() const { return *nccl_; }

  // A run of one group; returns its number.
  std::int64_t exchange(abi::CUstream stream, std::span<const SentBytes> sends,
                        std::span<const ReceivedBytes> receives);
  // A run of several groups: exchange(..., {run, round}) for each round, and end_run() behind the
  // last one, on that one's stream; on the caller's where there is none.
  std::int64_t begin_run() { return runs_.fetch_add(1, std::memory_order_relaxed); }
  void exchange(abi::CUstream stream, std::span<const SentBytes> sends,
                std::span<const ReceivedBytes> receives, const Place& place);
  void end_run(abi::CUstream stream, std::int64_t run);
  // A run that was begun and cannot be queued whole: the communicator is given up, since neither
  // this rank nor the others can tell any more which runs are good.
  void abandon_run(std::int64_t run, const char* why) noexcept;
  // While planning: no run, and nobody watches it but wait().
  void exchange_within(abi::CUstream stream, std::span<const SentBytes> sends,
                       std::span<const ReceivedBytes> receives, std::chrono::milliseconds within);
  // Gathers bytes of all ranks over the control channel, which there has to be, and ends early
  // where the base::Work of this thread is cancelled. Whoever does not come is blamed.
  std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> own);
  // A handle for deregister_memory(); null where NCCL does not register it, which costs speed
  // alone.
  void* register_memory(void* data, std::size_t bytes);
  void deregister_memory(void* handle);
  // How long ranks may take to plan together.
  std::chrono::milliseconds planning() const { return planning_; }
  // Waits on the host until the work on `stream` has ended; `what` it is that takes long. For
  // planning: a run never waits for the device.
  void wait(const device::Stream& stream, const char* what, std::chrono::milliseconds within);

  std::int64_t runs() const { return runs_.load(std::memory_order_relaxed); }
  RunState state(std::int64_t run);
  RunState wait_for_run(std::int64_t run);
  void give_up(const std::string& reason);
  bool usable() const { return !given_up_; }
  std::string reason() const;
  std::vector<int> blamed() const;
  std::vector<CommunicatorEvent> events() const { return history_.events(); }
  std::vector<RankState> peers() const;

 private:
  Rank(device::ContextPointer context, NcclPointer nccl, const CommunicatorOptions& options,
       ControlPointer control);
  const abi::NcclTable& table() const { return nccl_->table; }
  // "rank 2 of 4"
  std::string name() const;
  void begin_watch(const CommunicatorOptions& options);
  // Throws for messages that NCCL would refuse, which would drop a whole group.
  void check(std::span<const SentBytes> sends, std::span<const ReceivedBytes> receives) const;
  void require_usable() const;
  // Throws where the stream is being captured and the communicator cannot be.
  bool capturing(abi::CUstream stream) const;
  // What a thread of the caller's waits for, and how long.
  struct Waiting {
    const char* what = nullptr;
    Place place;
    std::chrono::milliseconds within{};
  };
  // Where ranks are that plan together.
  Place planning_place() const { return {runs(), Place::kBefore}; }
  // With the turn taken.
  void close_run(abi::CUstream stream, std::int64_t run, bool tracked);
  void queue_round(abi::CUstream stream, std::span<const SentBytes> sends,
                   std::span<const ReceivedBytes> receives, const Place& place, bool tracked);
  void queue(abi::CUstream stream, std::span<const SentBytes> sends,
             std::span<const ReceivedBytes> receives, const Waiting& waiting);
  // Waits until the operation in progress is done.
  void finish(abi::NcclResult code, const char* call, const Waiting& waiting);
  // An error of NCCL's, until the control channel has decided whose fault it is.
  struct Question {
    ErrorCode code = ErrorCode::kCommunication;
    std::string error;         // in words
    Clock::time_point since;   // when NCCL returned it
    std::uint64_t number = 0;  // of the question that all other ranks were asked then
  };
  Question question_of(abi::NcclResult code, const char* call) const;
  // Waits for what the control channel says, gives up and throws.
  [[noreturn]] void fail_for(const Question& question, const Waiting& waiting);
  // The error that NCCL has found since its last call returned, if there is one. A communicator
  // that is borrowed is not looked at: its owner may be inside NCCL.
  std::optional<Question> asynchronous_error();
  // The code of the operation in progress when it is done, or kNcclInProgress at the deadline or
  // where in_vain().
  template <typename InVain>
  abi::NcclResult poll(Clock::time_point deadline, const InVain& in_vain) const;
  void finalize();
  // Why a wait at this place is in vain, where it is: what is told to the others, and the same with
  // whoever said it.
  struct News {
    Notice notice;
    std::string text;
  };
  std::optional<News> bad_news(const Place& place) const;
  // The same where only these ranks are waited for.
  std::optional<News> bad_news(const Place& place, std::span<const int> awaited) const;
  // Whose fault the error is. Nothing: other ranks have not answered yet, and it is not `late`.
  std::optional<News> verdict_on(const Question& question, const Place& place, bool late) const;
  std::optional<News> notice_in(const std::vector<Control::Known>& known) const;
  static Clock::time_point end_of(std::chrono::milliseconds within);
  void wait_for_queued();

  // Looks at what the device has done and what the others say, and gives up where it has to.
  // Whether something is under way.
  bool look();
  // False: it has to be looked at again.
  bool look_at_others(const Track::Look& seen);
  RunState state_of(std::int64_t run) const;  // with the lock of look()

  // Gives the communicator up; what came first stays. `tell` tells the others, `end` ends its
  // messages.
  void drop(const std::string& reason, const Notice& notice, bool tell, bool end);
  // Calls drop() unless another thread is inside NCCL that will return; whether it did.
  bool try_drop(const std::string& reason, const Notice& notice, bool tell);
  void end_now();  // once
  [[noreturn]] void fail(ErrorCode code, const std::string& text, const Notice& notice);
  [[noreturn]] void fail_waiting(const Waiting& waiting);
  // Tells the others now and then that this rank is there, while it waits inside a call.
  void beat();
  // Whom a wait of the caller's has to blame whose time is over; nobody where that is not known.
  Notice blame_late(const Waiting& waiting) const;
  // The ranks that have not said for half of this time that they are there. While ranks plan,
  // whoever waits for another one says so.
  std::vector<int> silent_ones(std::chrono::milliseconds within) const;
  void note(CommunicatorEventKind kind, std::vector<int> ranks, const std::string& text);

  const device::ContextPointer context_;
  const NcclPointer nccl_;
  const std::chrono::milliseconds deadline_, planning_;
  const ControlPointer control_;
  const std::shared_ptr<Bell> bell_ = std::make_shared<Bell>();
  // Before what may fail while it is made: the others learn that this rank does not come.
  OpenChannel channel_;
  CommunicatorInfo info_;
  abi::NcclComm comm_ = nullptr;
  const int exceptions_ = std::uncaught_exceptions();  // when it was made
  std::atomic<bool> busy_{false};                      // a thread of the caller's is inside
  std::atomic<bool> in_nccl_{false};                   // a thread is, perhaps the watch's
  std::atomic<bool> given_up_{false};
  std::atomic<bool> aborted_{false};
  std::atomic<std::int64_t> runs_{0};
  // The runs before this one are queued, and the last run that a graph was captured of.
  std::atomic<std::int64_t> queued_{0}, captured_{-1};
  History history_;
  mutable std::mutex mutex_;
  std::string reason_;       // guarded by mutex_
  std::vector<int> blamed_;  // likewise

  // What look() knows.
  std::mutex look_mutex_;
  Track track_;
  Place passed_, posted_;
  Clock::time_point said_{};            // when the others were told
  std::chrono::milliseconds beat_{50};  // they are told that often while something is under way
  Clock::time_point asked_nccl_;        // when NCCL was last asked for an error
  std::optional<Question> question_;    // what it returned
  std::uint32_t news_ = 0;              // the rings of the bell that were heard
  std::optional<Clock::time_point> gone_since_;  // since when a rank has been missed
  std::vector<int> gone_;                        // noted
  Place slow_;                                   // noted
  std::optional<Watch> watch_;                   // the last member: it uses the others
};

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_RANK_H_
