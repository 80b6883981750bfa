#ifndef ANNULUS_EXCHANGE_RANK_H_
#define ANNULUS_EXCHANGE_RANK_H_

// One rank's end of a communicator (annulus/communicator.h): every wait for NCCL is bounded, and
// what failed is given up once.

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "annulus/communicator.h"
#include "device/stream.h"
#include "exchange/nccl.h"

namespace annulus::exchange {

class Rank {
 public:
  using Clock = std::chrono::steady_clock;

  // As Communicator::open and Communicator::borrow.
  static std::unique_ptr<Rank> open(device::ContextPointer context, NcclPointer nccl,
                                    const CommunicatorId& id, int ranks, int rank,
                                    const CommunicatorOptions& options);
  static std::unique_ptr<Rank> borrow(device::ContextPointer context, NcclPointer nccl,
                                      abi::NcclComm comm, const CommunicatorOptions& options);
  ~Rank();
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  const CommunicatorInfo& info() const { return info_; }
  const device::ContextPointer& context() const { return context_; }

  void exchange(abi::CUstream stream, std::span<const SentBytes> sends,
                std::span<const ReceivedBytes> receives) {
    exchange(stream, sends, receives, deadline_);
  }
  // With another deadline.
  void exchange(abi::CUstream stream, std::span<const SentBytes> sends,
                std::span<const ReceivedBytes> receives, std::chrono::milliseconds within);
  // How long ranks may take to plan together.
  std::chrono::milliseconds planning() const { return planning_; }
  // Waits on the host until the work on `stream` has ended; `what` it is that takes long. For
  // planning: a run never waits for the device.
  void wait(const device::Stream& stream, const char* what, std::chrono::milliseconds within);
  void give_up(const std::string& reason);
  bool usable() const { return !given_up_; }
  std::string reason() const;

 private:
  Rank(device::ContextPointer context, NcclPointer nccl, const CommunicatorOptions& options);
  const abi::NcclTable& table() const { return nccl_->table; }
  // "rank 2 of 4"
  std::string name() const;
  // Throws for messages that NCCL would refuse, which would drop a whole group.
  void check(std::span<const SentBytes> sends, std::span<const ReceivedBytes> receives) const;
  void refuse_capture(abi::CUstream stream) const;
  // Waits until the operation in progress is done; `what` it is that takes long.
  void finish(abi::NcclResult code, const char* call, const char* what,
              std::chrono::milliseconds within);
  // The code of the operation in progress when it is done, or kNcclInProgress at the deadline.
  abi::NcclResult poll(Clock::time_point deadline) const;
  static Clock::time_point end_of(std::chrono::milliseconds within);
  // Gives the communicator up; the reason of the first call stays.
  void drop(const std::string& reason);
  void end_now();
  [[noreturn]] void fail(ErrorCode code, const std::string& text);

  const device::ContextPointer context_;
  const NcclPointer nccl_;
  const std::chrono::milliseconds deadline_, planning_;
  CommunicatorInfo info_;
  abi::NcclComm comm_ = nullptr;
  const int exceptions_ = std::uncaught_exceptions();  // when it was made
  std::atomic<bool> busy_{false};
  std::atomic<bool> given_up_{false};
  mutable std::mutex mutex_;
  std::string reason_;  // guarded by mutex_
};

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_RANK_H_
