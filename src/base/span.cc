#include "base/span.h"

#include <fmt/core.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/json.h"
#include "base/process.h"

namespace annulus::base {
namespace {

constexpr std::size_t kDetailBytes = 88;
constexpr std::size_t kTrackBytes = 24;

// Keeps as much as there is room for.
template <std::size_t bytes>
void keep(std::array<char, bytes>* to, std::string_view text) noexcept {
  std::size_t length = std::min(text.size(), bytes - 1);
  // No UTF-8 character is cut: bytes 10xxxxxx continue one.
  while (length < text.size() && length > 0 && (text[length] & 0xC0) == 0x80) --length;
  std::copy_n(text.data(), length, to->data());  // memcpy takes no null, which an empty text has
  (*to)[length] = '\0';
}

struct Event {
  const char* name = "";
  std::array<char, kDetailBytes> detail = {};
  std::array<char, kTrackBytes> track = {};  // empty: the host
  std::int64_t start = 0;                    // of the host's clock, or the device's
  std::int64_t length = 0;
  std::int64_t queued = 0;  // of a device's span
  std::int32_t thread = 0;  // of a host's span
};

struct Recorder {
  std::mutex mutex;
  std::vector<Event> events;  // a ring
  std::int64_t total = 0;     // since recording started
  bool on = false;
  ProcessMark process;
};

// Never destroyed, since threads may still work when the process ends.
Recorder& recorder() {
  static Recorder& one = *new Recorder;
  return one;
}

// A number of the thread that tools show, and that top and gdb show too.
std::int32_t thread_number() noexcept {
  thread_local const auto number = static_cast<std::int32_t>(::syscall(SYS_gettid));
  return number;
}

// A child of fork records nothing: a thread of its parent may have held the lock.
void add(const Event& event) noexcept {
  Recorder& to = recorder();
  if (!to.process.is_here()) return;
  const std::lock_guard lock(to.mutex);
  if (!to.on || to.events.empty()) return;
  to.events[static_cast<std::size_t>(to.total++) % to.events.size()] = event;
}

std::atomic<void (*)(const char*)> push_range{nullptr};
std::atomic<void (*)()> pop_range{nullptr};

// Microseconds, as the format has them.
double micros(std::int64_t nanos) { return static_cast<double>(nanos) / 1e3; }

// The oldest first.
std::vector<Event> events_kept(Recorder& from) {
  const std::lock_guard lock(from.mutex);
  std::vector<Event> all;
  const auto room = static_cast<std::int64_t>(from.events.size());
  const std::int64_t kept = std::min(from.total, room);
  all.reserve(static_cast<std::size_t>(kept));
  for (std::int64_t i = from.total - kept; i < from.total; ++i) {
    all.push_back(from.events[static_cast<std::size_t>(i % room)]);
  }
  return all;
}

// A string of JSON. Bytes that are no UTF-8 are replaced.
std::string quoted(const char* text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string detail_of(const Event& event) {
  if (event.detail[0] == '\0') return "{}";
  return fmt::format("{{\"detail\":{}}}", quoted(event.detail.data()));
}

// Tracks are shown like threads; their numbers are none that a thread has.
constexpr int kFirstTrack = 1'000'000'000;

// A device's track, and where its clock stands on the host's.
struct Track {
  int number = 0;
  std::int64_t offset = 0;
};

// No work starts before it is queued, and work for an idle device starts within microseconds of
// that. So the smallest shift that lets no span begin too early is nearly the true one.
std::map<std::string, Track> tracks_of(const std::vector<Event>& events) {
  std::map<std::string, Track> tracks;
  for (const Event& event : events) {
    if (event.track[0] == '\0') continue;
    const std::int64_t shift = event.queued - event.start;
    const auto [at, is_new] = tracks.try_emplace(event.track.data());
    if (is_new) at->second = {kFirstTrack + static_cast<int>(tracks.size()), shift};
    at->second.offset = std::max(at->second.offset, shift);
  }
  return tracks;
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

void record(const DeviceSpan& span) noexcept {
  if ((span::wanted.load(std::memory_order_relaxed) & span::kRecorded) == 0) return;
  Event event;
  event.name = span.name;
  keep(&event.detail, span.detail);
  keep(&event.track, span.track);
  event.start = span.device_nanos;
  event.length = span.length_nanos;
  event.queued = span.queued_nanos;
  add(event);
}

void start_recording(std::size_t spans) {
  std::vector<Event> room(spans);
  Recorder& to = recorder();
  to.process.check("trace");
  {
    const std::lock_guard lock(to.mutex);
    to.events = std::move(room);
    to.total = 0;
    to.on = true;
  }
  span::wanted.fetch_or(span::kRecorded, std::memory_order_release);
}

void stop_recording() noexcept {
  span::wanted.fetch_and(~span::kRecorded, std::memory_order_release);
  Recorder& to = recorder();
  if (!to.process.is_here()) return;
  const std::lock_guard lock(to.mutex);
  to.on = false;
}

Recorded recorded() noexcept {
  Recorder& from = recorder();
  if (!from.process.is_here()) return {};
  const std::lock_guard lock(from.mutex);
  const std::int64_t kept = std::min(from.total, static_cast<std::int64_t>(from.events.size()));
  return {from.on, kept, from.total - kept};
}

std::string trace_json() {
  Recorder& from = recorder();
  from.process.check("trace");
  const std::vector<Event> events = events_kept(from);
  const auto process = static_cast<int>(::getpid());
  const std::map<std::string, Track> tracks = tracks_of(events);
  std::string text = fmt::format(
      "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"clock\":\"CLOCK_MONOTONIC\",\"lost\":{}}},\n"
      "\"traceEvents\":[\n"
      "{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{},\"args\":{{\"name\":\"annulus\"}}}}",
      recorded().lost, process);
  for (const auto& [name, track] : tracks) {
    text += fmt::format(
        ",\n{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":{}}}}"
        "}",
        process, track.number, quoted(name.c_str()));
  }
  for (const Event& event : events) {
    const bool on_device = event.track[0] != '\0';
    const Track track = on_device ? tracks.at(event.track.data()) : Track{};
    text += fmt::format(
        ",\n{{\"ph\":\"X\",\"cat\":\"{}\",\"name\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":{:.3f},"
        "\"dur\":{:.3f},\"args\":{}}}",
        on_device ? "device" : "host", event.name, process, on_device ? track.number : event.thread,
        micros(event.start + track.offset), micros(event.length), detail_of(event));
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
