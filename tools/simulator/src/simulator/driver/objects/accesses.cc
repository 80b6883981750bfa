#include "simulator/driver/objects/accesses.h"

#include "simulator/check/race.h"
#include "simulator/driver/objects/host_memory.h"

namespace annulus::simulator::driver {

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
  const auto address = reinterpret_cast<std::uint64_t>(begin);
  const auto found = find_host_block(address, bytes);
  if (!found) return;
  const auto record = found->block.memory->record(found->begin, state().detector);
  if (record != nullptr) record->access(operation, kind, address, address + bytes);
}

bool is_page_locked(const void* begin, std::size_t bytes) {
  return find_host_block(reinterpret_cast<std::uint64_t>(begin), bytes).has_value();
}

std::unique_ptr<Fault> freed_by_host(const GlobalMemory& memory, std::uint64_t pointer,
                                     const char* call) {
  const std::shared_ptr<AccessRecord> record = memory.made_record(pointer);
  return record == nullptr ? nullptr : record->in_use(nullptr, call);
}

}  // namespace annulus::simulator::driver
