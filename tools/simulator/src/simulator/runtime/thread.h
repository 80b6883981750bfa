#ifndef ANNULUS_SIMULATOR_RUNTIME_THREAD_H_
#define ANNULUS_SIMULATOR_RUNTIME_THREAD_H_

// The runtime's state of each thread of the program, and the primary contexts of the devices. The
// runtime retains a context when a thread first needs it.

#include <array>
#include <cstddef>

#include "simulator/runtime/driver.h"

namespace annulus::simulator::runtime {

// The configuration of kernel<<<...>>>, between the two calls that nvcc makes of it.
struct Configuration {
  Dim3 grid;
  Dim3 block;
  std::size_t shared_bytes;
  CUstream stream;
};

struct Thread {
  int device = 0;             // set by cudaSetDevice
  CUcontext bound = nullptr;  // the primary context that the runtime made current on this thread
  unsigned generation = 0;    // the device's generation at that time
  Error last_error = cudaSuccess;
  bool default_stream_of_thread = false;  // true during a function with the ending _ptsz or _ptds
  // Configurations between their two calls, the newest last. There are several if a launch is among
  // the arguments of another one.
  std::array<Configuration, 4> configurations = {};
  std::size_t configuration_count = 0;
};
Thread& thread();

// The context for a call of this thread. It is the current context, or the primary context of the
// thread's device, which becomes current. Throws Refusal.
CUcontext enter();

// The primary context of a device, retained once. Throws Refusal.
CUcontext primary_context(int device);

// Makes the device the thread's device, and its primary context the current one.
void choose(int device);

// Destroys everything that the process has on this thread's device.
void reset_device();

// The stream to pass to the driver. A null stream is the thread's default stream, in functions for
// that.
CUstream resolve(CUstream stream);
template <typename T>
T resolve(T other) {
  return other;
}

// Whether a code means that the context is lost, so that cudaGetLastError does not clear it.
bool is_sticky(Error code);

// Runs the body of an exported function. An exception becomes its code, which also becomes this
// thread's last error.
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
