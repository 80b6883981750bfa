#ifndef ANNULUS_SIMULATOR_DRIVER_FOR_LIBRARIES_H_
#define ANNULUS_SIMULATOR_DRIVER_FOR_LIBRARIES_H_

// The part of the simulated driver that a library on top of it uses, such as the simulated NCCL:
// contexts and streams as opaque objects, work on streams, and device memory by its address. The
// functions of CUDA are in driver/entries/entries.h.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "abi/cuda_types.h"
#include "simulator/check/access_kind.h"
#include "simulator/check/operation.h"
#include "simulator/driver/objects/queue.h"
#include "simulator/fault/fault.h"
#include "simulator/machine/memory.h"

namespace annulus::simulator::driver {

struct Context;
class Stream;

// An entry of the driver, or of a library on top of it, throws Refusal, catches it at its end and
// returns the code.
struct Refusal {
  abi::CUresult code;
};

// Functions that find an object throw Refusal if there is no such object.

// The current context of this thread. If the context is lost, the function throws the code of the
// context.
std::shared_ptr<Context> live_context();
std::shared_ptr<Context> retain_primary_context(abi::CUdevice device);
abi::CUdevice device_of(const Context& context);
// Makes the fault the state and the message of the context. A race also becomes the state and the
// message of the context of the other operation.
void break_context(Context& context, const Fault& fault);

std::shared_ptr<Stream> find_stream(const std::shared_ptr<Context>& context, abi::CUstream stream);
std::string text_of(const Stream& stream);    // "stream 2 of device 0 (sim:sm_80:0)"
ItemPointer last_item(const Stream& stream);  // the work that was submitted last, or null
ItemPointer submit(Stream& stream, Work work);

// driver/objects/queue.h describes these functions under the same names (class Queue).
bool done(const ItemPointer& item);
void finish(const ItemPointer& item);
// Wakes the threads that wait for a meeting (driver/objects/queue.h). It is called when a message
// arrives, from this process or from another one.
void notify_meetings();
// Runs one item of the context, if one may run. Programs that poll make progress by it.
void step(const Context& context);
// Links the context with all contexts of a device.
void link_with_device(const Context& context, abi::CUdevice device);
void serve(const Context& context, const std::atomic<bool>& ended);

// The memory that holds the address, of a device or of the host, or null. Addresses are unique
// among all memories.
GlobalMemory* memory_at(std::uint64_t address);
// Records that `operation` reads or writes bytes of device memory. It is called before the first
// byte is touched, so that the search for races includes the access. It throws Fault, and does
// nothing if the operation is not checked.
void note(const OperationPointer& operation, AccessKind kind, const GlobalMemory& memory,
          std::uint64_t address, std::size_t bytes);

}  // namespace annulus::simulator::driver

#endif  // ANNULUS_SIMULATOR_DRIVER_FOR_LIBRARIES_H_
