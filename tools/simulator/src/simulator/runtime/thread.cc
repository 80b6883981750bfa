#include "simulator/runtime/thread.h"

#include <map>
#include <mutex>
#include <new>
#include <string>
#include <type_traits>

#include "base/of_thread.h"
#include "simulator/runtime/images.h"
#include "simulator/runtime/log.h"

namespace annulus::simulator::runtime {
namespace {

const auto kStreamPerThread = reinterpret_cast<CUstream>(std::uintptr_t{2});

struct Primary {
  CUcontext context = nullptr;
  unsigned generation = 1;  // rises when the device is reset
};

// Never destroyed, because exit handlers of the program run later than those of this library.
struct Primaries {
  std::mutex mutex;
  std::map<int, Primary> of_device;
};
Primaries& primaries() {
  static auto* const all = new Primaries;
  return *all;
}

// Requires: the mutex is held.
Primary& retained(int device) {
  Primary& primary = primaries().of_device[device];
  if (primary.context != nullptr) return primary;
  need(driver().primary_ctx_retain(&primary.context, device));
  return primary;
}

}  // namespace

Thread& thread() {
  // Without a destructor the object needs no allocation, and destructors of static objects can use
  // it too.
  static_assert(std::is_trivially_destructible_v<Thread>);
  ANNULUS_THREAD_LOCAL Thread mine;
  return mine;
}

CUcontext primary_context(int device) {
  std::lock_guard lock(primaries().mutex);
  return retained(device).context;
}

void choose(int device) {
  Thread& mine = thread();
  {
    std::lock_guard lock(primaries().mutex);
    const Primary& primary = retained(device);
    // An error from a context that another thread has reset no longer counts.
    if (primary.generation != mine.generation && is_sticky(mine.last_error)) {
      mine.last_error = cudaSuccess;
    }
    mine.bound = primary.context;
    mine.generation = primary.generation;
  }
  need(driver().ctx_set_current(mine.bound));
  mine.device = device;
}

CUcontext enter() {
  CUcontext current = nullptr;
  need(driver().ctx_get_current(&current));
  Thread& mine = thread();
  if (current != nullptr && current == mine.bound) {
    // Another thread may have reset the device.
    std::lock_guard lock(primaries().mutex);
    if (primaries().of_device[mine.device].generation != mine.generation) current = nullptr;
  }
  if (current != nullptr) return current;
  choose(mine.device);
  return mine.bound;
}

void reset_device() {
  const CUcontext context = enter();
  CUdevice device = 0;
  need(driver().ctx_get_device(&device));
  forget_modules(context);
  need(driver().ctx_set_current(nullptr));
  std::lock_guard lock(primaries().mutex);
  Primary& primary = primaries().of_device[device];
  const bool held = primary.context != nullptr;
  primary.context = nullptr;
  ++primary.generation;
  thread().bound = nullptr;
  need(driver().primary_ctx_reset(device));
  if (held) need(driver().primary_ctx_release(device));
  thread().last_error = cudaSuccess;
}

CUstream resolve(CUstream stream) {
  return stream == nullptr && thread().default_stream_of_thread ? kStreamPerThread : stream;
}

bool is_sticky(Error code) {
  switch (code) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
      return true;
    default:
      return false;
  }
}

Error caught(const char* symbol) {
  try {
    throw;
  } catch (const Refusal& refusal) {
    return refusal.code;
  } catch (const Missing& missing) {
    write_once(symbol,
               std::string(symbol) + " is not supported: the driver has no " + missing.symbol);
    return cudaErrorNotSupported;
  } catch (const std::bad_alloc&) {
    return cudaErrorMemoryAllocation;
  } catch (...) {
    return cudaErrorUnknown;
  }
}

Error finish(const char* symbol, Error code) {
  if (code == cudaErrorNotSupported) write_once(symbol, std::string(symbol) + " is not supported");
  if (code != cudaSuccess) thread().last_error = code;
  return code;
}

}  // namespace annulus::simulator::runtime
