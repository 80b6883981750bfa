#include "device/context.h"

#include <utility>

namespace annulus::device {
namespace {

// Pushes `context` unless it is already current.
abi::CUresult enter(const Context& context, bool* pushed) {
  abi::CUcontext current = nullptr;
  const abi::CUresult code = context.table().ctx_get_current(&current);
  if (code != abi::kCudaSuccess || current == context.handle()) return code;
  const abi::CUresult result = context.table().ctx_push_current(context.handle());
  *pushed = result == abi::kCudaSuccess;
  return result;
}

void leave(const Context& context, bool pushed) {
  abi::CUcontext popped = nullptr;
  if (pushed) context.table().ctx_pop_current(&popped);
}

}  // namespace

ContextPointer Context::retain(DriverPointer driver, int ordinal, AllocatorCallbacks allocator,
                               ArenaLimits limits) {
  const std::shared_ptr<Context> context(new Context(std::move(driver), ordinal));
  context->arena_ = std::make_unique<Arena>(*context, std::move(allocator), limits);
  context->uploads_ = std::make_unique<Uploads>(*context);
  return context;
}

Context::Context(DriverPointer driver, int ordinal)
    : driver_(std::move(driver)), info_(read_device_info(*driver_, ordinal)) {
  abi::check(table(), table().device_get(&device_, ordinal), "cuDeviceGet");
  abi::check(table(), table().primary_ctx_retain(&handle_, device_), "cuDevicePrimaryCtxRetain");
}

Context::~Context() {
  uploads_.reset();
  arena_.reset();
  table().primary_ctx_release(device_);
}

void Context::synchronize() const {
  const ContextScope scope(*this);
  arena_->wait_for_all([&] { abi::check(table(), table().ctx_synchronize(), "cuCtxSynchronize"); });
}

Context::Memory Context::memory() const {
  const ContextScope scope(*this);
  Memory memory;
  abi::check(table(), table().mem_get_info(&memory.free_bytes, &memory.total_bytes),
             "cuMemGetInfo");
  return memory;
}

ContextScope::ContextScope(const Context& context, const std::source_location& where)
    : context_(context) {
  abi::check(context.table(), enter(context, &pushed_), "cuCtxPushCurrent", where);
}

ContextScope::~ContextScope() { leave(context_, pushed_); }

QuietScope::QuietScope(const Context& context) noexcept
    : context_(context), active_(enter(context, &pushed_) == abi::kCudaSuccess) {}

QuietScope::~QuietScope() { leave(context_, pushed_); }

}  // namespace annulus::device
