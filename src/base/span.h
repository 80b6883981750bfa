#ifndef ANNULUS_BASE_SPAN_H_
#define ANNULUS_BASE_SPAN_H_

// What the library does, as spans of time with names: recorded for a trace (annulus/observe.h), and
// passed on to a profiler that takes ranges (abi/nvtx.h). Both are of the whole process, since one
// call may work for several devices or for none. Where neither is on, a span costs one load.
//
//   const base::Span span("compile", name_of_kernel);
//
// Nothing here throws: what cannot be recorded is lost, and counted.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace annulus::base {

// Nanoseconds of std::chrono::steady_clock, which is the clock of all spans.
std::int64_t now_nanos() noexcept;

namespace span {
// Who wants spans, as bits.
constexpr unsigned kRecorded = 1;
constexpr unsigned kRanges = 2;
extern std::atomic<unsigned> wanted;
}  // namespace span

inline bool spans_wanted() noexcept { return span::wanted.load(std::memory_order_relaxed) != 0; }

class Span {
 public:
  // `name` is a literal; `detail` stays until the span ends.
  explicit Span(const char* name, std::string_view detail = {}) noexcept {
    if (spans_wanted()) begin(name, detail);
  }
  ~Span() {
    if (wanted_ != 0) end();
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  void begin(const char* name, std::string_view detail) noexcept;
  void end() noexcept;

  unsigned wanted_ = 0;  // when it began
  const char* name_ = nullptr;
  std::string_view detail_;
  std::int64_t start_ = 0;
};

// ---- The recorder of the process

// A number that no other clock of a device has in this process.
int new_device_clock() noexcept;

// A span of a device's time. The device's clock is not the host's: `device_nanos` counts from any
// fixed moment of `clock`, and `queued_nanos` is when the host queued the work, which is never
// later than its start.
struct DeviceSpan {
  const char* name = "";        // a literal
  std::string_view detail;      // copied
  std::string_view track = {};  // which device, copied
  int clock = 0;                // of new_device_clock(); one track may have spans of several
  std::int64_t queued_nanos = 0;
  std::int64_t device_nanos = 0;
  std::int64_t length_nanos = 0;
};
// Records it where spans are recorded.
void record(const DeviceSpan& span) noexcept;

// Begins anew, with room for so many spans; when it is full the oldest are lost. Throws
// std::bad_alloc.
void start_recording(std::size_t spans);
// What was recorded stays until recording starts again.
void stop_recording() noexcept;

struct Recorded {
  bool on = false;
  std::int64_t spans = 0;  // that are kept
  std::int64_t lost = 0;
};
Recorded recorded() noexcept;

// The spans in the Trace Event Format, one complete event ("ph": "X") each, in the order in which
// they begin. Spans of a track that run at the same time, on two streams, are shown on tracks of
// their own, since the format knows spans of one track only side by side or one in another.
std::string trace_json();

// ---- Ranges of a profiler

// Functions that take the begin and the end of a range of the calling thread; they are nested. Set
// once.
struct RangeFunctions {
  void (*push)(const char* text) = nullptr;
  void (*pop)() = nullptr;
};
void set_range_functions(const RangeFunctions& functions) noexcept;

}  // namespace annulus::base

#endif  // ANNULUS_BASE_SPAN_H_
