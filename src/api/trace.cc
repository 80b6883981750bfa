// The public functions of the process's trace. They call base/span.h.
#include "annulus/observe.h"

#include <span>

#include "base/fail.h"
#include "base/files.h"
#include "base/span.h"

namespace annulus::inline v0 {

void start_trace(const TraceOptions& options) {
  constexpr std::int64_t kMaxSpans = 1 << 24;
  if (options.max_spans < 1 || options.max_spans > kMaxSpans) {
    base::fail(ErrorCode::kInvalidArgument,
               "max_spans is {}; give the most spans to keep, from 1 to {}", options.max_spans,
               kMaxSpans);
  }
  base::start_recording(static_cast<std::size_t>(options.max_spans));
}

void stop_trace() { base::stop_recording(); }

TraceState trace_state() {
  const base::Recorded now = base::recorded();
  return {now.on, now.spans, now.lost};
}

std::string trace_json() { return base::trace_json(); }

void write_trace(const std::string& path) {
  base::FileSystem files;
  const std::string text = base::trace_json();
  base::write_file_atomically(files, path, std::as_bytes(std::span(text)));
}

}  // namespace annulus::inline v0
