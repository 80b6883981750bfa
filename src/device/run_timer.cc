#include "device/run_timer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/span.h"
#include "base/tally.h"
#include "device/capture_mode.h"

namespace annulus::device {

struct RunTimer::Slot {
  enum class State { kQueuing, kQueued, kDropped };
  State state = State::kDropped;
  Event start, end;
  std::int64_t queued_nanos = 0;
  SubjectPointer subject;
};

RunTimer::RunTimer(ContextPointer context, std::int64_t every, std::string track)
    : context_(std::move(context)),
      every_(every),
      track_(std::move(track)),
      clock_(base::new_device_clock()),
      slots_(std::make_unique<Slot[]>(kSlots)),
      previous_(context_, Event::Timing::kOn) {
  for (std::size_t i = 0; i < kSlots; ++i) {
    slots_[i].start = Event(context_, Event::Timing::kOn);
    slots_[i].end = Event(context_, Event::Timing::kOn);
  }
}

RunTimer::~RunTimer() { collect(); }

Times RunTimer::times(const Subject& subject) noexcept {
  collect();
  const std::lock_guard lock(mutex_);
  return subject.times;
}

void RunTimer::collect() noexcept {
  const QuietScope scope(*context_);
  if (!scope.active()) return;
  const std::lock_guard lock(mutex_);
  collect_in_scope();
}

void RunTimer::Scope::begin(RunTimer* timer, abi::CUstream stream,
                            const SubjectPointer& subject) noexcept {
  timer_ = timer;
  stream_ = stream;
  slot_ = timer->begin(stream, subject);
}

// A captured run has no time of its own: its graph is launched later, possibly several times.
bool RunTimer::can_time(abi::CUstream stream) const noexcept {
  const abi::CudaTable& table = context_->table();
  int capturing = 0;
  return table.stream_is_capturing != nullptr &&
         table.stream_is_capturing(stream, &capturing) == abi::kCudaSuccess && capturing == 0;
}

RunTimer::Slot* RunTimer::begin(abi::CUstream stream, const SubjectPointer& subject) noexcept {
  if (runs_.fetch_add(1, std::memory_order_relaxed) % every_ != 0) return nullptr;
  const QuietScope scope(*context_);
  if (scope.active() && can_time(stream)) {
    const std::lock_guard lock(mutex_);
    collect_in_scope();
    if (pending_ < kSlots) {
      Slot& slot = slots_[(oldest_ + pending_) % kSlots];
      slot.queued_nanos = base::now_nanos();
      if (context_->table().event_record(slot.start.handle(), stream) == abi::kCudaSuccess) {
        slot.state = Slot::State::kQueuing;
        slot.subject = subject;
        ++pending_;
        return &slot;
      }
    }
  }
  context_->tally().add(base::Count::untimed_runs);
  return nullptr;
}

void RunTimer::end(Slot* slot, abi::CUstream stream) noexcept {
  const QuietScope scope(*context_);
  if (!scope.active() ||
      context_->table().event_record(slot->end.handle(), stream) != abi::kCudaSuccess) {
    return drop(slot);
  }
  const std::lock_guard lock(mutex_);
  slot->state = Slot::State::kQueued;
}

void RunTimer::drop(Slot* slot) noexcept {
  context_->tally().add(base::Count::untimed_runs);
  const std::lock_guard lock(mutex_);
  slot->state = Slot::State::kDropped;
}

// Reads in the order in which the runs began, so a long run delays the reading of later ones.
void RunTimer::collect_in_scope() noexcept {
  const abi::CudaTable& table = context_->table();
  const RelaxedCapture relaxed(table);
  for (; pending_ > 0; oldest_ = (oldest_ + 1) % kSlots, --pending_) {
    Slot& slot = slots_[oldest_];
    if (slot.state == Slot::State::kQueuing) return;
    if (slot.state == Slot::State::kQueued) {
      const abi::CUresult code = table.event_query(slot.end.handle());
      if (code == abi::kCudaNotReady) return;
      // If a kernel faulted, the times of all earlier runs are lost too.
      if (code != abi::kCudaSuccess || !keep(&slot)) {
        context_->tally().add(base::Count::untimed_runs);
      }
    }
    slot.subject.reset();
    slot.state = Slot::State::kDropped;
  }
}

// Returns false if the driver does not return the time. Events only have times relative to each
// other, as floats in milliseconds. So each start is computed from the start that was read before
// it: the distance to one event long ago would have a precision of only milliseconds.
bool RunTimer::keep(Slot* slot) noexcept {
  const abi::CudaTable& table = context_->table();
  float run = 0, since = 0;
  if (table.event_elapsed_time(&run, slot->start.handle(), slot->end.handle()) !=
      abi::kCudaSuccess) {
    return false;
  }
  // Fails for the first run, because no run was read before it.
  if (table.event_elapsed_time(&since, previous_.handle(), slot->start.handle()) ==
      abi::kCudaSuccess) {
    previous_nanos_ += std::llround(static_cast<double>(since) * 1e6);
  }
  std::swap(previous_, slot->start);
  const double micros = static_cast<double>(run) * 1e3;
  Times& times = slot->subject->times;
  times.least = times.runs == 0 ? micros : std::min(times.least, micros);
  times.most = std::max(times.most, micros);
  times.total += micros;
  times.last = micros;
  ++times.runs;
  base::Tally& tally = context_->tally();
  tally.add(base::Count::timed_runs);
  tally.add(base::Count::timed_run_micros, std::llround(micros));
  tally.raise(base::Count::longest_run_micros, std::llround(micros));
  base::record({.name = "run",
                .detail = slot->subject->name,
                .track = track_,
                .clock = clock_,
                .queued_nanos = slot->queued_nanos,
                .device_nanos = previous_nanos_,
                .length_nanos = std::llround(micros * 1e3)});
  return true;
}

}  // namespace annulus::device
