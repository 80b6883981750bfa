#ifndef ANNULUS_EXCHANGE_RANK_H_
#define ANNULUS_EXCHANGE_RANK_H_

// One rank of a communicator (annulus/communicator.h). Every wait for NCCL has a time limit, and a
// communicator that failed is given up once.

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

// Keeps a channel of the control channel open for the lifetime of this object. Null if there is no
// control channel.
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
  // Informs the others that this rank sends nothing more on the channel, unless that was done
  // already.
  void leave() noexcept {
    if (channel_ == nullptr || left_) return;
    left_ = true;
    try {
      control_->leave_channel(channel_);
    } catch (const std::bad_alloc&) {
      // The others notice later that its messages do not arrive.
    }
  }

 private:
  const ControlPointer control_;
  Channel* const channel_;
  bool left_ = false;
};

// Throws Error{kInvalidArgument} for invalid options.
void check_options(const CommunicatorOptions& options);

class Rank {
 public:
  using Clock = std::chrono::steady_clock;

  // These functions implement Communicator::open and Communicator::borrow. `control` may be null.
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

  // Starts a run that has one group of messages. Returns the number of the run.
  std::int64_t exchange(abi::CUstream stream, std::span<const SentBytes> sends,
                        std::span<const ReceivedBytes> receives);
  // Starts a run that has several groups. The caller then calls exchange(..., {run, round}) for
  // each round, and end_run() after the last round on the stream of that round. If there is no
  // round, end_run() takes the caller's stream.
  std::int64_t begin_run() { return runs_.fetch_add(1, std::memory_order_relaxed); }
  void exchange(abi::CUstream stream, std::span<const SentBytes> sends,
                std::span<const ReceivedBytes> receives, const Place& place);
  void end_run(abi::CUstream stream, std::int64_t run);
  // For a run that was begun and cannot be queued completely. It gives the communicator up, because
  // no rank could determine any more which runs are valid.
  void abandon_run(std::int64_t run, const char* why) noexcept;
  // For planning: the exchange is not a run, and only wait() observes it.
  void exchange_within(abi::CUstream stream, std::span<const SentBytes> sends,
                       std::span<const ReceivedBytes> receives, std::chrono::milliseconds within);
  // Gathers bytes of all ranks over the control channel, which must exist. It ends early if the
  // base::Work of this thread is cancelled. Ranks that do not arrive are blamed.
  std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> own);
  // Returns a handle for deregister_memory(). Returns null if NCCL does not register the memory,
  // which only makes messages slower.
  void* register_memory(void* data, std::size_t bytes);
  void deregister_memory(void* handle);
  // The time limit for ranks to plan together.
  std::chrono::milliseconds planning() const { return planning_; }
  // Blocks the host until the work on `stream` has ended. `what` names the awaited event in
  // messages. It is used for planning only: a run never waits for the device.
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
  // The name of this rank, such as "rank 2 of 4".
  std::string name() const;
  void begin_watch(const CommunicatorOptions& options);
  // Throws for messages that NCCL would refuse, because NCCL would then drop the whole group.
  void check(std::span<const SentBytes> sends, std::span<const ReceivedBytes> receives) const;
  void require_usable() const;
  // Whether the stream is being captured. Throws if it is and this communicator cannot be captured.
  bool capturing(abi::CUstream stream) const;
  // The event that a thread of the caller waits for, and the time limit.
  struct Waiting {
    const char* what = nullptr;
    Place place;
    std::chrono::milliseconds within{};
  };
  // The place of ranks that plan together.
  Place planning_place() const { return {runs(), Place::kBefore}; }
  // For close_run() and queue_round() the caller holds `busy_`.
  void close_run(abi::CUstream stream, std::int64_t run, bool tracked);
  void queue_round(abi::CUstream stream, std::span<const SentBytes> sends,
                   std::span<const ReceivedBytes> receives, const Place& place, bool tracked);
  void queue(abi::CUstream stream, std::span<const SentBytes> sends,
             std::span<const ReceivedBytes> receives, const Waiting& waiting);
  // Waits until the current NCCL operation has ended.
  void finish(abi::NcclResult code, const char* call, const Waiting& waiting);
  // An error of NCCL, kept until the control channel shows which rank caused it.
  struct Question {
    ErrorCode code = ErrorCode::kCommunication;
    std::string error;         // the error in words
    Clock::time_point since;   // the time at which NCCL returned the error
    std::uint64_t number = 0;  // the number of the question that was then sent to all other ranks
  };
  Question question_of(abi::NcclResult code, const char* call) const;
  // Waits until the control channel shows the cause. Then gives up and throws.
  [[noreturn]] void fail_for(const Question& question, const Waiting& waiting);
  // The error that NCCL has detected since its last call returned, if there is one. A borrowed
  // communicator is not checked, because its owner may be inside NCCL.
  std::optional<Question> asynchronous_error();
  // Returns the code of the current NCCL operation when the operation has ended. Returns
  // kNcclInProgress at the deadline or if in_vain() returns true.
  template <typename InVain>
  abi::NcclResult poll(Clock::time_point deadline, const InVain& in_vain) const;
  void finalize();
  // The reason why waiting is useless: the notice for the other ranks, and the same text with the
  // rank that sent it.
  struct News {
    Notice notice;
    std::string text;
  };
  std::optional<News> bad_news(const Place& place) const;
  // Does the same check if only these ranks are waited for.
  std::optional<News> bad_news(const Place& place, std::span<const int> awaited) const;
  // The verdict on which ranks caused the error. Nothing if other ranks have not answered yet and
  // `late` is false.
  std::optional<News> verdict_on(const Question& question, const Place& place, bool late) const;
  std::optional<News> notice_in(const std::vector<Control::Known>& known) const;
  static Clock::time_point end_of(std::chrono::milliseconds within);
  void wait_for_queued();

  // Checks the progress of the device and the messages of the others, and gives up if necessary.
  // Returns whether anything is in progress.
  bool look();
  // Returns false if the check must be repeated.
  bool look_at_others(const Track::Look& seen);
  RunState state_of(std::int64_t run) const;  // the caller holds look_mutex_

  // Gives the communicator up. If that was done already, the first reason stays. `tell` sends the
  // notice to the others, `end` ends the messages of the communicator.
  void drop(const std::string& reason, const Notice& notice, bool tell, bool end);
  // Calls drop(), unless another thread is inside an NCCL call that will return. Returns whether it
  // called drop().
  bool try_drop(const std::string& reason, const Notice& notice, bool tell);
  void end_now();  // has an effect only once
  [[noreturn]] void fail(ErrorCode code, const std::string& text, const Notice& notice);
  [[noreturn]] void fail_waiting(const Waiting& waiting);
  // Informs the others from time to time that this rank is alive, while it waits inside a call.
  void beat();
  // The ranks to blame if the time limit of a caller's wait is over. No ranks if the cause is not
  // known.
  Notice blame_late(const Waiting& waiting) const;
  // The ranks that have sent no sign of life for half of this time. While ranks plan, a rank that
  // waits for another one sends such signs.
  std::vector<int> silent_ones(std::chrono::milliseconds within) const;
  void note(CommunicatorEventKind kind, std::vector<int> ranks, const std::string& text);

  const device::ContextPointer context_;
  const NcclPointer nccl_;
  const std::chrono::milliseconds deadline_, planning_;
  const ControlPointer control_;
  const std::shared_ptr<Bell> bell_ = std::make_shared<Bell>();
  // Declared before the members whose construction may fail: if one fails, the others learn that
  // this rank does not come.
  OpenChannel channel_;
  CommunicatorInfo info_;
  abi::NcclComm comm_ = nullptr;
  // the number when this object was constructed
  const int exceptions_ = std::uncaught_exceptions();
  std::atomic<bool> busy_{false};     // a thread of the caller is inside a call
  std::atomic<bool> in_nccl_{false};  // a thread, perhaps the watch's, is inside NCCL
  std::atomic<bool> given_up_{false};
  std::atomic<bool> aborted_{false};
  std::atomic<std::int64_t> runs_{0};
  // All runs before queued_ are queued. captured_ is the last run that was captured into a graph.
  std::atomic<std::int64_t> queued_{0}, captured_{-1};
  History history_;
  mutable std::mutex mutex_;
  std::string reason_;       // guarded by mutex_
  std::vector<int> blamed_;  // guarded by mutex_

  // The state of look().
  std::mutex look_mutex_;
  Track track_;
  Place passed_, posted_;
  Clock::time_point said_{};  // the time of this rank's last sign of life
  // the interval of these signs while something is in progress
  std::chrono::milliseconds beat_{50};
  Clock::time_point asked_nccl_;      // the time at which NCCL was last queried for an error
  std::optional<Question> question_;  // the error that this query returned
  std::uint32_t news_ = 0;            // the value of bell_->rung() that was handled last
  std::optional<Clock::time_point> gone_since_;  // the time since which a rank is missing
  std::vector<int> gone_;       // the missing ranks that were recorded in the history
  Place slow_;                  // the slow place that was recorded in the history
  std::optional<Watch> watch_;  // the last member, because it uses the others
};

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_RANK_H_
