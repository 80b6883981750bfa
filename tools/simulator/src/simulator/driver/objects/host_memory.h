#ifndef ANNULUS_SIMULATOR_DRIVER_OBJECTS_HOST_MEMORY_H_
#define ANNULUS_SIMULATOR_DRIVER_OBJECTS_HOST_MEMORY_H_

// Memory of the host that kernels reach: page-locked memory and managed memory. Its address is the
// same for kernels and for the program.

#include <optional>
#include <vector>

#include "simulator/driver/objects/state.h"

namespace annulus::simulator::driver {

// A block of these bytes, or 0 where the machine has not as many left. It belongs to the context as
// far as a program can ask for it.
std::uint64_t allocate_host(const std::shared_ptr<Context>& context, std::size_t bytes,
                            HostBlock::Kind kind, unsigned flags);

// Gives kernels the program's own memory. False where some of it is a block already.
bool register_host(const std::shared_ptr<Context>& context, void* begin, std::size_t bytes,
                   unsigned flags);

// A copy of the block that holds all of the bytes.
struct FoundBlock {
  std::uint64_t begin = 0;
  HostBlock block;
};
std::optional<FoundBlock> find_host_block(std::uint64_t address, std::size_t bytes);

// Changes the block that begins there. False: there is none.
bool change_host_block(std::uint64_t begin, const std::function<void(HostBlock&)>& change);

// Takes the block of one of these kinds that begins there off the list, so that no call finds it
// any more; its memory is released by the caller.
std::optional<HostBlock> remove_host_block(std::uint64_t begin,
                                           std::initializer_list<HostBlock::Kind> kinds);

// The memory whose range of addresses holds this one, or null.
GlobalMemory* host_memory_at(std::uint64_t address);

// Adds those that have been made to what kernels may touch.
void add_host_memories(std::vector<PeerMemory>* memories);

}  // namespace annulus::simulator::driver

#endif  // ANNULUS_SIMULATOR_DRIVER_OBJECTS_HOST_MEMORY_H_
