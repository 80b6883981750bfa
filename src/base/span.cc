#include "base/span.h"

#include <fmt/core.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/of_thread.h"
#include "base/process.h"

namespace annulus::base {
namespace {

constexpr std::size_t kDetailBytes = 88;
constexpr std::size_t kTrackBytes = 24;

// Copies as much of the text as fits.
template <std::size_t bytes>
void keep(std::array<char, bytes>* to, std::string_view text) noexcept {
  std::size_t length = std::min(text.size(), bytes - 1);
  // A UTF-8 character is never cut: bytes from 0x80 to 0xbf continue a character.
  while (length < text.size() && length > 0 && (text[length] & 0xC0) == 0x80) --length;
  // memcpy must not get null, which an empty text has
  std::copy_n(text.data(), length, to->data());
  (*to)[length] = '\0';
}

struct Event {
  const char* name = "";
  std::array<char, kDetailBytes> detail = {};
  std::array<char, kTrackBytes> track = {};  // empty for the host
  std::int64_t start = 0;                    // on the host's clock, or on the device's
  std::int64_t length = 0;
  std::int64_t queued = 0;  // used for spans of a device
  std::int32_t clock = 0;   // used for spans of a device
  std::int32_t thread = 0;  // used for spans of the host
};

// It records while the bit span::kRecorded is set. The bit changes only under the lock.
struct Recorder {
  std::mutex mutex;
  std::vector<Event> events;  // a ring buffer
  std::int64_t total = 0;     // the number of spans since recording started
  ProcessMark process;

  bool is_on() const noexcept {
    return (span::wanted.load(std::memory_order_relaxed) & span::kRecorded) != 0;
  }
  std::int64_t kept() const noexcept {
    return std::min(total, static_cast<std::int64_t>(events.size()));
  }
};

// Never destroyed, because threads may still run when the process ends.
Recorder& recorder() {
  static Recorder& one = *new Recorder;
  return one;
}

// The number of the thread in tools such as top and gdb.
std::int32_t thread_number() noexcept {
  ANNULUS_THREAD_LOCAL const auto number = static_cast<std::int32_t>(::syscall(SYS_gettid));
  return number;
}

// A child of fork() records nothing, because a thread of its parent may have held the lock.
void add(const Event& event) noexcept {
  Recorder& to = recorder();
  if (!to.process.is_here()) return;
  const std::lock_guard lock(to.mutex);
  if (!to.is_on()) return;
  to.events[static_cast<std::size_t>(to.total++) % to.events.size()] = event;
}

std::atomic<void (*)(const char*)> push_range{nullptr};
std::atomic<void (*)()> pop_range{nullptr};

// The unit of the format is microseconds.
double micros(std::int64_t nanos) { return static_cast<double>(nanos) / 1e3; }

// The newest spans, in any order, and the number of spans that were overwritten.
struct Kept {
  std::vector<Event> events;
  std::int64_t lost = 0;
};

Kept events_kept(Recorder& from) {
  const std::lock_guard lock(from.mutex);
  const auto end = from.events.begin() + static_cast<std::ptrdiff_t>(from.kept());
  return {{from.events.begin(), end}, from.total - from.kept()};
}

// A JSON string. Bytes that are not UTF-8 are replaced.
std::string quoted(const char* text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string detail_of(const Event& event) {
  if (event.detail[0] == '\0') return "{}";
  return fmt::format("{{\"detail\":{}}}", quoted(event.detail.data()));
}

bool on_device(const Event& event) { return event.track[0] != '\0'; }

// Moves the spans of devices to the host's clock. Work never starts before it is queued, and on an
// idle device it starts within microseconds after that. So the smallest shift of a clock with which
// none of its spans begins too early is nearly the true shift.
void place_on_host_clock(std::vector<Event>* events) {
  std::map<std::int32_t, std::int64_t> shifts;
  for (const Event& event : *events) {
    if (!on_device(event)) continue;
    const std::int64_t shift = event.queued - event.start;
    const auto [at, is_new] = shifts.try_emplace(event.clock, shift);
    at->second = std::max(at->second, shift);
  }
  for (Event& event : *events) {
    if (on_device(event)) event.start += shifts.at(event.clock);
  }
}

// Tracks are shown like threads. No thread has the number of a track.
constexpr std::int32_t kFirstTrack = 1'000'000'000;

// Times of a device have a resolution of half a microsecond (CUDA driver API, cuEventElapsedTime),
// so a span may seem to begin before the previous span ends.
constexpr std::int64_t kDeviceStep = 1000;

// A row that shows spans of a device.
struct Lane {
  std::int32_t number = 0;
  Event* last = nullptr;

  std::int64_t end() const { return last->start + last->length; }
};

// Sets the track numbers of the spans of devices, and returns the names of the tracks. Overlapping
// spans are put on different lanes, because viewers drop a span that begins inside another span of
// its track and ends after it. Requires: the spans are sorted by their begin.
std::map<std::int32_t, std::string> place_on_tracks(std::vector<Event>* events) {
  std::map<std::string, std::vector<Lane>> tracks;
  std::map<std::int32_t, std::string> names;
  for (Event& event : *events) {
    if (!on_device(event)) continue;
    std::vector<Lane>& lanes = tracks[event.track.data()];
    auto lane = std::find_if(lanes.begin(), lanes.end(), [&](const Lane& each) {
      return each.end() <= event.start + kDeviceStep;
    });
    if (lane == lanes.end()) {
      const auto number = kFirstTrack + static_cast<std::int32_t>(names.size());
      lane = lanes.insert(lane, Lane{number, nullptr});
      names[number] = lanes.size() == 1 ? std::string(event.track.data())
                                        : fmt::format("{} ({})", event.track.data(), lanes.size());
    } else {
      lane->last->length = std::min(lane->last->length, event.start - lane->last->start);
    }
    lane->last = &event;
    event.thread = lane->number;
  }
  return names;
}

}  // namespace

namespace span {
std::atomic<unsigned> wanted{0};
}  // namespace span

std::int64_t now_nanos() noexcept {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

void Span::begin(const char* name, std::string_view detail) noexcept {
  wanted_ = span::wanted.load(std::memory_order_acquire);
  name_ = name;
  detail_ = detail;
  if ((wanted_ & span::kRanges) != 0) {
    std::array<char, 128> text;
    const auto end = fmt::format_to_n(text.data(), text.size() - 1, "{}{}{}", name,
                                      detail.empty() ? "" : ": ", detail);
    *end.out = '\0';
    push_range.load(std::memory_order_relaxed)(text.data());
  }
  if ((wanted_ & span::kRecorded) != 0) start_ = now_nanos();
}

void Span::end() noexcept {
  if ((wanted_ & span::kRecorded) != 0) {
    Event event;
    event.name = name_;
    keep(&event.detail, detail_);
    event.start = start_;
    event.length = now_nanos() - start_;
    event.thread = thread_number();
    add(event);
  }
  if ((wanted_ & span::kRanges) != 0) pop_range.load(std::memory_order_relaxed)();
}

int new_device_clock() noexcept {
  static std::atomic<int> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

void record(const DeviceSpan& span) noexcept {
  if ((span::wanted.load(std::memory_order_relaxed) & span::kRecorded) == 0) return;
  Event event;
  event.name = span.name;
  keep(&event.detail, span.detail);
  keep(&event.track, span.track);
  event.start = span.device_nanos;
  event.length = span.length_nanos;
  event.queued = span.queued_nanos;
  event.clock = span.clock;
  add(event);
}

void start_recording(std::size_t spans) {
  std::vector<Event> room(spans);
  Recorder& to = recorder();
  to.process.check("trace");
  // The previous spans are freed after the lock is released, because runs wait for the lock.
  const std::lock_guard lock(to.mutex);
  to.events.swap(room);
  to.total = 0;
  span::wanted.fetch_or(span::kRecorded, std::memory_order_release);
}

void stop_recording() noexcept {
  Recorder& to = recorder();
  // In a child of fork() the lock may be held by a thread that does not exist there.
  std::unique_lock lock(to.mutex, std::defer_lock);
  if (to.process.is_here()) lock.lock();
  span::wanted.fetch_and(~span::kRecorded, std::memory_order_release);
}

Recorded recorded() noexcept {
  Recorder& from = recorder();
  if (!from.process.is_here()) return {};
  const std::lock_guard lock(from.mutex);
  return {from.is_on(), from.kept(), from.total - from.kept()};
}

std::string trace_json() {
  Recorder& from = recorder();
  from.process.check("trace");
  Kept kept = events_kept(from);
  const auto process = static_cast<int>(::getpid());
  place_on_host_clock(&kept.events);
  // If two spans begin at the same time, the longer one is first, because it encloses the other.
  std::sort(kept.events.begin(), kept.events.end(), [](const Event& a, const Event& b) {
    return std::tuple(a.start, b.length) < std::tuple(b.start, a.length);
  });
  const std::map<std::int32_t, std::string> tracks = place_on_tracks(&kept.events);
  std::string text = fmt::format(
      "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"clock\":\"CLOCK_MONOTONIC\",\"lost\":{}}},\n"
      "\"traceEvents\":[\n"
      "{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{},\"args\":{{\"name\":\"annulus\"}}}}",
      kept.lost, process);
  for (const auto& [number, name] : tracks) {
    text += fmt::format(
        ",\n{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":{}}}}"
        "}",
        process, number, quoted(name.c_str()));
  }
  for (const Event& event : kept.events) {
    text += fmt::format(
        ",\n{{\"ph\":\"X\",\"cat\":\"{}\",\"name\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":{:.3f},"
        "\"dur\":{:.3f},\"args\":{}}}",
        on_device(event) ? "device" : "host", event.name, process, event.thread,
        micros(event.start), micros(event.length), detail_of(event));
  }
  text += "\n]}\n";
  return text;
}

void set_range_functions(const RangeFunctions& functions) noexcept {
  push_range.store(functions.push, std::memory_order_relaxed);
  pop_range.store(functions.pop, std::memory_order_relaxed);
  span::wanted.fetch_or(span::kRanges, std::memory_order_release);
}

}  // namespace annulus::base
