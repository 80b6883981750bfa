#include "program/run/stream.h"

#include <chrono>

#include "base/fail.h"

namespace annulus::program {
namespace {

constexpr unsigned kStreamNonBlocking = 1;  // CU_STREAM_NON_BLOCKING
constexpr unsigned kEventDefault = 0;       // CU_EVENT_DEFAULT, which records the time

// Calls a function of the driver. All handles are pointers. The arguments must have the types that
// cuda.h declares.
template <typename... Types>
void call(const Device& device, const char* name, Types... arguments) {
  const auto function = reinterpret_cast<int (*)(Types...)>(device.driver_entry(name));
  if (function == nullptr) {
    base::fail(ErrorCode::kDevice, "the driver of {} has no {}; install a newer one",
               device.info().name, name);
  }
  const int code = function(arguments...);
  if (code == 0) return;
  device.synchronize();  // throws a better error if a kernel failed
  base::fail(ErrorCode::kDevice, "{} on {} returned {}", name, device.info().name, code);
}

// Makes the device's context current on the calling thread during its lifetime.
class CurrentContext {
 public:
  explicit CurrentContext(const Device& device) : device_(device) {
    void* context = nullptr;
    call(device_, "cuCtxGetCurrent", &before_);
    call(device_, "cuDevicePrimaryCtxRetain", &context, device_.info().ordinal);
    call(device_, "cuCtxSetCurrent", context);
  }
  ~CurrentContext() {
    try {
      call(device_, "cuCtxSetCurrent", before_);
      call(device_, "cuDevicePrimaryCtxRelease_v2", device_.info().ordinal);
    } catch (const Error&) {
      // A kernel broke the context. Nothing remains to be undone.
    }
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

 private:
  const Device& device_;
  void* before_ = nullptr;
};

// A handle that the driver function `destroy` releases.
std::shared_ptr<void> owned(const Device& device, void* handle, const char* destroy) {
  return {handle, [device, destroy](void* last) {
            try {
              const CurrentContext current(device);
              call(device, destroy, last);
            } catch (const Error&) {  // ignored like in the destructor above
            }
          }};
}

std::shared_ptr<void> make_event(const Device& device) {
  void* event = nullptr;
  call(device, "cuEventCreate", &event, kEventDefault);
  return owned(device, event, "cuEventDestroy_v2");
}

double wall_millis(const Device& device, const std::function<void()>& launch) {
  const auto start = std::chrono::steady_clock::now();
  launch();
  device.synchronize();
  const auto end = std::chrono::steady_clock::now();
  return std::chrono::duration<double, std::milli>(end - start).count();
}

}  // namespace

Stream make_stream(const Device& device) {
  const CurrentContext current(device);
  void* stream = nullptr;
  call(device, "cuStreamCreate", &stream, kStreamNonBlocking);
  return owned(device, stream, "cuStreamDestroy_v2");
}

bool has_ended(const Device& device, const Stream& stream) {
  constexpr int kNotReady = 600;  // CUDA_ERROR_NOT_READY
  const auto query = reinterpret_cast<int (*)(void*)>(device.driver_entry("cuStreamQuery"));
  if (query == nullptr) base::fail(ErrorCode::kDevice, "the driver has no cuStreamQuery");
  const CurrentContext current(device);
  const int code = query(stream.get());
  if (code != 0 && code != kNotReady) device.synchronize();  // throws the error of the failed work
  return code != kNotReady;
}

double timed_millis(const Device& device, const std::function<void()>& launch) {
  if (device.info().simulated) return wall_millis(device, launch);
  const CurrentContext current(device);
  const std::shared_ptr<void> start = make_event(device);
  const std::shared_ptr<void> end = make_event(device);
  void* const default_stream = nullptr;
  call(device, "cuEventRecord", start.get(), default_stream);
  launch();
  call(device, "cuEventRecord", end.get(), default_stream);
  device.synchronize();
  float millis = 0;
  call(device, "cuEventElapsedTime", &millis, start.get(), end.get());
  return static_cast<double>(millis);
}

}  // namespace annulus::program
