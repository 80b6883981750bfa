#ifndef ANNULUS_SIMULATOR_DRIVER_OBJECTS_ACCESSES_H_
#define ANNULUS_SIMULATOR_DRIVER_OBJECTS_ACCESSES_H_

// Copies, fills and frees call these functions before they touch a byte, so that the search for
// races knows of them. note() is in driver/for_libraries.h. They throw Fault, and do nothing where
// the operation is not checked.

#include "simulator/driver/objects/state.h"

namespace annulus::simulator::driver {

// `operation` reads or writes bytes of host memory. Only what is page-locked or managed is looked
// at.
void note_host(const OperationPointer& operation, AccessKind kind, const void* begin,
               std::size_t bytes);

// Whether all of the bytes are in one block of page-locked or managed memory.
bool is_page_locked(const void* begin, std::size_t bytes);

// The host frees device memory. Returns the fault where an operation may still use it, else null.
// Requires: Queue::alone().
std::unique_ptr<Fault> freed_by_host(const GlobalMemory& memory, std::uint64_t pointer,
                                     const char* call);

}  // namespace annulus::simulator::driver

#endif  // ANNULUS_SIMULATOR_DRIVER_OBJECTS_ACCESSES_H_
