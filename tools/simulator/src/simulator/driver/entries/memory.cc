// Memory: allocation, copies, fills. As in CUDA, the bounds of a copy are checked when the copy is
// queued. A copy from or to pageable host memory has ended when its call returns, which is what
// CUDA promises for its host side.

#include <memory>
#include <new>

#include "simulator/driver/entries/entries.h"
#include "simulator/driver/objects/accesses.h"
#include "simulator/driver/objects/capture.h"
#include "simulator/driver/objects/copies.h"
#include "simulator/driver/objects/graph.h"
#include "simulator/driver/objects/host_memory.h"
#include "simulator/driver/objects/memory_pools.h"
#include "simulator/driver/objects/state.h"

namespace annulus::simulator::driver::entry {
namespace {

enum class Wait { kNo, kYes };

// The code of a call that has waited for the last item of a stream.
CUresult outcome(const Stream& on, const ItemPointer& item) {
  if (on.context()->lost != kCudaSuccess) return on.context()->lost;
  return on.take_refusal({&item, 1}) ? kCudaOutOfMemory : kCudaSuccess;
}

CUresult to_device(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream,
                   Wait wait) {
  const auto on = find_stream(stream);
  if (bytes == 0) return kCudaSuccess;
  if (from == nullptr) return kCudaInvalidValue;
  GlobalMemory& memory = memory_with(*on->context(), to, bytes);
  Work work = make_work(wait == Wait::kYes ? "cuMemcpyHtoD" : "cuMemcpyHtoDAsync",
                        [&memory, to, from, bytes](const OperationPointer& operation) {
                          note(operation, AccessKind::kWrite, memory, to, bytes);
                          note_host(operation, AccessKind::kRead, from, bytes);
                          memory.write(to, from, bytes);
                        });
  const auto source = reinterpret_cast<std::uint64_t>(from);
  const ItemPointer item = on->submit(described(
      std::move(work), on->context(), bytes_copy(to, kMemoryDevice, source, kMemoryHost, bytes)));
  if (wait == Wait::kNo && is_page_locked(from, bytes)) return kCudaSuccess;
  state().queue.finish(item);
  // After an asynchronous copy from pageable memory, the host has only observed that the source was
  // read.
  if (wait == Wait::kYes) observe(item);
  return outcome(*on, item);
}

CUresult to_host(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream, Wait wait) {
  const auto on = find_stream(stream);
  if (bytes == 0) return kCudaSuccess;
  if (to == nullptr) return kCudaInvalidValue;
  const GlobalMemory& memory = memory_with(*on->context(), from, bytes);
  Work work = make_work(wait == Wait::kYes ? "cuMemcpyDtoH" : "cuMemcpyDtoHAsync",
                        [&memory, to, from, bytes](const OperationPointer& operation) {
                          note(operation, AccessKind::kRead, memory, from, bytes);
                          note_host(operation, AccessKind::kWrite, to, bytes);
                          memory.read(to, from, bytes);
                        });
  const auto target = reinterpret_cast<std::uint64_t>(to);
  const ItemPointer item = on->submit(described(
      std::move(work), on->context(), bytes_copy(target, kMemoryHost, from, kMemoryDevice, bytes)));
  if (wait == Wait::kNo && is_page_locked(to, bytes)) return kCudaSuccess;
  state().queue.finish(item);
  observe(item);
  return outcome(*on, item);
}

// A call that frees memory continues even if there is no memory to find or report a fault of the
// program.
template <typename Find>
std::unique_ptr<Fault> unless_out_of_memory(const Find& find) {
  try {
    return find();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

// The context that allocated the memory, or null. Memory may be freed in any current context.
std::shared_ptr<Context> owner_of(const std::shared_ptr<Context>& first, CUdeviceptr pointer) {
  const auto owns = [&](Context& context) {
    std::lock_guard lock(context.mutex);
    return context.allocations.contains(pointer);
  };
  if (owns(*first)) return first;
  for (const auto& context : state().contexts.all()) {
    if (owns(*context)) return context;
  }
  return nullptr;
}

bool forget_allocation(Context& context, CUdeviceptr pointer) {
  std::lock_guard lock(context.mutex);
  return context.allocations.erase(pointer) != 0;
}

CUresult fill(CUdeviceptr to, std::uint32_t value, int unit, std::size_t count, CUstream stream) {
  const auto on = find_stream(stream);
  const char* const call = unit == 1   ? "cuMemsetD8Async"
                           : unit == 2 ? "cuMemsetD16Async"
                                       : "cuMemsetD32Async";
  const Fill fill{.to = to, .pitch = 0, .value = value, .unit = unit, .width = count, .height = 1};
  if (count != 0) on->submit(described(fill_work(call, *on->context(), fill), on->context(), fill));
  return kCudaSuccess;
}

}  // namespace

CUresult mem_get_info(std::size_t* free_bytes, std::size_t* total_bytes) {
  return guarded([&]() -> CUresult {
    const auto context = live_context();
    if (free_bytes == nullptr || total_bytes == nullptr) return kCudaInvalidValue;
    const GlobalMemory& memory = context->device->memory();
    *total_bytes = memory.capacity();
    *free_bytes = memory.capacity() - memory.used();
    return kCudaSuccess;
  });
}

CUresult mem_alloc(CUdeviceptr* pointer, std::size_t bytes) {
  return guarded([&]() -> CUresult {
    const auto context = live_context();
    if (pointer == nullptr || bytes == 0) return kCudaInvalidValue;
    refuse_under_capture();
    GlobalMemory& memory = context->device->memory();
    const std::uint64_t address = memory.allocate(bytes);
    if (address == 0) return kCudaOutOfMemory;
    try {
      std::lock_guard lock(context->mutex);
      context->allocations.emplace(address, bytes);
    } catch (...) {
      memory.release(address);
      throw;
    }
    *pointer = address;
    return kCudaSuccess;
  });
}

// Waits for all work. CUDA does so today but does not promise it, so under `reading=strict` the
// program must have waited itself. Null is allowed. A second free, or a pointer into the middle, is
// refused. Memory is freed even in a context that a fault has broken. A GPU's driver would keep it
// to the end of the process, which would have no use here.
CUresult mem_free(CUdeviceptr pointer) {
  return guarded([&]() -> CUresult {
    const auto context = current_context();
    refuse_under_capture();
    if (pointer == 0) return context->lost;
    // All work has run at this point and its accesses are recorded. So a use that no edge orders
    // before the free is found with every seed.
    const auto owner = owner_of(context, pointer);
    if (owner == nullptr) return kCudaInvalidValue;
    state().queue.finish_linked(*owner);
    if (!forget_allocation(*owner, pointer)) return kCudaInvalidValue;
    const auto alone = state().queue.alone();
    const GlobalMemory* const memory = memory_at(pointer);
    const bool looks = context->device->options().reading == 0 && memory != nullptr;
    const auto fault = unless_out_of_memory(
        [&] { return looks ? freed_by_host(*memory, pointer, "cuMemFree") : nullptr; });
    release_allocation(pointer);
    if (fault != nullptr && context->lost == kCudaSuccess) break_context(*context, *fault);
    return context->lost;
  });
}

// Pools (annulus/simulator.h). A block is removed like freed memory, but without the wait. It is a
// fault if the block is removed before the host has observed the end of all work that uses it.
CUresult simulator_set_pool(CUdeviceptr pointer, std::size_t bytes, int on) {
  return guarded([&]() -> CUresult {
    GlobalMemory& memory = current_context()->device->memory();
    const auto alone = state().queue.alone();
    return memory.set_pool(pointer, bytes, on != 0) ? kCudaSuccess : kCudaInvalidValue;
  });
}

CUresult simulator_add_block(CUdeviceptr pointer, std::size_t bytes) {
  return guarded([&]() -> CUresult {
    GlobalMemory& memory = current_context()->device->memory();
    const auto alone = state().queue.alone();
    return memory.add_block(pointer, bytes) ? kCudaSuccess : kCudaInvalidValue;
  });
}

CUresult simulator_remove_block(CUdeviceptr pointer) {
  return guarded([&]() -> CUresult {
    const auto context = current_context();
    // Work that runs later does not find the block, which is a fault as well.
    GlobalMemory& memory = context->device->memory();
    const auto alone = state().queue.alone();
    const auto fault = freed_by_host(memory, pointer, "annulusSimulatorRemoveBlock");
    if (!memory.remove_block(pointer)) return kCudaInvalidValue;
    if (fault != nullptr && context->lost == kCudaSuccess) break_context(*context, *fault);
    return kCudaSuccess;
  });
}

CUresult mem_alloc_async(CUdeviceptr* pointer, std::size_t bytes, CUstream stream) {
  return guarded([&]() -> CUresult {
    const auto context = live_context();
    return mem_alloc_from_pool_async(pointer, bytes, context->device->pool()->handle(), stream);
  });
}

// The memory is freed when the stream reaches this point.
CUresult mem_free_async(CUdeviceptr pointer, CUstream stream) {
  return guarded([&]() -> CUresult {
    const auto on = find_stream(stream);
    refuse_capturing(*on);
    const auto context = on->context();
    Work work = make_work("cuMemFreeAsync", [context, pointer](const OperationPointer& operation) {
      const GlobalMemory* const memory = memory_at(pointer);
      const auto record = memory == nullptr ? nullptr : memory->made_record(pointer);
      const auto fault = unless_out_of_memory([&] {
        return record == nullptr || !operation->checked ? nullptr
                                                        : record->in_use(operation.get(), nullptr);
      });
      release_allocation(pointer, operation);
      if (fault != nullptr) report(*fault);
    });
    work.always = true;
    const auto owner = owner_of(context, pointer);
    if (owner == nullptr) return kCudaInvalidValue;
    on->submit(std::move(work));
    forget_allocation(*owner, pointer);
    return kCudaSuccess;
  });
}

CUresult mem_alloc_host(void** pointer, std::size_t bytes) {
  return mem_host_alloc(pointer, bytes, 0);
}

CUresult mem_free_host(void* pointer) {
  return guarded([&]() -> CUresult {
    const auto context = current_context();
    refuse_under_capture();
    if (pointer == nullptr) return context->lost;
    State& all = state();
    all.queue.finish_linked(*context);  // a queued copy may still use it
    const auto address = reinterpret_cast<std::uint64_t>(pointer);
    const auto block = remove_host_block(address, {HostBlock::Kind::kAllocated});
    if (!block) return kCudaInvalidValue;
    const auto alone = all.queue.alone();
    const auto fault = unless_out_of_memory(
        [&] { return freed_by_host(*block->memory, address, "cuMemFreeHost"); });
    block->memory->release(address);
    if (fault != nullptr && context->lost == kCudaSuccess) break_context(*context, *fault);
    return context->lost;
  });
}

CUresult memcpy_htod(CUdeviceptr to, const void* from, std::size_t bytes) {
  return guarded([&] {
    refuse_under_capture();
    return to_device(to, from, bytes, nullptr, Wait::kYes);
  });
}

CUresult memcpy_dtoh(void* to, CUdeviceptr from, std::size_t bytes) {
  return guarded([&] {
    refuse_under_capture();
    return to_host(to, from, bytes, nullptr, Wait::kYes);
  });
}

CUresult memcpy_htod_async(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream) {
  return guarded([&] { return to_device(to, from, bytes, stream, Wait::kNo); });
}

CUresult memcpy_dtoh_async(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return guarded([&] { return to_host(to, from, bytes, stream, Wait::kNo); });
}

CUresult memcpy_dtod_async(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return guarded([&]() -> CUresult {
    const auto on = find_stream(stream);
    if (bytes == 0) return kCudaSuccess;
    // The two addresses may be on different devices, because addresses are unique among all
    // devices.
    GlobalMemory& target = memory_with(*on->context(), to, bytes);
    const GlobalMemory& source = memory_with(*on->context(), from, bytes);
    Work work = make_work("cuMemcpyDtoDAsync",
                          [&target, &source, to, from, bytes](const OperationPointer& operation) {
                            note(operation, AccessKind::kRead, source, from, bytes);
                            note(operation, AccessKind::kWrite, target, to, bytes);
                            target.copy(to, source, from, bytes);
                          });
    const bool alone = alone_between_devices(*on, target, source);
    const ItemPointer item = on->submit(described(
        std::move(work), on->context(), bytes_copy(to, kMemoryDevice, from, kMemoryDevice, bytes)));
    if (!alone) return kCudaSuccess;
    state().queue.finish(item);
    observe(item);
    return outcome(*on, item);
  });
}

CUresult memset_d8_async(CUdeviceptr to, unsigned char value, std::size_t count, CUstream stream) {
  return guarded([&] { return fill(to, value, 1, count, stream); });
}

CUresult memset_d16_async(CUdeviceptr to, unsigned short value, std::size_t count,
                          CUstream stream) {
  return guarded([&] { return fill(to, value, 2, count, stream); });
}

CUresult memset_d32_async(CUdeviceptr to, unsigned value, std::size_t count, CUstream stream) {
  return guarded([&] { return fill(to, value, 4, count, stream); });
}

}  // namespace annulus::simulator::driver::entry
