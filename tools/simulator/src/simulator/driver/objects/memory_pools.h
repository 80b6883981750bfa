#ifndef ANNULUS_SIMULATOR_DRIVER_OBJECTS_MEMORY_POOLS_H_
#define ANNULUS_SIMULATOR_DRIVER_OBJECTS_MEMORY_POOLS_H_

// Allocations of contexts and of pools, and their release.

#include "simulator/driver/objects/state.h"

namespace annulus::simulator::driver {

// Allocates from the pool for the context. Returns 0 if there is no room.
std::uint64_t allocate_from(const std::shared_ptr<MemoryPool>& pool,
                            const std::shared_ptr<Context>& context, std::size_t bytes);

// Releases an allocation of a device, of managed memory or of a pool. Returns false if there is
// none at the address.
bool release_allocation(std::uint64_t address, std::shared_ptr<const Operation> by = nullptr);

// The pool of the allocation that begins at the address, or null.
std::shared_ptr<MemoryPool> pool_of(std::uint64_t begin);

}  // namespace annulus::simulator::driver

#endif  // ANNULUS_SIMULATOR_DRIVER_OBJECTS_MEMORY_POOLS_H_
