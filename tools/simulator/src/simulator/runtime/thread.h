#ifndef ANNULUS_SIMULATOR_RUNTIME_THREAD_H_
#define ANNULUS_SIMULATOR_RUNTIME_THREAD_H_

// What the runtime keeps for each thread of the program, and the primary contexts of the devices,
// which it retains when a thread first needs them.

#include <array>
#include <cstddef>

#include "simulator/runtime/driver.h"

namespace annulus::simulator::runtime {

// What kernel<<<...>>> was given, between the two calls that nvcc makes of it.
struct Configuration {
  Dim3 grid;
  Dim3 block;
  std::size_t shared_bytes;
  CUstream stream;
};

struct Thread {
  int device = 0;             // that of cudaSetDevice
  CUcontext bound = nullptr;  // the primary context that the runtime made current here
  unsigned generation = 0;    // that of the device at that time
  Error last_error = cudaSuccess;
  bool default_stream_of_thread = false;  // in a function with the ending _ptsz or _ptds
  // Those between their two calls, the newest last: a launch among the arguments of another.
  std::array<Configuration, 4> configurations = {};
  std::size_t configuration_count = 0;
};
Thread& thread();

// The context for a call of this thread: the current one, or the primary context of its device,
// which is made current. Throws Refusal.
CUcontext enter();

// The primary context of a device, retained once. Throws Refusal.
CUcontext primary_context(int device);

// Makes the device that of this thread, and its primary context the current one.
void choose(int device);

// Destroys what the process has on this thread's device.
void reset_device();

// The stream that the driver is told: a null stream is the thread's in functions for that.
CUstream resolve(CUstream stream);
template <typename T>
T resolve(T other) {
  return other;
}

// Whether a code means that the context is lost, so that cudaGetLastError does not clear it.
bool is_sticky(Error code);

// The body of an exported function: what it throws becomes its code, which is this thread's last
// error too.
Error finish(const char* symbol, Error code);
Error caught(const char* symbol);
template <typename Body>
Error serve(const char* symbol, Body body) noexcept {
  try {
    return finish(symbol, body());
  } catch (...) {
    return finish(symbol, caught(symbol));
  }
}

}  // namespace annulus::simulator::runtime

#endif  // ANNULUS_SIMULATOR_RUNTIME_THREAD_H_
