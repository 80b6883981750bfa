// Memory: allocation, copies, fills. Bounds are checked when a copy is queued, as in CUDA. Copies
// from and to pageable host memory have ended on return, which CUDA promises for their host side.

#include <cstdlib>
#include <limits>
#include <memory>
#include <new>

#include "base/math.h"
#include "simulator/driver/accesses.h"
#include "simulator/driver/capture.h"
#include "simulator/driver/entries.h"
#include "simulator/driver/state.h"

namespace annulus::simulator::driver::entry {
namespace {

constexpr std::size_t kHostAlignment = 4096;

enum class Wait { kNo, kYes };

// What a call returns that waited for the last item of a stream.
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
  const ItemPointer item =
      on->submit(make_work(wait == Wait::kYes ? "cuMemcpyHtoD" : "cuMemcpyHtoDAsync",
                           [&memory, to, from, bytes](const OperationPointer& operation) {
                             note(operation, AccessKind::kWrite, memory, to, bytes);
                             note_host(operation, AccessKind::kRead, from, bytes);
                             memory.write(to, from, bytes);
                           }));
  if (wait == Wait::kNo && is_page_locked(from, bytes)) return kCudaSuccess;
  state().queue.finish(item);
  // After an asynchronous copy from pageable memory the host knows only that its source was read.
  if (wait == Wait::kYes) observe(item);
  return outcome(*on, item);
}

CUresult to_host(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream, Wait wait) {
  const auto on = find_stream(stream);
  if (bytes == 0) return kCudaSuccess;
  if (to == nullptr) return kCudaInvalidValue;
  const GlobalMemory& memory = memory_with(*on->context(), from, bytes);
  const ItemPointer item =
      on->submit(make_work(wait == Wait::kYes ? "cuMemcpyDtoH" : "cuMemcpyDtoHAsync",
                           [&memory, to, from, bytes](const OperationPointer& operation) {
                             note(operation, AccessKind::kRead, memory, from, bytes);
                             note_host(operation, AccessKind::kWrite, to, bytes);
                             memory.read(to, from, bytes);
                           }));
  if (wait == Wait::kNo && is_page_locked(to, bytes)) return kCudaSuccess;
  state().queue.finish(item);
  observe(item);
  return outcome(*on, item);
}

// A call that frees goes on where there is no memory to find, or to tell, a fault of the program.
template <typename Find>
std::unique_ptr<Fault> unless_out_of_memory(const Find& find) {
  try {
    return find();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

bool forget_allocation(Context& context, CUdeviceptr pointer) {
  std::lock_guard lock(context.mutex);
  return context.allocations.erase(pointer) != 0;
}

CUresult fill(CUdeviceptr to, std::uint32_t value, int unit, std::size_t count, CUstream stream) {
  const auto on = find_stream(stream);
  if (count == 0) return kCudaSuccess;
  const auto unit_bytes = static_cast<std::size_t>(unit);
  if (to % unit_bytes != 0) return kCudaInvalidValue;
  if (count > std::numeric_limits<std::size_t>::max() / unit_bytes) return kCudaInvalidValue;
  GlobalMemory& memory = memory_with(*on->context(), to, count * unit_bytes);
  const char* const call = unit == 1   ? "cuMemsetD8Async"
                           : unit == 2 ? "cuMemsetD16Async"
                                       : "cuMemsetD32Async";
  on->submit(make_work(
      call, [&memory, to, value, unit, count, unit_bytes](const OperationPointer& operation) {
        note(operation, AccessKind::kWrite, memory, to, count * unit_bytes);
        memory.fill(to, value, unit, count);
      }));
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

// Waits for all work, as CUDA does today without promising it, so in the strict reading the program
// has to have waited itself. Null is allowed; a second free, or a pointer into the middle, is
// refused. Memory is freed even in a context that a fault has broken; a GPU's driver would keep it
// to the end of the process, which would gain nothing here.
CUresult mem_free(CUdeviceptr pointer) {
  return guarded([&]() -> CUresult {
    const auto context = current_context();
    refuse_under_capture();
    if (pointer == 0) return context->lost;
    // Once all work has run, its accesses are recorded, so a use that nothing orders with the free
    // is found with every seed.
    state().queue.finish_linked(*context);
    if (!forget_allocation(*context, pointer)) return kCudaInvalidValue;
    GlobalMemory& memory = context->device->memory();
    const auto alone = state().queue.alone();
    const bool strict = context->device->options().reading == 0;
    const auto fault = unless_out_of_memory(
        [&] { return strict ? freed_by_host(memory, pointer, "cuMemFree") : nullptr; });
    memory.release(pointer);
    if (fault != nullptr && context->lost == kCudaSuccess) break_context(*context, *fault);
    return context->lost;
  });
}

// Pools (annulus/simulator.h). A block is removed as memory is freed, but without the wait: what
// the host has not seen end when it removes a block is the fault that is looked for.
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
    // Work that has not run yet finds the block gone when it does, which is a fault as well.
    GlobalMemory& memory = context->device->memory();
    const auto alone = state().queue.alone();
    const auto fault = freed_by_host(memory, pointer, "annulusSimulatorRemoveBlock");
    if (!memory.remove_block(pointer)) return kCudaInvalidValue;
    if (fault != nullptr && context->lost == kCudaSuccess) break_context(*context, *fault);
    return kCudaSuccess;
  });
}

// The memory may be used by work that comes after this point of the stream.
CUresult mem_alloc_async(CUdeviceptr* pointer, std::size_t bytes, CUstream stream) {
  return guarded([&]() -> CUresult {
    const auto on = find_stream(stream);
    refuse_capturing(*on);
    const CUresult code = mem_alloc(pointer, bytes);
    if (code != kCudaSuccess) return code;
    const GlobalMemory& memory = on->context()->device->memory();
    try {
      on->submit(make_work("cuMemAllocAsync",
                           [&memory, at = *pointer, bytes](const OperationPointer& operation) {
                             note(operation, AccessKind::kWrite, memory, at, bytes);
                           }));
    } catch (...) {
      mem_free(*pointer);
      throw;
    }
    return kCudaSuccess;
  });
}

// The memory is freed when the stream comes to this point.
CUresult mem_free_async(CUdeviceptr pointer, CUstream stream) {
  return guarded([&]() -> CUresult {
    const auto on = find_stream(stream);
    refuse_capturing(*on);
    const auto context = on->context();
    Work work = make_work("cuMemFreeAsync", [context, pointer](const OperationPointer& operation) {
      GlobalMemory& memory = context->device->memory();
      const auto record = memory.made_record(pointer);
      const auto fault = unless_out_of_memory([&] {
        return record == nullptr || !operation->checked ? nullptr
                                                        : record->in_use(operation.get(), nullptr);
      });
      memory.release(pointer, operation);
      if (fault != nullptr) report(*fault);
    });
    work.always = true;
    {
      std::lock_guard lock(context->mutex);
      if (!context->allocations.contains(pointer)) return kCudaInvalidValue;
    }
    on->submit(std::move(work));
    forget_allocation(*context, pointer);
    return kCudaSuccess;
  });
}

CUresult mem_alloc_host(void** pointer, std::size_t bytes) {
  return guarded([&]() -> CUresult {
    live_context();
    if (pointer == nullptr || bytes == 0) return kCudaInvalidValue;
    refuse_under_capture();
    if (bytes > std::numeric_limits<std::size_t>::max() - kHostAlignment) return kCudaOutOfMemory;
    void* block = std::aligned_alloc(kHostAlignment, base::round_up(bytes, kHostAlignment));
    if (block == nullptr) return kCudaOutOfMemory;
    State& all = state();
    try {
      std::lock_guard lock(all.mutex);
      all.host_blocks.emplace(static_cast<const char*>(block), HostBlock{bytes, nullptr});
    } catch (...) {
      std::free(block);
      throw;
    }
    *pointer = block;
    return kCudaSuccess;
  });
}

CUresult mem_free_host(void* pointer) {
  return guarded([&]() -> CUresult {
    const auto context = current_context();
    refuse_under_capture();
    if (pointer == nullptr) return context->lost;
    State& all = state();
    all.queue.finish_linked(*context);  // a queued copy may still use it
    HostBlock block;
    {
      std::lock_guard lock(all.mutex);
      const auto found = all.host_blocks.find(static_cast<const char*>(pointer));
      if (found == all.host_blocks.end()) return kCudaInvalidValue;
      block = std::move(found->second);
      all.host_blocks.erase(found);
    }
    const auto alone = all.queue.alone();
    const auto fault = unless_out_of_memory([&] {
      return block.record == nullptr ? nullptr : block.record->in_use(nullptr, "cuMemFreeHost");
    });
    std::free(pointer);
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
    // The two may be on different devices, as addresses are unique among all devices.
    GlobalMemory& target = memory_with(*on->context(), to, bytes);
    const GlobalMemory& source = memory_with(*on->context(), from, bytes);
    on->submit(make_work("cuMemcpyDtoDAsync",
                         [&target, &source, to, from, bytes](const OperationPointer& operation) {
                           note(operation, AccessKind::kRead, source, from, bytes);
                           note(operation, AccessKind::kWrite, target, to, bytes);
                           target.copy(to, source, from, bytes);
                         }));
    return kCudaSuccess;
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
