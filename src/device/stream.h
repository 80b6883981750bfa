#ifndef ANNULUS_DEVICE_STREAM_H_
#define ANNULUS_DEVICE_STREAM_H_

// Streams and events. All other code in the library takes a raw abi::CUstream, so it accepts a
// caller's stream and a stream created here. Streams and events may be used from any thread.

#include "device/context.h"

namespace annulus::device {

// A point in the work of a stream.
class Event {
 public:
  enum class Timing { kOff, kOn };  // events without timing are cheaper to wait for

  Event() = default;  // holds nothing
  explicit Event(ContextPointer context, Timing timing = Timing::kOff);
  ~Event();
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;

  abi::CUevent handle() const { return handle_; }

  void record(abi::CUstream stream) const;
  void synchronize() const;  // waits on the host
  bool done() const;         // all work before the last record() has ended

 private:
  ContextPointer context_;
  abi::CUevent handle_ = nullptr;
};

// Requires: both events have Timing::kOn, and their streams have passed them. On a simulated device
// it is the simulator's run time, which is unrelated to a GPU's time.
double elapsed_millis(const Context& context, const Event& start, const Event& end);

// A queue of device work that does not synchronise with the default stream.
class Stream {
 public:
  // The device prefers the work of streams with high priority.
  enum class Priority { kDefault, kHigh };

  Stream() = default;  // holds no stream; its handle is the default stream's
  explicit Stream(ContextPointer context, Priority priority = Priority::kDefault);
  ~Stream();  // work that is already queued still runs
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&& other) noexcept;

  abi::CUstream handle() const { return handle_; }

  void synchronize() const;
  bool done() const;

 private:
  ContextPointer context_;
  abi::CUstream handle_ = nullptr;
};

// Waits on the host until the work on `stream` has ended. Faults of its kernels are reported here.
void synchronize(const Context& context, abi::CUstream stream);

// Work that is queued on `stream` later starts after the last record() of `event`.
void wait(const Context& context, abi::CUstream stream, const Event& event);

}  // namespace annulus::device

#endif  // ANNULUS_DEVICE_STREAM_H_
