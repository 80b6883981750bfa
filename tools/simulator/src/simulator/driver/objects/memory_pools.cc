#include "simulator/driver/objects/memory_pools.h"

#include <algorithm>

#include "simulator/driver/objects/host_memory.h"

namespace annulus::simulator::driver {
namespace {

void forget_pooled(std::uint64_t begin) {
  State& all = state();
  Pooled pooled;
  {
    std::lock_guard lock(all.mutex);
    const auto found = all.pooled.find(begin);
    if (found == all.pooled.end()) return;
    pooled = std::move(found->second);
    all.pooled.erase(found);
  }
  std::lock_guard lock(pooled.pool->mutex);
  pooled.pool->used -= pooled.bytes;
}

}  // namespace

std::uint64_t allocate_from(const std::shared_ptr<MemoryPool>& pool,
                            const std::shared_ptr<Context>& context, std::size_t bytes) {
  {
    std::lock_guard lock(pool->mutex);
    const std::uint64_t used = std::min(pool->max_bytes, pool->used);
    if (pool->max_bytes != 0 && bytes > pool->max_bytes - used) return 0;
  }
  const auto kind = pool->managed ? HostBlock::Kind::kManaged : HostBlock::Kind::kAllocated;
  const std::uint64_t begin = pool->device != nullptr ? pool->device->memory().allocate(bytes)
                                                      : allocate_host(context, bytes, kind, 0);
  if (begin == 0) return 0;
  try {
    State& all = state();
    std::lock_guard lock(all.mutex);
    all.pooled.emplace(begin, Pooled{pool, bytes});
  } catch (...) {
    release_allocation(begin);
    throw;
  }
  std::lock_guard lock(pool->mutex);
  pool->used += bytes;
  pool->used_high = std::max(pool->used_high, pool->used);
  return begin;
}

bool release_allocation(std::uint64_t address, std::shared_ptr<const Operation> by) {
  GlobalMemory* const memory = memory_at(address);
  if (memory == nullptr) return false;
  forget_pooled(address);
  remove_host_block(address, {HostBlock::Kind::kManaged, HostBlock::Kind::kAllocated});
  return memory->release(address, std::move(by));
}

std::shared_ptr<MemoryPool> pool_of(std::uint64_t begin) {
  State& all = state();
  std::lock_guard lock(all.mutex);
  const auto found = all.pooled.find(begin);
  return found == all.pooled.end() ? nullptr : found->second.pool;
}

std::shared_ptr<MemoryPool> Device::default_pool() {
  std::lock_guard lock(mutex_);
  if (default_pool_ == nullptr) {
    default_pool_ = std::make_shared<MemoryPool>();
    default_pool_->device = this;
    default_pool_->given = true;
    state().memory_pools.add(default_pool_);
  }
  return default_pool_;
}

std::shared_ptr<MemoryPool> Device::pool() {
  {
    std::lock_guard lock(mutex_);
    if (pool_ != nullptr) return pool_;
  }
  return default_pool();
}

void Device::set_pool(std::shared_ptr<MemoryPool> pool) {
  std::lock_guard lock(mutex_);
  pool_ = std::move(pool);
}

}  // namespace annulus::simulator::driver
