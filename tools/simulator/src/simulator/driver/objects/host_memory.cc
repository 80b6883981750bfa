#include "simulator/driver/objects/host_memory.h"

#include <algorithm>

namespace annulus::simulator::driver {
namespace {

using Blocks = std::map<std::uint64_t, HostBlock>;

// The block that holds all of the bytes. Requires: state().mutex is held.
Blocks::iterator block_with(std::uint64_t address, std::size_t bytes) {
  Blocks& blocks = state().host_blocks;
  auto above = blocks.upper_bound(address);
  if (above == blocks.begin()) return blocks.end();
  --above;
  const std::uint64_t offset = address - above->first;
  const bool inside = offset <= above->second.bytes && bytes <= above->second.bytes - offset;
  return inside ? above : blocks.end();
}

// Whether any block contains one of the bytes. Requires: state().mutex is held.
bool overlaps(std::uint64_t begin, std::size_t bytes) {
  const Blocks& blocks = state().host_blocks;
  const auto after = blocks.lower_bound(begin + bytes);
  if (after == blocks.begin()) return false;
  const auto last = std::prev(after);
  return last->first + last->second.bytes > begin;
}

}  // namespace

std::uint64_t allocate_host(const std::shared_ptr<Context>& context, std::size_t bytes,
                            HostBlock::Kind kind, unsigned flags) {
  State& all = state();
  std::lock_guard lock(all.mutex);
  if (all.host_memory == nullptr) {
    all.host_memory = std::make_unique<GlobalMemory>(machine_memory(), GlobalMemory::Kind::kHost);
  }
  GlobalMemory& memory = *all.host_memory;
  const std::uint64_t begin = memory.allocate(bytes);
  if (begin == 0) return 0;
  try {
    HostBlock block;
    block.bytes = bytes;
    block.kind = kind;
    block.flags = flags;
    block.memory = &memory;
    block.context = context;
    all.host_blocks.emplace(begin, std::move(block));
  } catch (...) {
    memory.release(begin);
    throw;
  }
  return begin;
}

bool register_host(const std::shared_ptr<Context>& context, void* begin, std::size_t bytes,
                   unsigned flags) {
  const auto address = reinterpret_cast<std::uint64_t>(begin);
  State& all = state();
  std::lock_guard lock(all.mutex);
  if (overlaps(address, bytes)) return false;
  all.registered.push_back(std::make_unique<GlobalMemory>(begin, bytes));
  try {
    HostBlock block;
    block.bytes = bytes;
    block.kind = HostBlock::Kind::kRegistered;
    block.flags = flags;
    block.memory = all.registered.back().get();
    block.context = context;
    all.host_blocks.emplace(address, std::move(block));
  } catch (...) {
    all.registered.pop_back();
    throw;
  }
  return true;
}

std::optional<FoundBlock> find_host_block(std::uint64_t address, std::size_t bytes) {
  State& all = state();
  std::lock_guard lock(all.mutex);
  const auto found = block_with(address, bytes);
  if (found == all.host_blocks.end()) return std::nullopt;
  return FoundBlock{found->first, found->second};
}

bool change_host_block(std::uint64_t begin, const std::function<void(HostBlock&)>& change) {
  State& all = state();
  std::lock_guard lock(all.mutex);
  const auto found = all.host_blocks.find(begin);
  if (found == all.host_blocks.end()) return false;
  change(found->second);
  return true;
}

std::optional<HostBlock> remove_host_block(std::uint64_t begin,
                                           std::initializer_list<HostBlock::Kind> kinds) {
  State& all = state();
  std::lock_guard lock(all.mutex);
  const auto found = all.host_blocks.find(begin);
  if (found == all.host_blocks.end() ||
      std::ranges::find(kinds, found->second.kind) == kinds.end()) {
    return std::nullopt;
  }
  HostBlock block = std::move(found->second);
  all.host_blocks.erase(found);
  return block;
}

GlobalMemory* host_memory_at(std::uint64_t address) {
  State& all = state();
  std::lock_guard lock(all.mutex);
  if (all.host_memory != nullptr && all.host_memory->contains(address)) {
    return all.host_memory.get();
  }
  const auto found = block_with(address, 1);
  return found == all.host_blocks.end() ? nullptr : found->second.memory;
}

void add_host_memories(std::vector<PeerMemory>* memories) {
  State& all = state();
  std::lock_guard lock(all.mutex);
  if (all.host_memory != nullptr) memories->push_back({all.host_memory.get(), -1, true, {}});
  for (const auto& [begin, block] : all.host_blocks) {
    if (block.kind == HostBlock::Kind::kRegistered)
      memories->push_back({block.memory, -1, true, {}});
  }
}

}  // namespace annulus::simulator::driver
