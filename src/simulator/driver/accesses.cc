#include "simulator/driver/accesses.h"

#include "simulator/check/race.h"

namespace annulus::simulator::driver {
namespace {

using Blocks = std::map<const char*, HostBlock>;

// The block that holds all of the bytes. Requires: state().mutex is held.
Blocks::iterator block_with(const void* begin, std::size_t bytes) {
  const auto* address = static_cast<const char*>(begin);
  Blocks& blocks = state().host_blocks;
  auto above = blocks.upper_bound(address);
  if (above == blocks.begin()) return blocks.end();
  --above;
  const auto offset = static_cast<std::size_t>(address - above->first);
  const bool inside = offset <= above->second.bytes && bytes <= above->second.bytes - offset;
  return inside ? above : blocks.end();
}

}  // namespace

void note(const OperationPointer& operation, AccessKind kind, const GlobalMemory& memory,
          std::uint64_t address, std::size_t bytes) {
  if (!operation->checked) return;
  const Allocation found = memory.find(address, bytes);
  if (found.end == 0) {
    return report(used_after_free(memory.freed_by(address).get(), *operation, verb(kind), address));
  }
  memory.record(found.begin, state().detector)->access(operation, kind, address, address + bytes);
}

void note_host(const OperationPointer& operation, AccessKind kind, const void* begin,
               std::size_t bytes) {
  if (!operation->checked) return;
  std::shared_ptr<AccessRecord> record;
  {
    State& all = state();
    std::lock_guard lock(all.mutex);
    const auto found = block_with(begin, bytes);
    if (found == all.host_blocks.end()) return;
    HostBlock& block = found->second;
    if (block.record == nullptr) {
      const auto address = reinterpret_cast<std::uint64_t>(found->first);
      block.record = std::make_shared<AccessRecord>(all.detector, address, address + block.bytes);
    }
    record = block.record;
  }
  const auto address = reinterpret_cast<std::uint64_t>(begin);
  record->access(operation, kind, address, address + bytes);
}

bool is_page_locked(const void* begin, std::size_t bytes) {
  State& all = state();
  std::lock_guard lock(all.mutex);
  return block_with(begin, bytes) != all.host_blocks.end();
}

std::unique_ptr<Fault> freed_by_host(const GlobalMemory& memory, std::uint64_t pointer,
                                     const char* call) {
  const std::shared_ptr<AccessRecord> record = memory.made_record(pointer);
  return record == nullptr ? nullptr : record->in_use(nullptr, call);
}

}  // namespace annulus::simulator::driver
