// The functions of a device's public handle. Each has a few lines that call other folders.
#include <chrono>
#include <cstdint>

#include "annulus/device.h"
#include "api/impl.h"
#include "base/fail.h"
#include "device/simulator.h"
#include "device/stream.h"

namespace annulus {
namespace api {
namespace {

abi::CUdeviceptr address(const void* data) { return reinterpret_cast<std::uintptr_t>(data); }

void check_copy(const void* to, const void* from, std::size_t bytes) {
  if (bytes == 0 || (to != nullptr && from != nullptr)) return;
  base::fail(ErrorCode::kInvalidArgument, "{} bytes cannot be copied {} a null pointer", bytes,
             to == nullptr ? "to" : "from");
}

}  // namespace

const Device::Impl& inside(const Device& device) {
  device.impl().process.check("device");
  return device.impl();
}

attention::DeviceLimits limits_of(const device::DeviceInfo& info, jit::Arch arch) {
  return {.arch = arch,
          .multiprocessors = info.multiprocessors,
          .shared_bytes_per_block = info.shared_bytes_per_block_optin,
          .clock_kilohertz = info.clock_kilohertz,
          .memory_clock_kilohertz = info.memory_clock_kilohertz,
          .memory_bus_bits = info.memory_bus_bits};
}

attention::DeviceLimits limits_of(const Device::Impl& device) {
  return limits_of(device.context->info(), device.arch);
}

double run_millis(const Device& device, const Plan& plan, const Operands& operands,
                  void* workspace) {
  const device::Context& context = *inside(device).context;
  if (device.info().simulated) {
    const auto start = std::chrono::steady_clock::now();
    plan.run(nullptr, operands, workspace);
    context.synchronize();
    const auto end = std::chrono::steady_clock::now();
    return std::chrono::duration<double, std::milli>(end - start).count();
  }
  const device::Event start(inside(device).context, device::Event::Timing::kOn);
  const device::Event end(inside(device).context, device::Event::Timing::kOn);
  start.record(nullptr);
  plan.run(nullptr, operands, workspace);
  end.record(nullptr);
  end.synchronize();
  return device::elapsed_millis(context, start, end);
}

}  // namespace api

inline namespace v0 {

const DeviceInfo& Device::info() const { return impl_->info; }

void Device::flush_shape_log() const {
  const Impl& device = api::inside(*this);
  if (device.shape_log) device.shape_log->write();
}

ListCounters Device::list_counters() const {
  const auto counters = [](const base::CacheCounters& of) -> LayoutCacheCounters {
    return {of.hits,      of.waits,     of.misses, of.failures,
            of.evictions, of.too_large, of.bytes,  of.entries};
  };
  const Impl& device = api::inside(*this);
  return {counters(device.tiles->counters()), counters(device.device_tiles->counters())};
}

MemoryStatistics Device::memory_statistics() const {
  const device::ArenaStatistics now = api::inside(*this).context->arena().statistics();
  const auto used = [&](device::MemoryUse use) {
    return static_cast<std::int64_t>(now.used_by[static_cast<std::size_t>(use)]);
  };
  return {.held_bytes = static_cast<std::int64_t>(now.held_bytes),
          .used_bytes = static_cast<std::int64_t>(now.used_bytes),
          .waiting_bytes = static_cast<std::int64_t>(now.waiting_bytes),
          .peak_held_bytes = static_cast<std::int64_t>(now.peak_held_bytes),
          .peak_used_bytes = static_cast<std::int64_t>(now.peak_used_bytes),
          .largest_free_bytes = static_cast<std::int64_t>(now.largest_free_bytes),
          .slabs = now.slabs,
          .blocks = now.blocks,
          .slabs_taken = now.slabs_taken,
          .slabs_given_back = now.slabs_given_back,
          .lists_bytes = used(device::MemoryUse::kLists),
          .tables_bytes = used(device::MemoryUse::kTables),
          .selection_bytes = used(device::MemoryUse::kSelection),
          .caller_bytes = used(device::MemoryUse::kCaller),
          .scratch_bytes = used(device::MemoryUse::kScratch)};
}

std::size_t Device::trim(std::size_t bytes) const {
  const Impl& device = api::inside(*this);
  const device::ContextScope scope(*device.context);
  return device.context->arena().trim(bytes);
}

DeviceMemory Device::allocate(std::size_t bytes) const {
  if (bytes == 0) return {};
  return DeviceMemory(std::make_unique<DeviceMemory::Impl>(
      DeviceMemory::Impl{{api::inside(*this).context, bytes, device::MemoryUse::kCaller}}));
}

void Device::copy_to_device(void* to, const void* from, std::size_t bytes) const {
  api::check_copy(to, from, bytes);
  device::copy_to_device(*api::inside(*this).context, api::address(to), from, bytes);
}

void Device::copy_to_host(void* to, const void* from, std::size_t bytes) const {
  api::check_copy(to, from, bytes);
  device::copy_to_host(*api::inside(*this).context, to, api::address(from), bytes);
}

void Device::synchronize() const { api::inside(*this).context->synchronize(); }

void* Device::driver_entry(const char* name) const {
  return name == nullptr ? nullptr : api::inside(*this).context->driver().entry(name);
}

Counters Device::counters(bool clear) const {
  const auto raw = device::simulator_counters(*api::inside(*this).context, clear);
  if (!raw) return {};
  return {
#define COUNTER(name, meaning) {#name, raw->name},
#include "annulus/counters.def"
  };
}

DeviceMemory::DeviceMemory() = default;
DeviceMemory::DeviceMemory(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DeviceMemory::DeviceMemory(DeviceMemory&&) noexcept = default;
DeviceMemory& DeviceMemory::operator=(DeviceMemory&&) noexcept = default;
DeviceMemory::~DeviceMemory() = default;

void* DeviceMemory::data() const {
  return impl_ ? reinterpret_cast<void*>(static_cast<std::uintptr_t>(impl_->buffer.address()))
               : nullptr;
}
std::size_t DeviceMemory::bytes() const { return impl_ ? impl_->buffer.bytes() : 0; }

}  // namespace v0
}  // namespace annulus
