#include "device/stream.h"

#include <utility>

namespace annulus::device {
namespace {

// CUDA_ERROR_NOT_READY means false. Every other code except success is an error.
bool is_done(const Context& context, abi::CUresult code, const char* call) {
  if (code == abi::kCudaNotReady) return false;
  abi::check(context.table(), code, call);
  return true;
}

}  // namespace

Event::Event(ContextPointer context, Timing timing) : context_(std::move(context)) {
  const ContextScope scope(*context_);
  const unsigned flags = timing == Timing::kOn ? abi::kEventDefault : abi::kEventDisableTiming;
  abi::check(context_->table(), context_->table().event_create(&handle_, flags), "cuEventCreate");
}

Event::~Event() {
  if (handle_ == nullptr) return;
  const QuietScope scope(*context_);
  if (scope.active()) context_->table().event_destroy(handle_);
}

Event::Event(Event&& other) noexcept
    : context_(std::move(other.context_)), handle_(std::exchange(other.handle_, nullptr)) {}

Event& Event::operator=(Event&& other) noexcept {
  std::swap(context_, other.context_);
  std::swap(handle_, other.handle_);
  return *this;
}

void Event::record(abi::CUstream stream) const {
  const ContextScope scope(*context_);
  abi::check(context_->table(), context_->table().event_record(handle_, stream), "cuEventRecord");
}

void Event::synchronize() const {
  const ContextScope scope(*context_);
  abi::check(context_->table(), context_->table().event_synchronize(handle_), "cuEventSynchronize");
}

bool Event::done() const {
  const ContextScope scope(*context_);
  return is_done(*context_, context_->table().event_query(handle_), "cuEventQuery");
}

double elapsed_millis(const Context& context, const Event& start, const Event& end) {
  const ContextScope scope(context);
  float millis = 0;
  abi::check(context.table(),
             context.table().event_elapsed_time(&millis, start.handle(), end.handle()),
             "cuEventElapsedTime");
  return static_cast<double>(millis);
}

Stream::Stream(ContextPointer context, Priority priority) : context_(std::move(context)) {
  const ContextScope scope(*context_);
  const abi::CudaTable& table = context_->table();
  if (priority == Priority::kDefault) {
    abi::check(table, table.stream_create(&handle_, abi::kStreamNonBlocking), "cuStreamCreate");
    return;
  }
  int least = 0, greatest = 0;
  abi::check(table, table.ctx_get_stream_priority_range(&least, &greatest),
             "cuCtxGetStreamPriorityRange");
  abi::check(table, table.stream_create_with_priority(&handle_, abi::kStreamNonBlocking, greatest),
             "cuStreamCreateWithPriority");
}

Stream::~Stream() {
  if (handle_ == nullptr) return;
  const QuietScope scope(*context_);
  if (scope.active()) context_->table().stream_destroy(handle_);
}

Stream::Stream(Stream&& other) noexcept
    : context_(std::move(other.context_)), handle_(std::exchange(other.handle_, nullptr)) {}

Stream& Stream::operator=(Stream&& other) noexcept {
  std::swap(context_, other.context_);
  std::swap(handle_, other.handle_);
  return *this;
}

void Stream::synchronize() const { device::synchronize(*context_, handle_); }

bool Stream::done() const {
  const ContextScope scope(*context_);
  return is_done(*context_, context_->table().stream_query(handle_), "cuStreamQuery");
}

void synchronize(const Context& context, abi::CUstream stream) {
  const ContextScope scope(context);
  abi::check(context.table(), context.table().stream_synchronize(stream), "cuStreamSynchronize");
}

void wait(const Context& context, abi::CUstream stream, const Event& event) {
  const ContextScope scope(context);
  abi::check(context.table(), context.table().stream_wait_event(stream, event.handle(), 0),
             "cuStreamWaitEvent");
}

}  // namespace annulus::device
