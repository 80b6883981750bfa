#ifndef ANNULUS_SIMULATOR_DRIVER_ACCESSES_H_
#define ANNULUS_SIMULATOR_DRIVER_ACCESSES_H_

// What copies, fills and frees tell the search for races; they call it before they touch a byte.
// All of it throws Fault, and does nothing where the operation is not checked.

#include "simulator/driver/state.h"

namespace annulus::simulator::driver {

// `operation` reads or writes bytes of device memory.
void note(const OperationPointer& operation, AccessKind kind, const GlobalMemory& memory,
          std::uint64_t address, std::size_t bytes);

// The same for host memory; of memory that is not page-locked nothing is known.
void note_host(const OperationPointer& operation, AccessKind kind, const void* begin,
               std::size_t bytes);

// Whether all of it is page-locked memory from mem_alloc_host.
bool is_page_locked(const void* begin, std::size_t bytes);

// The host frees device memory: the fault where an operation may still use it. Requires:
// Queue::alone().
std::unique_ptr<Fault> freed_by_host(const GlobalMemory& memory, std::uint64_t pointer,
                                     const char* call);

}  // namespace annulus::simulator::driver

#endif  // ANNULUS_SIMULATOR_DRIVER_ACCESSES_H_
