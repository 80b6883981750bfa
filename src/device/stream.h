#ifndef ANNULUS_DEVICE_STREAM_H_
#define ANNULUS_DEVICE_STREAM_H_

// Streams and events. Everything else in the library takes a raw abi::CUstream, so it works on a
// caller's own stream and on one made here. Streams and events may be used from any thread.

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
// it is the time that the simulator took, which says nothing about a GPU.
double elapsed_millis(const Context& context, const Event& start, const Event& end);

// A queue of device work that does not wait for the default stream.
class Stream {
 public:
  // The device takes the work of streams of high priority first.
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

// Waits on the host until the work of `stream` has ended. Faults of its kernels show here.
void synchronize(const Context& context, abi::CUstream stream);

// Work queued on `stream` from now on starts after the last record() of `event`.
void wait(const Context& context, abi::CUstream stream, const Event& event);

}  // namespace annulus::device

#endif  // ANNULUS_DEVICE_STREAM_H_
