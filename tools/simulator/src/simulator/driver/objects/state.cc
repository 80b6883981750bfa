#include "simulator/driver/objects/state.h"

#include <pthread.h>

#include <utility>

#include "base/json.h"
#include "base/of_thread.h"
#include "simulator/driver/objects/graph.h"
#include "simulator/driver/objects/host_memory.h"
#include "simulator/driver/objects/libraries.h"
#include "simulator/driver/objects/memory_pools.h"
#include "simulator/driver/objects/start_options.h"

namespace annulus::simulator::driver {

GlobalMemory& Device::memory() {
  std::lock_guard lock(mutex_);
  if (memory_ == nullptr) memory_ = std::make_unique<GlobalMemory>(usable_memory(model_));
  return *memory_;
}

GlobalMemory* Device::made_memory() const {
  std::lock_guard lock(mutex_);
  return memory_.get();
}

abi::SimulatorOptions Device::options() const {
  std::lock_guard lock(mutex_);
  return options_;
}

void Device::set_options(const abi::SimulatorOptions& options) {
  std::lock_guard lock(mutex_);
  options_ = options;
}

abi::SimulatorCounters Device::counters(bool clear) {
  std::lock_guard lock(mutex_);
  return clear ? std::exchange(counters_, {}) : counters_;
}

void Device::add(const abi::SimulatorCounters& launch) {
  std::lock_guard lock(mutex_);
#define COUNTER(name, meaning) counters_.name += launch.name;
#include "annulus/counters.def"
}

std::string Device::message() const {
  std::lock_guard lock(mutex_);
  return message_;
}

void Device::clear_message() {
  std::lock_guard lock(mutex_);
  message_.clear();
}

void Device::report(base::LogLevel level, const std::string& text, std::string json) {
  {
    std::lock_guard lock(mutex_);
    message_ = std::move(json);
  }
  log_.write(level, text);
}

void Device::report(base::LogLevel level, const char* kind, const std::string& text) {
  // A program's PTX may hold any bytes. Bytes that are not valid UTF-8 are replaced.
  report(level, text,
         base::Json{{"kind", kind}, {"message", text}}.dump(-1, ' ', false,
                                                            base::Json::error_handler_t::replace));
}

std::shared_ptr<Context> Device::retain_primary() {
  std::lock_guard lock(mutex_);
  if (primary_ == nullptr) primary_ = make_context(*this, true);
  ++primary_users_;
  return primary_;
}

bool Device::release_primary() {
  std::shared_ptr<Context> last;
  {
    std::lock_guard lock(mutex_);
    if (primary_users_ == 0) return false;
    if (--primary_users_ == 0) last = std::exchange(primary_, nullptr);
  }
  if (last != nullptr) destroy_context(last);
  return true;
}

void Device::reset_primary() {
  std::shared_ptr<Context> old;
  {
    std::lock_guard lock(mutex_);
    old = std::exchange(primary_, nullptr);  // primary_users_ is unchanged, since the users still
                                             // release it
  }
  if (old != nullptr) destroy_context(old);
}

bool Device::primary_active() const {
  std::lock_guard lock(mutex_);
  return primary_ != nullptr;
}

State::State() {
  ::pthread_atfork(nullptr, nullptr, [] {
    if (state().initialised.exchange(false)) state().forked = true;
  });
  const int count = static_cast<int>(models().size()) * kDevicesPerModel;
  for (const int one : visible_devices(count)) {
    const DeviceModel& model = models()[static_cast<std::size_t>(one / kDevicesPerModel)];
    devices.push_back(
        std::make_unique<Device>(model, static_cast<int>(devices.size()), one % kDevicesPerModel));
  }
}

std::shared_ptr<base::ThreadPool> State::pool(std::uint32_t threads) {
  std::lock_guard lock(mutex);
  std::shared_ptr<base::ThreadPool>& pool = pools[threads];
  if (pool == nullptr) pool = std::make_shared<base::ThreadPool>(static_cast<int>(threads));
  return pool;
}

State& state() {
  static State* const only = new State;
  return *only;
}

std::vector<std::shared_ptr<Context>>& context_stack() {
  // The vector has room for the usual depth of the stack. So a thread that has called the driver
  // before can make a context current to free memory, even if the host has no memory left.
  struct Stack {
    Stack() { contexts.reserve(16); }
    std::vector<std::shared_ptr<Context>> contexts;
  };
  return base::of_thread<Stack>().contexts;
}

Device& device_at(abi::CUdevice device) {
  if (device < 0 || static_cast<std::size_t>(device) >= state().devices.size()) {
    throw Refusal{abi::kCudaInvalidDevice};
  }
  return *state().devices[static_cast<std::size_t>(device)];
}

std::shared_ptr<Context> current_context() {
  auto& stack = context_stack();
  if (stack.empty() || stack.back() == nullptr) throw Refusal{abi::kCudaInvalidContext};
  return stack.back();
}

std::shared_ptr<Context> live_context() {
  std::shared_ptr<Context> context = current_context();
  if (const abi::CUresult code = context->lost; code != abi::kCudaSuccess) throw Refusal{code};
  return context;
}

std::shared_ptr<Stream> find_stream(abi::CUstream stream) {
  std::shared_ptr<Context> context = live_context();
  // The stream handles 0, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD all name the default stream
  // here.
  if (reinterpret_cast<std::uintptr_t>(stream) <= 2) {
    std::lock_guard lock(context->mutex);
    if (context->default_stream == nullptr) {
      context->default_stream = std::make_shared<Stream>(context, Stream::Kind::kDefault, 0);
    }
    return context->default_stream;
  }
  std::shared_ptr<Stream> found = state().streams.find(stream);
  if (found == nullptr || found->context() != context) throw Refusal{abi::kCudaInvalidHandle};
  return found;
}

std::shared_ptr<Event> find_event(abi::CUevent event) {
  live_context();
  std::shared_ptr<Event> found = state().events.find(event);
  if (found == nullptr) throw Refusal{abi::kCudaInvalidHandle};
  return found;
}

ItemPointer marker_of(const Event& event) {
  std::lock_guard lock(event.mutex);
  return event.marker;
}

std::shared_ptr<Function> find_function(abi::CUfunction function) {
  std::shared_ptr<Function> found = state().functions.find(function);
  if (found == nullptr) found = function_of_kernel(function);
  if (found == nullptr) throw Refusal{abi::kCudaInvalidHandle};
  return found;
}

GlobalMemory* memory_at(std::uint64_t address) {
  for (const auto& device : state().devices) {
    GlobalMemory* const memory = device->made_memory();
    if (memory != nullptr && memory->contains(address)) return memory;
  }
  return host_memory_at(address);
}

GlobalMemory& memory_with(const Context& context, std::uint64_t address, std::size_t bytes) {
  GlobalMemory* memory = &context.device->memory();
  if (!memory->contains(address)) memory = memory_at(address);
  if (memory == nullptr || memory->find(address, bytes).end == 0) {
    throw Refusal{abi::kCudaInvalidValue};
  }
  return *memory;
}

namespace {

// Adds the allocations of pools to which cuMemPoolSetAccess gave the device access.
void add_granted(const Device& device, std::vector<PeerMemory>& memories) {
  State& all = state();
  if (!all.pools_are_shared) return;
  std::lock_guard lock(all.mutex);
  for (const auto& [begin, pooled] : all.pooled) {
    const Device* const owner = pooled.pool->device;
    if (owner == nullptr || owner == &device) continue;
    std::lock_guard pool_lock(pooled.pool->mutex);
    const auto access = pooled.pool->access.find(device.ordinal());
    if (access == pooled.pool->access.end() || access->second == kAccessNone) continue;
    for (PeerMemory& memory : memories) {
      if (memory.ordinal == owner->ordinal()) memory.granted.push_back(begin);
    }
  }
}

}  // namespace

std::vector<PeerMemory> peer_memories(Context& context) {
  std::vector<PeerMemory> memories;
  for (const auto& device : state().devices) {
    const GlobalMemory* memory = device->made_memory();
    if (memory == nullptr || device.get() == context.device) continue;
    memories.push_back({memory, device->ordinal(), false, {}});
  }
  add_granted(*context.device, memories);
  add_host_memories(&memories);
  std::lock_guard lock(context.mutex);
  for (const std::weak_ptr<Context>& weak : context.peers) {
    const std::shared_ptr<Context> peer = weak.lock();
    if (peer == nullptr || peer->lost == abi::kCudaContextDestroyed) continue;
    for (PeerMemory& memory : memories) {
      memory.enabled |= memory.ordinal == peer->device->ordinal();
    }
  }
  return memories;
}

bool has_company(const Context& context) {
  return std::ranges::any_of(state().contexts.all(), [&](const std::shared_ptr<Context>& other) {
    return other->device != context.device && other->lost != abi::kCudaContextDestroyed;
  });
}

std::shared_ptr<Context> make_context(Device& device, bool primary) {
  auto context = std::make_shared<Context>();
  context->device = &device;
  context->primary = primary;
  context->id = ++state().last_context;
  state().contexts.add(context);
  return context;
}

// All work ends first, so that no item uses an object that is destroyed. Memory is released last,
// after all handles that lead to it are gone.
void destroy_context(const std::shared_ptr<Context>& context) {
  State& all = state();
  synchronize(*context);
  all.queue.forget(*context);
  all.contexts.remove(context->handle());
  context->lost = abi::kCudaContextDestroyed;
  const auto ours = [&](const auto& object) { return object.context == context; };
  all.functions.remove_if(ours);
  all.modules.remove_if(ours);
  all.events.remove_if(ours);
  all.graph_execs.remove_if(ours);
  all.streams.remove_if([&](const Stream& stream) { return stream.context() == context; });
  std::map<std::uint64_t, std::uint64_t> allocations;
  std::unique_ptr<DeviceHeap> heap;
  {
    std::lock_guard lock(context->mutex);
    heap = std::move(context->heap);
    context->default_stream = nullptr;
    context->retired.clear();
    allocations.swap(context->allocations);
  }
  const auto alone = all.queue.alone();
  for (const auto& [address, bytes] : allocations) release_allocation(address);
  heap.reset();
}

abi::CUresult finish(const Context& context) {
  state().queue.finish_all(context);
  return context.lost;
}

void observe(const ItemPointer& item) {
  if (item != nullptr) state().detector.order.observe(*item->operation);
}

abi::CUresult synchronize(const Stream& stream) {
  const std::vector<ItemPointer> tails = stream.tails();
  for (const ItemPointer& tail : tails) {
    state().queue.finish(tail);
    observe(tail);
  }
  const abi::CUresult lost = stream.context()->lost;
  if (lost != abi::kCudaSuccess) return lost;
  return stream.take_refusal(tails) ? abi::kCudaOutOfMemory : lost;
}

abi::CUresult synchronize(Context& context) {
  // Operations stay in the list until they were observed. Otherwise another thread that
  // synchronises at the same time could return before they count as observed.
  std::map<Chain*, OperationPointer> latest;
  std::vector<std::shared_ptr<Stream>> streams = state().streams.all();
  std::erase_if(streams, [&](const auto& stream) { return stream->context().get() != &context; });
  {
    std::lock_guard lock(context.mutex);
    latest = context.latest;
    if (context.default_stream != nullptr) streams.push_back(context.default_stream);
  }
  state().queue.finish_all(context);
  for (const auto& [chain, operation] : latest) {
    // null if it was never queued
    if (operation != nullptr) state().detector.order.observe(*operation);
  }
  bool refused = false;
  for (const std::shared_ptr<Stream>& stream : streams) refused |= stream->take_refusal({});
  std::lock_guard lock(context.mutex);
  for (const auto& [chain, operation] : latest) {
    const auto found = context.latest.find(chain);
    if (found != context.latest.end() && found->second == operation) context.latest.erase(found);
  }
  if (context.lost != abi::kCudaSuccess) return context.lost;
  return refused ? abi::kCudaOutOfMemory : abi::kCudaSuccess;
}

bool alone_between_devices(const Stream& stream, const GlobalMemory& to, const GlobalMemory& from) {
  const bool between = &to != &from && to.kind() == GlobalMemory::Kind::kDevice &&
                       from.kind() == GlobalMemory::Kind::kDevice;
  if (!between || stream.kind() != Stream::Kind::kDefault) return false;
  for (const auto& context : state().contexts.all()) {
    const GlobalMemory* const memory = context->device->made_memory();
    if (memory == &to || memory == &from) synchronize(*context);
  }
  return true;
}

int& capture_mode() {
  ANNULUS_THREAD_LOCAL int mode = abi::kCaptureGlobal;
  return mode;
}

void refuse_under_capture() {
  if (state().global_captures > 0 && capture_mode() == abi::kCaptureGlobal)
    throw Refusal{abi::kCudaCaptureUnsupported};
}

}  // namespace annulus::simulator::driver
