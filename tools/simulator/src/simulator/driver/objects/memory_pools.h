#ifndef ANNULUS_SIMULATOR_DRIVER_OBJECTS_MEMORY_POOLS_H_
#define ANNULUS_SIMULATOR_DRIVER_OBJECTS_MEMORY_POOLS_H_

// Allocations, of contexts and of pools, and their release wherever they are.

#include "simulator/driver/objects/state.h"

namespace annulus::simulator::driver {

// Allocates for the context from the pool; 0 where there is no room.
std::uint64_t allocate_from(const std::shared_ptr<MemoryPool>& pool,
                            const std::shared_ptr<Context>& context, std::size_t bytes);

// Releases an allocation of a device, of managed memory or of a pool. False: there is none.
bool release_allocation(std::uint64_t address, std::shared_ptr<const Operation> by = nullptr);

// The pool that the allocation which begins there is from, or null.
std::shared_ptr<MemoryPool> pool_of(std::uint64_t begin);

}  // namespace annulus::simulator::driver

#endif  // ANNULUS_SIMULATOR_DRIVER_OBJECTS_MEMORY_POOLS_H_
