#ifndef ANNULUS_SIMULATOR_DRIVER_OBJECTS_ACCESSES_H_
#define ANNULUS_SIMULATOR_DRIVER_OBJECTS_ACCESSES_H_

// Copies, fills and frees call these functions before they touch a byte, so that the search for
// races includes their accesses. note() is in driver/for_libraries.h. The functions throw Fault.
// They do nothing if the operation is not checked.

#include "simulator/driver/objects/state.h"

namespace annulus::simulator::driver {

// Records that `operation` reads or writes bytes of host memory. Only page-locked and managed
// memory is checked.
void note_host(const OperationPointer& operation, AccessKind kind, const void* begin,
               std::size_t bytes);

// Whether all of the bytes are in one block of page-locked or managed memory.
bool is_page_locked(const void* begin, std::size_t bytes);

// Checks that the host may free device memory. Returns a fault if an operation may still use the
// memory, else null. Requires: Queue::alone().
std::unique_ptr<Fault> freed_by_host(const GlobalMemory& memory, std::uint64_t pointer,
                                     const char* call);

}  // namespace annulus::simulator::driver

#endif  // ANNULUS_SIMULATOR_DRIVER_OBJECTS_ACCESSES_H_
