#ifndef ANNULUS_SIMULATOR_DRIVER_OBJECTS_HOST_MEMORY_H_
#define ANNULUS_SIMULATOR_DRIVER_OBJECTS_HOST_MEMORY_H_

// Memory of the host that kernels can access: page-locked memory and managed memory. Its address is
// the same for kernels and for the program.

#include <optional>
#include <vector>

#include "simulator/driver/objects/state.h"

namespace annulus::simulator::driver {

// Allocates a block and returns its address, or 0 if the machine has too little memory. The context
// is the one that a program can query; it does not own the memory.
std::uint64_t allocate_host(const std::shared_ptr<Context>& context, std::size_t bytes,
                            HostBlock::Kind kind, unsigned flags);

// Makes the program's own memory accessible to kernels. Returns false if part of it is in a block
// already.
bool register_host(const std::shared_ptr<Context>& context, void* begin, std::size_t bytes,
                   unsigned flags);

// A copy of the block that holds all of the bytes.
struct FoundBlock {
  std::uint64_t begin = 0;
  HostBlock block;
};
std::optional<FoundBlock> find_host_block(std::uint64_t address, std::size_t bytes);

// Changes the block that begins at the address. Returns false if there is none.
bool change_host_block(std::uint64_t begin, const std::function<void(HostBlock&)>& change);

// Takes the block of one of these kinds that begins at the address off the list, so that no later
// call finds it. The caller releases its memory.
std::optional<HostBlock> remove_host_block(std::uint64_t begin,
                                           std::initializer_list<HostBlock::Kind> kinds);

// The memory whose range of addresses holds this one, or null.
GlobalMemory* host_memory_at(std::uint64_t address);

// Appends the host memories that exist to the memories that kernels may access.
void add_host_memories(std::vector<PeerMemory>* memories);

}  // namespace annulus::simulator::driver

#endif  // ANNULUS_SIMULATOR_DRIVER_OBJECTS_HOST_MEMORY_H_
