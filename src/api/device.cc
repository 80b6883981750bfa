// The public handles: each function is the few lines that lead into the rooms below.
#include <array>
#include <chrono>
#include <cstdint>

#include "annulus/device.h"
#include "api/impl.h"
#include "attention/pipe_model.h"
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

const Device::Impl& inside(const Device& device) { return device.impl(); }

attention::DeviceLimits limits_of(const Device::Impl& device) {
  return {device.arch, device.info.multiprocessors, device.info.shared_bytes_per_block};
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

// ---- Device

const DeviceInfo& Device::info() const { return impl_->info; }

ListCounters Device::list_counters() const {
  const auto counters = [](const base::CacheCounters& of) -> LayoutCacheCounters {
    return {of.hits,      of.waits,     of.misses, of.failures,
            of.evictions, of.too_large, of.bytes,  of.entries};
  };
  return {counters(impl_->tiles->counters()), counters(impl_->device_tiles->counters())};
}

DeviceMemory Device::allocate(std::size_t bytes) const {
  if (bytes == 0) return {};
  return DeviceMemory(
      std::make_unique<DeviceMemory::Impl>(DeviceMemory::Impl{{impl_->context, bytes}}));
}

void Device::copy_to_device(void* to, const void* from, std::size_t bytes) const {
  api::check_copy(to, from, bytes);
  device::copy_to_device(*impl_->context, api::address(to), from, bytes);
}

void Device::copy_to_host(void* to, const void* from, std::size_t bytes) const {
  api::check_copy(to, from, bytes);
  device::copy_to_host(*impl_->context, to, api::address(from), bytes);
}

void Device::synchronize() const { impl_->context->synchronize(); }

Counters Device::counters(bool clear) const {
  const auto raw = device::simulator_counters(*impl_->context, clear);
  if (!raw) return {};
  return {{"launches", raw->launches},
          {"ctas", raw->ctas},
          {"warp_instructions", raw->warp_instructions},
          {"thread_instructions", raw->thread_instructions},
          {"integer", raw->integer},
          {"float32", raw->float32},
          {"conversion", raw->conversion},
          {"special", raw->special},
          {"control", raw->control},
          {"barrier", raw->barrier},
          {"shuffle", raw->shuffle},
          {"global_load", raw->global_load},
          {"global_store", raw->global_store},
          {"shared_load", raw->shared_load},
          {"shared_store", raw->shared_store},
          {"async_copy", raw->async_copy},
          {"atomic", raw->atomic},
          {"matrix", raw->matrix},
          {"other", raw->other},
          {"matrix_flop", raw->matrix_flop},
          {"special_lanes", raw->special_lanes},
          {"shared_wavefronts", raw->shared_wavefronts},
          {"shared_wavefronts_ideal", raw->shared_wavefronts_ideal},
          {"global_sectors_read", raw->global_sectors_read},
          {"global_sectors_written", raw->global_sectors_written},
          {"faults", raw->faults}};
}

// ---- Plan

const Problem& Plan::problem() const { return impl_->forward.problem(); }
const PlanInfo& Plan::info() const { return impl_->info; }

PlanPrediction Plan::predict() const {
  PlanPrediction whole;
  std::array<double, 6> busy{};
  double cycles = 0;
  double longest = 0;
  for (const attention::Forward& forward : impl_->forward.branches()) {
    const attention::Prediction made =
        attention::predict(attention::pipe_device(forward.context()->info()), forward.plan());
    whole.predicted_micros += made.predicted_micros;
    cycles += made.predicted_cycles;
    for (std::size_t i = 0; i < busy.size(); ++i) busy[i] += made.predicted_busy[i];
    if (whole.predicted_limit.empty() || made.predicted_cycles > longest) {
      longest = made.predicted_cycles;
      whole.predicted_limit = attention::to_string(made.predicted_limit);
    }
  }
  for (std::size_t i = 0; i < busy.size(); ++i) {
    whole.predicted_busy.emplace_back(attention::to_string(static_cast<attention::Limit>(i)),
                                      cycles > 0 ? busy[i] / cycles : 0);
  }
  return whole;
}

std::size_t Plan::workspace_bytes() const {
  return static_cast<std::size_t>(impl_->selector ? impl_->selector->plan().workspace_bytes
                                                  : impl_->forward.workspace_bytes());
}

void Plan::run(void* stream, const Operands& operands, void* workspace) const {
  if (const std::size_t bytes = workspace_bytes(); bytes > 0) {
    if (workspace == nullptr) {
      base::fail(ErrorCode::kInvalidArgument,
                 "the plan needs {} bytes of workspace, none was given", bytes);
    }
    // A kernel that found out would take the context with it.
    if (const auto address = reinterpret_cast<std::uintptr_t>(workspace); address % 16 != 0) {
      base::fail(ErrorCode::kInvalidArgument,
                 "the workspace at {:#x} is not a multiple of 16 bytes", address);
    }
  }
  if (impl_->selector) return run(stream, operands, workspace, SelectionBuffers());
  impl_->forward.run(static_cast<abi::CUstream>(stream), operands, workspace);
}

void Plan::run(void* stream, const Operands& operands, void* workspace,
               const SelectionBuffers& buffers) const {
  if (!impl_->selector) {
    base::fail(ErrorCode::kInvalidArgument,
               "the plan has no selection; run it without SelectionBuffers, or plan with one");
  }
  const auto on = static_cast<abi::CUstream>(stream);
  const attention::Forward& forward = impl_->forward.branches().front();
  forward.check(operands);
  const kernels::TileListParams lists =
      impl_->selector->run(on, operands, buffers, workspace, forward.lists());
  forward.run(on, operands, lists);
}

// ---- DeviceMemory

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
