#ifndef ANNULUS_BASE_SPAN_H_
#define ANNULUS_BASE_SPAN_H_

// The activities of the library as named spans of time. They are recorded for a trace
// (annulus/observe.h), and passed to a profiler that accepts ranges (abi/nvtx.h). Both apply to the
// whole process, because one call may work for several devices or for none. If neither is on, a
// span costs one load.
//
//   const base::Span span("compile", name_of_kernel);
//
// These functions do not throw. Spans that cannot be recorded are lost and counted.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace annulus::base {

// Nanoseconds of std::chrono::steady_clock, the clock of all spans.
std::int64_t now_nanos() noexcept;

namespace span {
// The consumers of spans, as bits.
constexpr unsigned kRecorded = 1;
constexpr unsigned kRanges = 2;
extern std::atomic<unsigned> wanted;
}  // namespace span

inline bool spans_wanted() noexcept { return span::wanted.load(std::memory_order_relaxed) != 0; }

class Span {
 public:
  // `name` is a literal. `detail` must stay valid until the span ends.
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

  unsigned wanted_ = 0;  // the value of span::wanted when the span began
  const char* name_ = nullptr;
  std::string_view detail_;
  std::int64_t start_ = 0;
};

// ---- The recorder of the process

// Returns a number that no other device clock in this process has.
int new_device_clock() noexcept;

// A span on a device. The device's clock differs from the host's: `device_nanos` counts from any
// fixed moment of `clock`. `queued_nanos` is the time when the host queued the work, which is never
// later than the start of the work.
struct DeviceSpan {
  const char* name = "";        // a literal
  std::string_view detail;      // copied
  std::string_view track = {};  // the name of the device; copied
  int clock = 0;  // a number of new_device_clock(); spans of a track may have different clocks
  std::int64_t queued_nanos = 0;
  std::int64_t device_nanos = 0;
  std::int64_t length_nanos = 0;
};
// Records the span if recording is on.
void record(const DeviceSpan& span) noexcept;

// Starts a new recording with memory for `spans` spans. When it is full, the oldest spans are lost.
// Throws std::bad_alloc.
void start_recording(std::size_t spans);
// The recorded spans stay until recording starts again.
void stop_recording() noexcept;

struct Recorded {
  bool on = false;
  std::int64_t spans = 0;  // the number of spans in memory
  std::int64_t lost = 0;
};
Recorded recorded() noexcept;

// The spans in the Trace Event Format, one complete event ("ph": "X") each, in the order in which
// they begin. If spans of a track overlap because they ran on two streams, they are put on separate
// tracks: in this format the spans of one track must be disjoint or nested.
std::string trace_json();

// ---- Ranges of a profiler

// Functions that receive the begin and the end of a range of the calling thread. Ranges are nested.
// The functions are set only once.
struct RangeFunctions {
  void (*push)(const char* text) = nullptr;
  void (*pop)() = nullptr;
};
void set_range_functions(const RangeFunctions& functions) noexcept;

}  // namespace annulus::base

#endif  // ANNULUS_BASE_SPAN_H_
