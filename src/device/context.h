#ifndef ANNULUS_DEVICE_CONTEXT_H_
#define ANNULUS_DEVICE_CONTEXT_H_

// The primary context of a device. The CUDA runtime and all frameworks that use it also use this
// context, so pointers and streams of the caller's engine are valid in it.
//
//   DriverPointer driver = ...;
//   ContextPointer context = Context::retain(driver, 0);
//   Buffer buffer(context, 1 << 20);
//
// Buffers, streams, events and modules hold their context, so they may be destroyed in any order.
// After a kernel faulted the context is lost: every call throws Error{kFault}, and destructors do
// nothing and report no error. Only a new process restores it. On a simulated device
// clear_simulator_fault() also does.

#include <cstddef>
#include <memory>

#include "abi/check.h"
#include "annulus/device.h"
#include "base/tally.h"
#include "device/arena.h"
#include "device/device_info.h"
#include "device/uploads.h"

namespace annulus::device {

class Context;
using ContextPointer = std::shared_ptr<const Context>;

class Context {
 public:
  // Creates the primary context, or retains the existing one. If `allocator` has functions, the
  // arena of this context takes its memory from them.
  static ContextPointer retain(DriverPointer driver, int ordinal, AllocatorCallbacks allocator = {},
                               ArenaLimits limits = {});
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Driver& driver() const { return *driver_; }
  const abi::CudaTable& table() const { return driver_->table(); }
  const DeviceInfo& info() const { return info_; }
  abi::CUdevice device() const { return device_; }
  abi::CUcontext handle() const { return handle_; }
  Arena& arena() const { return *arena_; }
  Uploads& uploads() const { return *uploads_; }
  // Counts the events on this device.
  base::Tally& tally() const { return tally_; }

  // Waits for all streams of the context. Afterwards retired blocks of the arena are free.
  void synchronize() const;

  struct Memory {
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
  };
  Memory memory() const;

 private:
  Context(DriverPointer driver, int ordinal);

  DriverPointer driver_;
  DeviceInfo info_;
  abi::CUdevice device_ = 0;
  abi::CUcontext handle_ = nullptr;
  mutable base::Tally tally_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Uploads> uploads_;
};

// Makes the context current on this thread for the lifetime of the scope, then restores the
// thread's state. Every function in src/device that calls the driver does so inside a scope. If the
// context is already current, the scope costs one driver call.
class ContextScope {
 public:
  explicit ContextScope(const Context& context,
                        const std::source_location& where = std::source_location::current());
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  const Context& context_;
  bool pushed_ = false;
};

// A scope for destructors. If the context cannot be made current, active() is false and nothing is
// thrown.
class QuietScope {
 public:
  explicit QuietScope(const Context& context) noexcept;
  ~QuietScope();
  QuietScope(const QuietScope&) = delete;
  QuietScope& operator=(const QuietScope&) = delete;

  bool active() const { return active_; }

 private:
  const Context& context_;
  bool pushed_ = false;
  bool active_ = false;
};

}  // namespace annulus::device

#endif  // ANNULUS_DEVICE_CONTEXT_H_
