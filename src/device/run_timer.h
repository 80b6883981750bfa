#ifndef ANNULUS_DEVICE_RUN_TIMER_H_
#define ANNULUS_DEVICE_RUN_TIMER_H_

// Measures how long runs take on the device. Every n-th run is enclosed in two events, whose times
// are read after the device has passed them. The timer never waits for the device and never makes a
// run fail: a run that cannot be timed is counted as untimed.
//
//   const RunTimer::Scope timed(timer, stream, subject);
//   ... launches ...
//   timed.end();

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "device/stream.h"

namespace annulus::device {

// In microseconds. All members are zero before the first timed run.
struct Times {
  std::int64_t runs = 0;
  double total = 0;
  double least = 0;
  double most = 0;
  double last = 0;
};

class RunTimer {
 private:
  struct Slot;

 public:
  // The timed object, such as a plan. Guarded by the timer's lock.
  struct Subject {
    std::string name;
    Times times;
  };
  using SubjectPointer = std::shared_ptr<Subject>;

  // Times the first run and then every `every`-th run. Requires: every > 0. `track` names the
  // device in a trace.
  RunTimer(ContextPointer context, std::int64_t every, std::string track);
  ~RunTimer();  // collects, and drops runs that the device has not passed
  RunTimer(const RunTimer&) = delete;
  RunTimer& operator=(const RunTimer&) = delete;

  Times times(const Subject& subject) noexcept;
  // Reads the times of the runs that the device has passed.
  void collect() noexcept;

  // Times one run. Without a timer it does nothing.
  class Scope {
   public:
    Scope(RunTimer* timer, abi::CUstream stream, const SubjectPointer& subject) noexcept {
      if (timer != nullptr) begin(timer, stream, subject);
    }
    // A run that threw is not timed.
    ~Scope() {
      if (slot_ != nullptr) timer_->drop(slot_);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

    void end() noexcept {
      if (slot_ == nullptr) return;
      timer_->end(slot_, stream_);
      slot_ = nullptr;
    }

   private:
    void begin(RunTimer* timer, abi::CUstream stream, const SubjectPointer& subject) noexcept;

    RunTimer* timer_ = nullptr;
    Slot* slot_ = nullptr;
    abi::CUstream stream_ = nullptr;
  };

 private:
  static constexpr std::size_t kSlots = 64;

  Slot* begin(abi::CUstream stream, const SubjectPointer& subject) noexcept;
  void end(Slot* slot, abi::CUstream stream) noexcept;
  void drop(Slot* slot) noexcept;
  bool can_time(abi::CUstream stream) const noexcept;
  void collect_in_scope() noexcept;
  bool keep(Slot* slot) noexcept;

  const ContextPointer context_;
  const std::int64_t every_;
  const std::string track_;
  const int clock_;  // base::new_device_clock()
  std::atomic<std::int64_t> runs_{0};
  std::mutex mutex_;               // guards all members below, and the subjects
  std::unique_ptr<Slot[]> slots_;  // a ring of kSlots
  std::size_t oldest_ = 0;
  std::size_t pending_ = 0;
  // The start of the run that was read last, and its time on the device's own clock.
  Event previous_;
  std::int64_t previous_nanos_ = 0;
};

}  // namespace annulus::device

#endif  // ANNULUS_DEVICE_RUN_TIMER_H_
